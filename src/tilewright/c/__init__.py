"""Kernels written in Triton-C, a C with tiles: `tilewright.c.kernel(source, defines={...})`."""

from tilewright.c.c_function import CFunction
from tilewright.c.c_kernel import CKernel, kernel
from tilewright.c.c_source import CSource

__all__ = ["CFunction", "CKernel", "CSource", "kernel"]
