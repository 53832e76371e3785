"""Syntax trees of Triton-C to tile IR. Entry: `lower_kernel`."""

from tilewright.frontend.c.lower.kernel_lowering import lower_kernel

__all__ = ["lower_kernel"]
