"""Triton's place of `GPUTarget`: `from tilewright.backends.compiler import GPUTarget`."""

from tilewright.backends.manifest import GPUTarget

__all__ = ["GPUTarget"]
