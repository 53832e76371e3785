"""Builtin functions of CPython around C functions, to call machine code from Python."""

import ctypes
from typing import Any

METH_KEYWORDS, METH_FASTCALL = 0x02, 0x80
"""Calling conventions of CPython's methodobject.h: `f(self, args, count)`, and with METH_KEYWORDS
`f(self, args, count, names)`."""


class _MethodDef(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


# a subclass, since a plain int has no __dict__ to keep references alive in
class _RecordAddress(int):
    """The self of a builtin function: an int, so that C reads it by PyLong_AsVoidPtr."""

    kept: object


def builtin_function(name: str, code: int, flags: int, record: int, keep: object) -> Any:
    """The C function at address `code` as a Python callable; its `__self__` is `record`.

    flags: METH_FASTCALL, perhaps | METH_KEYWORDS; record: address that is passed to the C function
    as a Python int; keep: objects that must live as long as the callable, such as its code.
    """
    method = _MethodDef(name.encode(), code, flags, None)
    address = _RecordAddress(record)
    address.kept = (keep, method)  # CPython stores only the address of the method definition
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return new(ctypes.addressof(method), address, __name__)
