"""Tilewright: write tile-level kernels in Python; run them on CPUs, GPUs or in an interpreter."""
