"""Arguments of a host as the language values of the kernel's parameters.

Arrays are used in place: results appear in them. Recognised without importing any library are NumPy
arrays, torch tensors on the CPU, and objects with `__array_interface__`, `__dlpack__`, or
`data_ptr()` and `dtype`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from tilewright import language
from tilewright.eager.bare_pointers import array_at, is_bare_pointer
from tilewright.frontend.semantics import converted
from tilewright.interp import (
    NUMPY_DTYPES,
    Array,
    ConcreteValue,
    Memory,
    array_value,
    dtype_of_array,
    scalar_value,
)
from tilewright.ir.types import DType, PointerType, f32, i1, i32, i64, u64
from tilewright.language import Constexpr, DeviceFunction, tensor, tensor_descriptor
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.torch_tensor import TorchTensor

_TORCH_ONLY: dict[str, tuple[str, type]] = {
    "torch.bfloat16": ("int16", ml_dtypes.bfloat16),
    "torch.float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "torch.float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
    "torch.float8_e4m3fnuz": ("uint8", ml_dtypes.float8_e4m3fnuz),
    "torch.float8_e5m2fnuz": ("uint8", ml_dtypes.float8_e5m2fnuz),
}
"""For torch dtypes that NumPy lacks: the torch dtype to view them as, and that of ml_dtypes."""

_COMPILE_TIME = (str, language.dtype, DeviceFunction, language.constexpr_function)


def language_value(
    memory: Memory, name: str, value: object, annotation: object = None, specialized: bool = True
) -> Any:
    """One argument as a language value.

    Arrays become pointers, numbers scalar tensors (of the annotated dtype, otherwise the smallest
    of int32, int64, uint64 that holds them, float32, int1); tuples keep their structure; None and
    compile-time values are unchanged. specialized: whether an integer that is 1 is a compile-time
    value

    Errors: UnsupportedArgument, DeviceMismatch.
    """
    if isinstance(value, Constexpr):
        # constexpr(None) becomes None, so that `x is None` holds in Python.
        return None if value.value is None else value
    if value is None or isinstance(value, _COMPILE_TIME):
        return cast("object", value)
    if isinstance(value, tuple | list):
        items = cast("Sequence[object]", value)
        values = [language_value(memory, f"{name}[{i}]", item) for i, item in enumerate(items)]
        return _like(items, values)
    if isinstance(value, language.TensorDescriptor):
        return _descriptor(memory, name, value, annotation)
    plain = _unboxed(value)
    if isinstance(plain, int | float):
        dtype = _dtype_of_number(name, plain, annotation)
        if type(plain) is int and plain == 1 and specialized and not _fixes_dtype(annotation):
            return converted(plain, dtype)
        return tensor(scalar_value(name, plain, dtype))
    return _pointer(memory, name, value, annotation)


def _pointer(memory: Memory, name: str, value: object, annotation: object) -> tensor:
    array = as_numpy(name, value)
    element = getattr(value, "element", None)  # of the result of `reinterpret`
    dtype = element if isinstance(element, DType) else dtype_of_array(array.dtype)
    if dtype is None:
        actual = f"{array.dtype} array"
        raise errors.UnsupportedArgument(name, actual, "convert it to a dtype of the language")
    pointer = PointerType(dtype, annotation is language.const)
    return tensor(array_value(memory, name, array, pointer))


def _descriptor(
    memory: Memory, name: str, value: language.TensorDescriptor, annotation: object
) -> tensor_descriptor:
    base = _pointer(memory, name, value.base, annotation)
    address = cast("ConcreteValue", base.handle).data.item()
    language.check_address(address)
    element = cast("PointerType", base.handle.type).element
    shape, strides, block, reads = value.description()
    padding, rounds = language.padding_and_rounding(reads)
    language.check_launch(element.bytes, element.is_float, value.description())
    extents = [scalar_value(f"{name}_shape_{dim}", n, i32) for dim, n in enumerate(shape)]
    steps = [scalar_value(f"{name}_stride_{dim}", n, i64) for dim, n in enumerate(strides)]
    whole, moves = [*map(tensor, extents)], [*map(tensor, steps)]
    return tensor_descriptor(base, whole, moves, block, padding, rounds)


def as_numpy(name: str, value: object) -> Array:
    """An array of any library as a NumPy array of the same memory.

    Errors: UnsupportedArgument, DeviceMismatch.
    """
    if isinstance(value, np.ndarray):
        return cast("Array", value)
    # By module name: torch is not imported for callers that do not use it.
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "data_ptr"):
        return _from_torch(name, cast("TorchTensor", value))
    if hasattr(value, "__cuda_array_interface__"):
        raise errors.DeviceMismatch(name, "a GPU", "the CPU")
    if hasattr(value, "__array_interface__"):
        # No copy: the array interface shares the memory, so that results appear in it.
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return cast("Array", np.from_dlpack(cast("Any", value)))
    element = getattr(value, "element", None)
    if isinstance(element, DType):  # the result of `reinterpret`
        return as_numpy(name, cast("Any", value).base).view(NUMPY_DTYPES[element])
    if is_bare_pointer(value):
        return array_at(name, value)
    raise errors.UnsupportedArgument(name, type(value).__name__)


def annotations_of(fn: Callable[..., object]) -> Mapping[str, object]:
    """The annotations of a function; textual ones are evaluated if possible."""
    try:
        return inspect.get_annotations(fn, eval_str=True)
    except synchronous(Exception):  # an annotation that names something that does not exist
        return inspect.get_annotations(fn)


def _unboxed(value: object) -> object:
    """A NumPy scalar as a Python number."""
    return cast("np.generic[Any]", value).item() if isinstance(value, np.generic) else value


def _from_torch(name: str, value: TorchTensor) -> Array:
    # Not `is_cuda`: other devices of torch have no memory that the CPU can read either.
    device = value.device.type
    if device != "cpu":
        raise errors.DeviceMismatch(name, str(value.device), "the CPU")
    # Tensors that require gradients reject numpy(), although it shares the memory.
    plain = value.detach()
    stand_in = _TORCH_ONLY.get(str(value.dtype))
    try:
        if stand_in is None:
            return plain.numpy()
        torch_name, dtype = stand_in
        return plain.view(getattr(sys.modules["torch"], torch_name)).numpy().view(np.dtype(dtype))
    except synchronous(
        TypeError, RuntimeError
    ) as problem:  # RuntimeError: sparse, nested, negated ones
        said = str(problem).partition("\n")[0]
        raise errors.UnsupportedArgument(name, f"{value.dtype} tensor", said) from None


def _fixes_dtype(annotation: Any) -> bool:
    return isinstance(annotation, language.dtype) and isinstance(annotation.ir, DType)


def _dtype_of_number(name: str, value: float, annotation: Any) -> DType:
    """The type in which a number is passed."""
    if _fixes_dtype(annotation):
        return annotation.ir
    # bool before int, of which it is a subclass.
    if isinstance(value, bool):
        return i1
    if isinstance(value, float):
        return f32
    # Launches of compiled kernels choose a type in the same order.
    for dtype in (i32, i64, u64):
        if dtype.min_int <= value <= dtype.max_int:
            return dtype
    raise errors.IntegerTooLarge(name, "integer of more than 64 bits", "split it in two")


def _like(original: Sequence[object], items: list[Any]) -> Any:
    if hasattr(original, "_fields"):
        return cast("Callable[..., Any]", type(original))(*items)
    return language.tuple(items)
