"""Arrays of DLPack, read from their capsules by offsets of the C structures.

    DLManagedTensor           { DLTensor, void *manager, deleter }            in a "dltensor"
    DLManagedTensorVersioned  { u32 major, minor, void *manager, deleter, u64 flags, DLTensor }
                                                                    in a "dltensor_versioned"
    DLTensor  { void *data, i32 device, device_id, i32 ndim, { u8 code, u8 bits, u16 lanes },
                i64 *shape, i64 *strides, u64 byte_offset }

A capsule is read, never consumed: the memory lives as long as the capsule, whose destructor
releases it.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from tilewright.support import errors
from tilewright.support.data_class import dataclass

CUDA, CUDA_HOST, CUDA_MANAGED = 2, 3, 13
HOSTS = (1, CUDA_HOST, 11)
"""DLDeviceType: kDLCPU, and memory of the host that CUDA and ROCm have pinned."""
NAMES = {8: "metal", 10: "hip", 14: "oneapi"}
"""Names of devices that no backend serves, for messages."""

_TENSOR = struct.Struct("<QiiiBBH8x8xQ")
_TENSOR_IN_VERSIONED = 32
_FLAGS_IN_VERSIONED = 24
_READ_ONLY, _COPIED = 1, 2
_VERSION = (1, 0)

_CODES = {
    (6, 8): "bool", (4, 16): "bfloat16", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2",
    (11, 8): "float8_e4m3fnuz", (13, 8): "float8_e5m2fnuz",
    **{(0, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{(2, bits): f"float{bits}" for bits in (16, 32, 64)},
}  # fmt: skip
"""(DLDataTypeCode, bits) -> name of the dtype."""


@dataclass(frozen=True, slots=True)
class Exported:
    """An array exported by its library.

    address: of the first element; dtype: its name; copied: whether only the capsule owns the
    memory; capsule: keeps the memory alive.
    """

    address: int
    dtype: str
    read_only: bool
    copied: bool
    capsule: object


def export(array: Any, **options: object) -> Exported:
    """Export an array as a capsule, versioned if the library supports it, and read the capsule.

    options: `stream`, for arrays of a GPU. Errors: UnsupportedArgument, those of the library.
    """
    try:
        capsule = array.__dlpack__(max_version=_VERSION, **options)
    except TypeError:  # libraries older than DLPack 1.0
        capsule = array.__dlpack__(**options)
    return read(capsule)


def read(capsule: object) -> Exported:
    """The array in a capsule."""
    versioned = _is_valid(capsule, b"dltensor_versioned")
    start = _pointer(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    flags = ctypes.c_uint64.from_address(start + _FLAGS_IN_VERSIONED).value if versioned else 0
    at = start + (_TENSOR_IN_VERSIONED if versioned else 0)
    data, _, _, _, code, bits, lanes, offset = _TENSOR.unpack(ctypes.string_at(at, _TENSOR.size))
    dtype = _CODES.get((code, bits)) if lanes == 1 else None
    if dtype is None:
        description = f"DLPack array of type code {code}, {bits} bits and {lanes} lanes"
        raise errors.UnsupportedArgument("", description, "convert it to another dtype")
    return Exported(data + offset, dtype, bool(flags & _READ_ONLY), bool(flags & _COPIED), capsule)


# separate objects, since the functions of `ctypes.pythonapi` are shared by the whole process
_pointer = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
