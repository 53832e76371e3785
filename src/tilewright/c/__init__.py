"""Kernels written in Triton-C, a C with tiles: `tilewright.c.kernel(source, defines={...})`."""

from tilewright.c.function import CFunction
from tilewright.c.kernel import CKernel, kernel
from tilewright.c.source import CSource

__all__ = ["CFunction", "CKernel", "CSource", "kernel"]
