"""Access of machine code to torch tensors, without calls of Python.

One C function returns address, dtype and device: `torch.Tensor.__dlpack_c_exchange_api__` is a
capsule of DLPack's table of functions (DLPackExchangeAPI, from torch 2.10 on), of which

    int dltensor_from_py_object_no_sync(PyObject *tensor, DLTensor *result)

fills in a description that owns nothing, in a third of the time of `data_ptr()`, `dtype` and
`get_device()`. It does not report whether a view negates. `is_neg()`, which reads one bit of the
tensor's implementation, would take twice that time, so the position of the bit is found once, by
comparing tensors whose dispatch keys are known.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, NamedTuple

_NAME = b"dlpack_exchange_api"
_MAJOR = 1
_DESCRIBE_IN_TABLE = 40
"""Offset of the function, after the version (u32 major, u32 minor), the previous table, and three
functions for managed tensors."""
_MOST_BYTES = 192
"""Bytes of an implementation that are searched: fewer than it has in any version of torch."""


class TensorHeader(NamedTuple):
    """Addresses and offsets for machine code.

    describe: address of the function; implementation: offset in a tensor of the address of its
    implementation; keys: offset of the dispatch keys there; negative: their bit for views that
    negate."""

    describe: int
    implementation: int
    keys: int
    negative: int


@functools.cache
def tensor_header() -> TensorHeader | None:
    """The header of `torch.Tensor` and `torch.nn.Parameter`; None for an unknown layout of
    torch."""
    torch: Any = sys.modules.get("torch")
    capsule = getattr(getattr(torch, "Tensor", None), "__dlpack_c_exchange_api__", None)
    tells = hasattr(torch, "_neg_view") and hasattr(torch._C, "_dispatch_keys")
    if capsule is None or not tells or sys.implementation.name != "cpython":
        return None
    table = _pointer(capsule)
    if not table or ctypes.c_uint32.from_address(table).value != _MAJOR:
        return None
    samples = _samples(torch)
    shared = [_implementations(sample) for sample in samples]
    starts = set[int].intersection(*shared)
    keys = [_words_of_keys(torch, sample) for sample in samples]
    places = set[int].intersection(*keys)
    if len(starts) != 1 or len(places) != 1:
        return None
    negative = torch._C.DispatchKeySet(torch._C.DispatchKey.Negative).raw_repr()
    describe = ctypes.c_uint64.from_address(table + _DESCRIBE_IN_TABLE).value
    return TensorHeader(describe, starts.pop(), places.pop(), negative)


def _pointer(capsule: object) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, _NAME) or 0


def _samples(torch: Any) -> list[Any]:
    """Tensors with different sets of keys."""
    plain = torch.zeros(3)
    learned = torch.nn.Parameter(torch.zeros(2))
    integers = torch.zeros(4, dtype=torch.int8)
    return [plain, torch._neg_view(plain), learned, torch._neg_view(integers)[1:], learned * 2]


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _implementations(tensor: Any) -> set[int]:
    """Offset in a tensor's object of the address of its implementation."""
    places = range(object.__basicsize__, type(tensor).__basicsize__ - 7, 8)
    return {at for at in places if _word(id(tensor) + at) == tensor._cdata}


def _words_of_keys(torch: Any, tensor: Any) -> set[int]:
    """Offset in a tensor's implementation of the set of its dispatch keys."""
    keys = torch._C._dispatch_keys(tensor).raw_repr()
    return {at for at in range(0, _MOST_BYTES, 8) if _word(tensor._cdata + at) == keys}
