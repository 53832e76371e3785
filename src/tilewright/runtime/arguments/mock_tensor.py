"""Stand-ins for arrays: compile without data, and reinterpret data as another dtype."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from tilewright.ir.types import DType, PointerType
from tilewright.language import dtype
from tilewright.runtime.arguments.array_specs import DTYPES, element_type
from tilewright.runtime.arguments.key_rules import (
    ALIGNMENT,
    HANDLERS,
    MOCK,
    Handled,
    Handler,
    Spec,
    spec,
)
from tilewright.support import errors, function_late

_stated = function_late("tilewright.runtime.arguments.stated_arguments:stated")


class MockTensor:
    """An array that has a dtype and perhaps a shape but no memory: an argument of `warmup`.

    dtype: of the language, NumPy or torch.
    """

    def __init__(self, dtype: Any, shape: Sequence[int] | None = None) -> None:
        self.dtype = dtype
        self.shape = tuple(shape or (1,))

    def stride(self) -> tuple[int, ...]:
        """Strides in elements of a contiguous array of the shape."""
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    @staticmethod
    def data_ptr() -> int:
        """A stand-in for an aligned address."""
        return 0

    @staticmethod
    def ptr_range() -> int:
        """Bytes that the pointer may access: none."""
        return 0

    @staticmethod
    def wrap_dtype(arg: object) -> object:
        """A dtype as a MockTensor; anything else as it is."""
        return mocked(arg)


class TensorWrapper:
    """An array `base` with its elements reinterpreted as another dtype, `element`, of equal width.

    Its copies, also on other devices, have that dtype.
    """

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base = base
        self.dtype = dtype
        self.element = dtype_of(dtype)

    @property
    def shape(self) -> Any:
        """The shape of the array."""
        return self.base.shape

    @property
    def device(self) -> Any:
        """The device of the array; "cpu" for libraries without devices."""
        return getattr(self.base, "device", "cpu")

    @property
    def data(self) -> Any:
        """The elements with the dtype of the array; assign another array's to use them instead."""
        return self.base.data

    @data.setter
    def data(self, other: Any) -> None:
        self.base.data = other

    def cpu(self) -> TensorWrapper:
        """A copy in the host's memory."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        """A copy on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def clone(self) -> TensorWrapper:
        """A copy on the same device."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        """An uninitialized array of another shape on the same device."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def copy_(self, other: Any) -> None:
        """Copy the elements of another array into this one."""
        self.base.copy_(other.base if isinstance(other, TensorWrapper) else other)

    def data_ptr(self) -> int:
        """Address of the first element."""
        _, address = HANDLERS.key_and_value(self.base)
        return cast("int", address)

    def stride(self, *args: int) -> Any:
        """The strides of the array."""
        return self.base.stride(*args)

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.element.bytes

    def __repr__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base!r})"


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """Reinterpret the elements of an array as `dtype`, of equal width, without a copy.

    Errors: UnsupportedArgument for a value that is no array, or a dtype of another width.
    """
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    key, _ = HANDLERS.key_and_value(cast("object", base))
    if not isinstance(key, Spec) or not isinstance(key.type, PointerType):
        kind = type(base).__name__
        raise errors.UnsupportedArgument("tensor", kind, "reinterpret takes an array")
    element = dtype_of(dtype)
    if element.bits != key.type.element.bits:
        description = f"{key.type.element} array to be seen as {element}"
        raise errors.UnsupportedArgument("tensor", description, "choose a dtype of the same width")
    return base if key.type.element is element else TensorWrapper(base, dtype)


def dtype_of(value: Any) -> DType:
    """The element type that a dtype of the language, NumPy or torch denotes."""
    if isinstance(value, dtype):
        element = value.ir
        assert isinstance(element, DType)
        return element
    return element_type(getattr(value, "__name__", None) or str(value))


def stand_in(arg: object, name: str) -> object:
    """`mocked`, and a text such as "*fp16:16" as the argument that it states. name: of the
    parameter, for errors."""
    return _stated(arg, name) if type(arg) is str else mocked(arg)


def mocked(arg: object) -> object:
    """A dtype as a MockTensor; anything else as it is."""
    name = type(arg).__name__
    is_dtype = isinstance(arg, dtype) or name == "dtype" or "DType" in name
    if isinstance(arg, type):
        is_dtype = arg.__name__ in DTYPES and arg is not bool
    return MockTensor(arg) if is_dtype else arg


def _of_mock(value: MockTensor) -> Handled:
    return spec(PointerType(dtype_of(value.dtype)), ALIGNMENT, MOCK), 0


def _of_wrapper(value: TensorWrapper) -> Handled:
    key, address = HANDLERS.key_and_value(value.base)
    assert isinstance(key, Spec)
    type_ = PointerType(dtype_of(value.dtype))
    return spec(type_, key.divisor, key.device, key.read_only), address


def _resolve(kind: type[Any]) -> Handler | None:
    if issubclass(kind, MockTensor):
        return _of_mock
    return _of_wrapper if issubclass(kind, TensorWrapper) else None


# first, since the resolver of arrays accepts `data_ptr` and `dtype`
HANDLERS.resolvers.insert(0, _resolve)
