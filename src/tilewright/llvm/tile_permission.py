"""Permission to use the registers of AMX, which Linux grants a process on request.

The system saves 8 KiB more at context switches of processes that have called
arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), once for all their threads. See
https://docs.kernel.org/arch/x86/xstate.html.
"""

from __future__ import annotations

import ctypes
import functools

from tilewright.support import operating_system

_ARCH_PRCTL = 158  # the system call of x86-64
_REQUEST_PERMISSION = 0x1023
_TILE_DATA = 18


@functools.cache
def may_use_tiles() -> bool:
    """Request AMX for this process, on an x86 CPU that has it; whether it may use it.

    False on other systems, before Linux 5.16, and where a thread's stack for signals is too small.
    """
    if not operating_system.IS_LINUX:
        return False
    call = ctypes.CDLL(None).syscall
    call.argtypes, call.restype = [ctypes.c_long] * 3, ctypes.c_long
    return call(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0
