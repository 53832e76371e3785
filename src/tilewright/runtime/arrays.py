"""Arrays as kernel arguments: where their memory is, their element type, whether it is writable.

Recognised without importing their libraries: NumPy arrays, torch tensors, and any object with
`__array_interface__`, `data_ptr()` and `dtype`, or `__dlpack__`. A kernel gets the address of the
first element; strides are arguments of their own, so that arrays need not be contiguous.
"""

from __future__ import annotations

import sys
from ctypes import c_int, c_void_p
from typing import Any, cast

from tilewright.ir.types import (
    DType,
    PointerType,
    bf16,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from tilewright.runtime.specialize import (
    ALIGNMENT,
    HANDLERS,
    HOST,
    Handled,
    Handler,
    refuse,
    spec,
)
from tilewright.support import errors

DTYPES: dict[str, DType] = {
    "bool": i1, "int8": i8, "int16": i16, "int32": i32, "int64": i64,
    "uint8": u8, "uint16": u16, "uint32": u32, "uint64": u64,
    "float16": f16, "bfloat16": bf16, "float32": f32, "float64": f64,
    "float8_e4m3fn": f8e4m3, "float8_e5m2": f8e5m2,
}  # fmt: skip
"""By the name that NumPy, ml_dtypes and torch share."""

_MASK = ALIGNMENT - 1
_DLPACK_HOST = (1, 3, 11)
"""DLDeviceType: kDLCPU, and memory of the host that CUDA and ROCm have pinned."""
_DLPACK_NAMES = {2: "cuda", 8: "metal", 10: "hip", 14: "oneapi"}


def element_type(name: str) -> DType:
    """The type of elements whose dtype is called `name`, as in "torch.float32" or "int8"."""
    found = DTYPES.get(name.rpartition(".")[2])
    if found is None:
        raise errors.UnsupportedArgument("", f"{name} array", "convert it to another dtype")
    return found


def plain(value: object) -> object:
    """A scalar of NumPy as a number of Python; anything else as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return cast("Any", value).item()
    return value


class _Pointers(dict[object, Any]):
    """dtype of a library -> the Specs of its arrays: (unaligned, aligned), read-only ones after."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __missing__(self, dtype: object) -> Any:
        if not getattr(dtype, "isnative", True):
            raise errors.UnsupportedArgument("", f"{dtype} array", "convert it to native order")
        type_ = PointerType(element_type(str(dtype)))
        found = tuple(
            spec(type_, fact, self._device, read_only)
            for read_only in (False, True)
            for fact in (False, True)
        )
        self[dtype] = found
        return found


_HOST = _Pointers(HOST)


def _resolve(kind: type[Any]) -> Handler | None:
    """The handler of arrays of a type. An array of NumPy is one only if NumPy is imported."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return _numpy_handler()
    if numpy is not None and issubclass(kind, numpy.generic):
        return lambda value: HANDLERS.key_and_value(value.item())
    if hasattr(kind, "data_ptr") and hasattr(kind, "dtype"):
        return _of_tensor if hasattr(kind, "is_cpu") else _of_pointer
    if hasattr(kind, "__array_interface__"):
        return _of_interface
    return _of_dlpack if hasattr(kind, "__dlpack__") else _by_instance


def _by_instance(value: Any) -> Handled:
    """An object whose class does not tell what it is."""
    if hasattr(value, "__array_interface__"):
        return _of_interface(value)
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _of_pointer(value)
    return refuse(value)


HANDLERS.resolvers.append(_resolve)


def _numpy_handler() -> Handler:
    offset = object.__basicsize__
    at = c_void_p.from_address
    specs = _HOST

    def of_ndarray(array: Any) -> Handled:
        address = at(id(array) + offset).value or 0
        found = specs[array.dtype]
        index = 0 if address & _MASK else 1
        return found[index if array.flags.writeable else index + 2], address

    def of_ndarray_portably(array: Any) -> Handled:
        address = array.__array_interface__["data"][0]
        found = specs[array.dtype]
        index = 0 if address & _MASK else 1
        return found[index if array.flags.writeable else index + 2], address

    return of_ndarray if _data_follows_header(offset) else of_ndarray_portably


_DTYPE_OFFSET, _FLAGS_OFFSET = 40, 48
_WRITABLE = 0x400


def _data_follows_header(offset: int) -> bool:
    """Whether an array object holds the address of its data right after the object header.

    So NumPy's C API has it (`PyArrayObject_fields.data`) on CPython, and reading it there takes
    0.1 us where `__array_interface__` takes 0.9.
    """
    if sys.implementation.name != "cpython":
        return False
    return all(
        c_void_p.from_address(id(a) + offset).value == a.__array_interface__["data"][0]
        for a in _sample_arrays()
    )


def reads_numpy_header() -> bool:
    """Whether NumPy's arrays hold address, dtype and flags where its C API has them
    (`PyArrayObject_fields`): 0, 40 and 48 bytes after the object header."""
    offset = object.__basicsize__
    return _data_follows_header(offset) and all(
        c_void_p.from_address(id(a) + offset + _DTYPE_OFFSET).value == id(a.dtype)
        and bool(c_int.from_address(id(a) + offset + _FLAGS_OFFSET).value & _WRITABLE)
        == a.flags.writeable
        for a in _sample_arrays()
    )


def _sample_arrays() -> list[Any]:
    import numpy

    samples = [numpy.zeros(3), numpy.zeros((4, 4), dtype="int8")[1:, 2:], numpy.ones(5)[::-1]]
    samples[-1].flags.writeable = False
    return samples


class _Devices(dict[object, _Pointers]):
    """`torch.device` -> the Specs of its arrays; a dictionary asks it 10 times as fast as `str`."""

    def __missing__(self, device: object) -> _Pointers:
        found = self[device] = _HOST if str(device) == HOST else _Pointers(str(device))
        return found


_devices = _Devices()


def _of_tensor(tensor: Any) -> Handled:
    """A torch tensor."""
    address = tensor.data_ptr()
    return _devices[tensor.device][tensor.dtype][0 if address & _MASK else 1], address


def is_tensor_type(kind: type[Any]) -> bool:
    """Whether `data_ptr()`, `dtype` and `get_device()` tell all about arrays of a type: those of
    torch. `get_device()` is -1 for memory of the host."""
    return HANDLERS[kind] is _of_tensor and hasattr(kind, "get_device")


def _of_pointer(value: Any) -> Handled:
    """An object with `data_ptr()` and `dtype` that is no torch tensor."""
    address = int(value.data_ptr())
    return _HOST[value.dtype][0 if address & _MASK else 1], address


def _of_interface(value: Any) -> Handled:
    """An object that describes its memory as NumPy arrays do."""
    import numpy

    interface = cast("dict[str, Any]", value.__array_interface__)
    address, read_only = interface["data"]
    dtype = numpy.dtype(interface["typestr"])
    return _HOST[dtype][(0 if address & _MASK else 1) + 2 * bool(read_only)], address


class _Owned(int):
    """An address, and the array that keeps its memory."""

    owner: object


def _of_dlpack(value: Any) -> Handled:
    """An array of another library, through DLPack."""
    import numpy

    device, index = cast("tuple[int, int]", value.__dlpack_device__())
    if device not in _DLPACK_HOST:
        name = f"{_DLPACK_NAMES.get(device, f'DLPack device {device}')}:{index}"
        raise errors.DeviceMismatch("", name, "the CPU")
    array = numpy.from_dlpack(value)
    key, address = HANDLERS.key_and_value(array)
    owned = _Owned(address)
    owned.owner = array
    return key, owned
