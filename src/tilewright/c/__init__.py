"""Triton-C for its users, a C with tiles: `tilewright.c.kernel(source, defines={...})[grid](...)`.

Everything of Triton-C is called `c`: this package launches and tunes its kernels, `frontend.c`
turns their text into tile IR, and the command `tilewright cc` compiles them from a shell.
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
