"""The front end of Triton-C: preprocesses, parses and lowers its sources to tile IR.

Users meet it as package `tilewright.c` (kernels to launch) and as the command `tilewright cc`.
"""

from tilewright.frontend.c.c_parameters import KernelParameter, kernel_named, parameters_of
from tilewright.frontend.c.c_parser import ParsedSource, parse
from tilewright.frontend.c.c_types import c_spelling
from tilewright.frontend.c.lower.kernel_lowering import lower_kernel
from tilewright.frontend.c.preprocess import Source

__all__ = [
    "KernelParameter",
    "ParsedSource",
    "Source",
    "c_spelling",
    "kernel_named",
    "lower_kernel",
    "parameters_of",
    "parse",
]
