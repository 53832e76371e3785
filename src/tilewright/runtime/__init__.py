"""Launching kernels: specialisation, caches, autotuning."""
