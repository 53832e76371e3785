"""The interface of Triton-C, a C with tiles: `tilewright.c.kernel(source,
defines={...})[grid](...)`.

Triton-C is `c` in every package: this one launches and tunes its kernels, `frontend.c` lowers
their text to tile IR, and the command `tilewright cc` compiles them from a shell.
"""

from tilewright.c.c_function import CFunction
from tilewright.c.c_kernel import CKernel, kernel
from tilewright.c.c_source import CSource

__all__ = [
    "CFunction",
    "CKernel",
    "CSource",
    "kernel",
]
