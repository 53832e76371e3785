"""LLVM's library, loaded without the GIL."""

import ctypes
import os
from pathlib import Path

import llvmlite

from tilewright.support import operating_system

__all__ = ["load_library"]


def load_library() -> None:
    """Load the library (10 ms) while other threads go on; llvmlite, which would stop them, then
    finds it there. Where the system loads libraries in another way, nothing happens."""
    if operating_system.IS_WINDOWS:
        return
    load = getattr(ctypes.CDLL(None), "dlopen", None)
    files = Path(llvmlite.__file__ or "").with_name("binding").glob("libllvmlite.*")
    file = next(files, None)
    if load is not None and file is not None:
        load.restype = ctypes.c_void_p
        load(os.fsencode(file), os.RTLD_NOW)
