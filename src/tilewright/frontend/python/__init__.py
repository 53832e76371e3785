"""The Python front end: finds the source of a kernel and lowers its syntax tree to tile IR."""

from tilewright.frontend.python.depends import Dependencies, UsedGlobal, dependencies
from tilewright.frontend.python.lower import inline_call, lower_kernel
from tilewright.frontend.python.source import FunctionSource, source_of
from tilewright.frontend.signature import ArgSpec, KernelSignature

__all__ = [
    "ArgSpec",
    "Dependencies",
    "FunctionSource",
    "KernelSignature",
    "UsedGlobal",
    "dependencies",
    "inline_call",
    "lower_kernel",
    "source_of",
]
