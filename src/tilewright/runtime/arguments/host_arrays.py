"""Arrays as kernel arguments: address, element type, writability.

Their libraries are not imported to recognize them: NumPy arrays and torch tensors here, all others
in `device_arrays`. A kernel is passed the address of the first element; strides are separate
arguments, so arrays need not be contiguous.
"""

from __future__ import annotations

import sys
from ctypes import c_int, c_void_p
from typing import Any

from tilewright.runtime.arguments import device_arrays
from tilewright.runtime.arguments.array_specs import ON_HOST, SPECS_BY_DEVICE, PointerSpecs
from tilewright.runtime.arguments.key_rules import (
    HANDLERS,
    LOW_BITS,
    Handled,
    Handler,
    Spec,
    plain_number,
    spec,
)
from tilewright.support import errors, import_late
from tilewright.support.asynchronous_exceptions import synchronous


def _resolve(kind: type[Any]) -> Handler | None:
    """The handler of arrays of a type; those of NumPy are known only if NumPy is imported."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return _numpy_handler()
    if numpy is not None and issubclass(kind, numpy.generic):
        return lambda value: HANDLERS.key_and_value(plain_number(value))
    if hasattr(kind, "data_ptr") and hasattr(kind, "dtype") and hasattr(kind, "is_cpu"):
        return _of_tensor
    handler = device_arrays.resolve(kind) or device_arrays.by_instance
    return _read_only(handler) if is_immutable(kind) else handler


HANDLERS.resolvers.append(_resolve)


_IMMUTABLE = frozenset({"jax", "jaxlib", "tensorflow", "pyarrow"})
"""Libraries whose arrays are immutable, which their array protocols do not report."""


def is_immutable(kind: type[Any]) -> bool:
    """Whether arrays of a type must not be stored to, even if their memory is writable."""
    modules = (getattr(base, "__module__", "") for base in kind.__mro__)
    return any(str(module).partition(".")[0] in _IMMUTABLE for module in modules)


def _read_only(handler: Handler) -> Handler:
    def of_immutable(value: Any) -> Handled:
        key, passed = handler(value)
        if isinstance(key, Spec):
            key = spec(key.type, key.divisor, key.device, True)
        return key, passed

    return of_immutable


def _numpy_handler() -> Handler:
    offset = object.__basicsize__
    at = c_void_p.from_address
    specs = ON_HOST

    def of_ndarray(array: Any) -> Handled:
        address = at(id(array) + offset).value or 0
        variants = specs[array.dtype]
        index = 0 if address & LOW_BITS else 1
        return variants[index if array.flags.writeable else index + 2], address

    def of_ndarray_portably(array: Any) -> Handled:
        address = array.__array_interface__["data"][0]
        variants = specs[array.dtype]
        index = 0 if address & LOW_BITS else 1
        return variants[index if array.flags.writeable else index + 2], address

    return of_ndarray if _data_follows_header(offset) else of_ndarray_portably


_DTYPE_OFFSET, _FLAGS_OFFSET = 40, 48
_WRITABLE = 0x400


def _data_follows_header(offset: int) -> bool:
    """Whether an array object holds the address of its data right after the object header.

    NumPy's C API defines it there (`PyArrayObject_fields.data`); reading it is nine times as fast
    as `__array_interface__`.
    """
    if sys.implementation.name != "cpython":
        return False
    return all(
        c_void_p.from_address(id(a) + offset).value == a.__array_interface__["data"][0]
        for a in _sample_arrays()
    )


def reads_numpy_header() -> bool:
    """Whether NumPy's arrays hold address, dtype and flags at the offsets of its C API
    (`PyArrayObject_fields`): 0, 40 and 48 bytes after the object header."""
    offset = object.__basicsize__
    return _data_follows_header(offset) and all(
        c_void_p.from_address(id(a) + offset + _DTYPE_OFFSET).value == id(a.dtype)
        and bool(c_int.from_address(id(a) + offset + _FLAGS_OFFSET).value & _WRITABLE)
        == a.flags.writeable
        for a in _sample_arrays()
    )


def _sample_arrays() -> list[Any]:
    numpy: Any = import_late("numpy")
    # a view with another start than its base, and a read-only one with negative strides
    samples = [numpy.zeros(3), numpy.zeros((4, 4), dtype="int8")[1:, 2:], numpy.ones(5)[::-1]]
    samples[-1].flags.writeable = False
    return samples


class _Devices(dict[object, PointerSpecs]):
    """`torch.device` -> the Specs of its arrays; hashing a device is ten times as fast as `str`."""

    def __missing__(self, device: object) -> PointerSpecs:
        self[device] = specs = SPECS_BY_DEVICE[str(device)]
        return specs


_devices = _Devices()


def _of_tensor(tensor: Any) -> Handled:
    """The handler of torch tensors."""
    try:
        address = tensor.data_ptr()
    except synchronous(RuntimeError) as problem:  # sparse tensors, and stand-ins without memory
        description = f"tensor with layout {tensor.layout} and without memory of its own"
        raise errors.UnsupportedArgument("", description, str(problem).partition("\n")[0]) from None
    # PyTorch negates and conjugates lazily, by a flag; `bool()` is False, where there is no flag
    for bit in ("neg", "conj"):
        if getattr(tensor, f"is_{bit}", bool)():
            description = f"tensor whose {bit} bit is set: its memory holds other values"
            hint = f"pass tensor.resolve_{bit}(), a copy"
            raise errors.UnsupportedArgument("", description, hint)
    return _devices[tensor.device][tensor.dtype][0 if address & LOW_BITS else 1], address


def has_device_tensors() -> bool:
    """Whether torch may have tensors outside the memory of the host: a CPU-only build has none. No
    driver is called."""
    torch: Any = sys.modules.get("torch")
    accelerator = getattr(torch, "accelerator", None)
    return accelerator is None or accelerator.current_accelerator() is not None


def is_tensor_type(kind: type[Any]) -> bool:
    """Whether `data_ptr()`, `dtype`, `get_device()` and `is_neg()` determine the key of arrays of a
    type, as for torch. `get_device()` is -1 for memory of the host."""
    return HANDLERS[kind] is _of_tensor and all(
        hasattr(kind, name) for name in ("get_device", "is_neg")
    )
