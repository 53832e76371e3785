"""Search for NVIDIA's driver library; imports nothing of the backend."""

import ctypes
import sys

from tilewright.support.asynchronous_exceptions import synchronous

_LIBRARIES = {"win32": "nvcuda.dll"}


def has_driver() -> bool:
    """Whether the library can be loaded: 20 us without it; importing the backend takes 50 ms."""
    try:
        ctypes.CDLL(_LIBRARIES.get(sys.platform, "libcuda.so.1"))
    except synchronous(OSError):
        return False
    return True
