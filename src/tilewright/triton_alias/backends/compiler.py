"""`tilewright.backends.compiler`: `GPUTarget` where Triton has it."""

from tilewright.backends.manifest import GPUTarget

__all__ = ["GPUTarget"]
