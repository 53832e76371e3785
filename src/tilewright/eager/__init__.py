"""The interpreter for users: a kernel runs as Python, so that print and debuggers see values."""

from tilewright.eager.arguments import as_numpy
from tilewright.eager.dispatcher import EagerDispatcher
from tilewright.eager.launch import run_kernel

__all__ = ["EagerDispatcher", "as_numpy", "run_kernel"]
