"""Triton's place of `GPUTarget`: `from tilewright.backends.compiler import GPUTarget`."""

from tilewright.backends.base import GPUTarget

__all__ = ["GPUTarget"]
