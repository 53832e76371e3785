"""Execution of `interpret=True`: a kernel runs as Python, so that print and debuggers see values.

Each op is computed as soon as the kernel's line builds it, by the NumPy rules of package `interp`,
which itself interprets tile IR for `tilewright run` and goldens.
"""

from tilewright.eager.eager_builder import EagerBuilder
from tilewright.eager.host_values import as_numpy
from tilewright.eager.run_grid import run_kernel

__all__ = ["EagerBuilder", "as_numpy", "run_kernel"]
