"""The front end of Triton-C: preprocessor, parser, and lowering to tile IR.

Its users are the package `tilewright.c` (kernels to launch) and the command `tilewright cc`.
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
