"""The description of a kernel that the thread pool and the report of a crash use."""

import ctypes
from collections.abc import Sequence


class KernelRecord(ctypes.Structure):
    """A loaded kernel; it, and the memory it points to, must live as long as the kernel may run."""

    _fields_ = (
        ("code", ctypes.c_void_p),  # its function
        ("title", ctypes.c_char_p),  # "the kernel 'add' (program.py:12)"
        ("count", ctypes.c_int64),  # of parameters
        ("names", ctypes.POINTER(ctypes.c_char_p)),
        ("kinds", ctypes.c_char_p),  # a byte for each: struct's codes; P or Q for a pointer
        ("alone", ctypes.c_int64),  # programs of the largest grid that the caller runs alone
        ("waits", ctypes.c_int64),  # whether programs may wait for each other
    )


class LaunchRecord(ctypes.Structure):
    """The data that all launches of a kernel by machine code share."""

    _fields_ = (
        ("kernel", ctypes.c_void_p),  # KernelRecord
        ("scratch", ctypes.c_int64),  # bytes for each thread
        ("console", ctypes.c_uint64),  # the word after those of the arguments
        ("count", ctypes.c_int64),  # of the arguments
    )


def kernel_record(
    code: int,
    title: str,
    names: Sequence[str] = (),
    kinds: Sequence[str] = (),
    alone: int = 0,
    waits: bool = False,
) -> KernelRecord:
    """The record of a kernel at address `code`; ctypes keeps the memory that it points to alive."""
    texts = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
    pointer = ctypes.cast(texts, ctypes.POINTER(ctypes.c_char_p))
    text = "".join(kinds).encode()
    return KernelRecord(code, _kept(title), len(names), pointer, text, alone, waits)


_titles: dict[str, bytes] = {}


def _kept(title: str) -> bytes:
    """A title as bytes that are never freed: a crash at the end of the process may name it."""
    known = _titles.get(title)
    if known is None:
        known = _titles[title] = title.encode()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(known))
    return known
