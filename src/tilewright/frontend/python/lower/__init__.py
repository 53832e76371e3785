"""Python syntax trees to tile IR. Entry: `lower_kernel`."""

from tilewright.frontend.python.lower.inlined_call import inline_call
from tilewright.frontend.python.lower.kernel import lower_kernel

__all__ = ["inline_call", "lower_kernel"]
