"""The oracle: tile IR and eager kernels computed with NumPy."""
