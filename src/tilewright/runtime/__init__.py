"""Launching: arguments, variants, grids, tuning."""

from tilewright.runtime.jit import JITFunction, jit

__all__ = ["JITFunction", "jit"]
