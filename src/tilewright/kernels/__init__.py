"""Ready-made kernels, one family per file."""
