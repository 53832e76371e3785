"""Kernels as users write them; `triton_twins` makes Triton's kernels of the same text."""
