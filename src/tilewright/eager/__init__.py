"""The interpreter for users: a kernel runs as Python, so that print and debuggers see values."""

from tilewright.eager.eager_builder import EagerBuilder
from tilewright.eager.eager_dispatcher import EagerDispatcher
from tilewright.eager.host_values import as_numpy
from tilewright.eager.run_grid import run_kernel

__all__ = ["EagerBuilder", "EagerDispatcher", "as_numpy", "run_kernel"]
