"""LLVM is called as llvmlite calls it."""

import ctypes
from typing import Any

from llvmlite import binding

from tilewright.llvm.library_calls import SIGNATURES

TEXTS = (ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_void_p))


def kind(of: Any) -> Any:
    """A type of ctypes; references to objects are one kind, and so are texts to be filled."""
    if of in TEXTS:
        return "text"
    return ctypes.c_void_p if hasattr(of, "contents") else of


def differing(name: str) -> list[str]:
    theirs = getattr(binding.ffi.lib, f"LLVMPY_{name}")
    result, *parameters = map(kind, SIGNATURES[name])
    # llvmlite says nothing of results that are none, and of some parameters
    found = [result] if result is not None else []
    stated = [kind(theirs.restype)] if result is not None else []
    if theirs.argtypes is not None:
        found, stated = found + parameters, stated + list(map(kind, theirs.argtypes))
    return [] if found == stated else [f"{name}: {found} and {stated}"]


def test_signatures_are_llvmlites() -> None:
    assert [text for name in SIGNATURES for text in differing(name)] == []
