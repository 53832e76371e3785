"""Lowering of Triton-C syntax trees to tile IR; `kernel_lowering` is the entry."""
