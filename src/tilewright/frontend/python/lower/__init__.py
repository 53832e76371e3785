"""Python syntax trees to tile IR. Entry: `lower_kernel`."""

from tilewright.frontend.python.lower.kernel import lower_kernel

__all__ = ["lower_kernel"]
