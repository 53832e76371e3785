"""Values of a running kernel: `tensor`, `tuple` and `block_pointer`.

A tensor is a handle (an IR value) seen through the language: its attributes are facts of the
handle's type, its operators call the active dispatcher, its methods are the stubs that `member`
marks.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, SupportsIndex, TypeVar, cast, overload

from tilewright.ir import Value
from tilewright.ir.types import PointerType, element_of, shape_of
from tilewright.language.compile_time import base_value, constexpr
from tilewright.language.dtypes import dtype, pointer_type, type_of
from tilewright.language.stub_dispatch import dispatch_operator
from tilewright.language.unknown_names import unknown_member
from tilewright.support import errors

F = TypeVar("F", bound=Callable[..., Any])
ElementType = dtype


class tuple(builtins.tuple[Any, ...]):
    """A sequence of language values and compile-time values; a Python tuple means the same.

    Named tuples keep their fields.
    """

    __slots__ = ()

    @property
    def values(self) -> list[Any]:
        """The items, as a list."""
        return list(self)

    def __add__(self, other: object) -> Any:
        return tuple([*self, *cast("Iterable[Any]", other)])

    def __radd__(self, other: Iterable[Any]) -> Any:
        return tuple([*other, *self])

    def __mul__(self, count: SupportsIndex) -> Any:
        return tuple(list(self) * count.__index__())

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        # A slice of Python's tuple would be a plain tuple again.
        items = super().__getitem__(index)
        return tuple(items) if isinstance(index, slice) else items


class no_extents(tuple):
    """The shape of a scalar; its errors explain that it has no items. Named as `tuple` is."""

    __slots__ = ()

    def error(self, verb: str) -> errors.InvalidOperation:
        """The error for indexing or unpacking the shape."""
        return errors.InvalidOperation(f"{verb} the shape of a scalar", "it has no extents")

    def __getitem__(self, index: Any) -> Any:
        # x.shape[1:] of a scalar is empty, which is right; single items do not exist.
        if isinstance(index, slice):
            return tuple()
        raise self.error("index")


class _no_extents_of_a_pointer(no_extents):
    __slots__ = ()

    def error(self, verb: str) -> errors.InvalidOperation:
        reason = "it is an address, without the shape of an array"
        instead = "pass the sizes as arguments of the kernel"
        return errors.InvalidOperation(f"{verb} the shape of a pointer", reason, instead)


_NO_EXTENTS = (no_extents(), _no_extents_of_a_pointer())
"""The shapes of scalars, by whether they are pointers."""


@cache
def _shape_as_constexprs(shape: builtins.tuple[int, ...]) -> tuple:
    return tuple(constexpr(extent) for extent in shape)


def _operator(name: str) -> Callable[[Any, object], Any]:
    return lambda self, other: dispatch_operator(name, self, other)


def _reflected(name: str) -> Callable[[Any, object], Any]:
    return lambda self, other: dispatch_operator(name, other, self)


class tensor(base_value):
    """A scalar or a tile inside a kernel.

    handle: the IR value that it names. Operators broadcast and promote by the rules of the
    language; see `docs/semantics.md`. `and`, `or` and `if` need a scalar.
    """

    __slots__ = ("handle",)

    def __init__(self, handle: Value) -> None:
        self.handle = handle

    @property
    def type(self) -> ElementType:
        """dtype of a scalar, pointer_type, or block_type of a tile."""
        return type_of(self.handle.type)

    @property
    def dtype(self) -> ElementType:
        """Type of one element."""
        return type_of(element_of(self.handle.type))

    @property
    def shape(self) -> tuple:
        """Shape as constexprs; empty for a scalar."""
        type_ = self.handle.type
        return _shape_as_constexprs(shape_of(type_)) or _NO_EXTENTS[isinstance(type_, PointerType)]

    @property
    def numel(self) -> constexpr:
        """Number of elements; 1 for a scalar."""
        count = 1
        for extent in shape_of(self.handle.type):
            count *= extent
        return constexpr(count)

    @property
    def T(self) -> tensor:
        """The transposed tile."""
        # The stub is set by `member` after this class; the type checker cannot see it.
        return getattr(self, "trans")()  # noqa: B009 -- a member added by the stubs

    def __getattr__(self, name: str) -> Any:
        """Raise the error for a name that is no member."""
        pointer = isinstance(element_of(self.handle.type), PointerType)
        raise unknown_member("a pointer" if pointer else "a tensor", name, member_names())

    def __matmul__(self, other: object) -> Any:
        raise errors.UnsupportedLanguageConstruct("the operator '@'", "call tl.dot")

    # Both orders fail with the same advice, before Python's own TypeError.
    __rmatmul__ = __matmul__

    def __getitem__(self, index: object) -> tensor:
        return dispatch_operator("getitem", self, index)

    def __setitem__(self, index: object, value: object) -> None:
        raise errors.UnsupportedLanguageConstruct(
            "assigning to elements of a tensor", "use tl.where to select, or tl.store to memory"
        )

    def __iter__(self) -> Any:
        raise errors.UnsupportedLanguageConstruct(
            "iterating over a tensor", "loop over tl.range, or use a reduction such as tl.sum"
        )

    def __repr__(self) -> str:
        return f"tensor({self.handle!r})"

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("sub"), _reflected("sub")
    __mul__, __rmul__ = _operator("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _operator("truediv"), _reflected("truediv")
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _operator("mod"), _reflected("mod")
    __pow__, __rpow__ = _operator("pow"), _reflected("pow")
    __and__, __rand__ = _operator("and"), _reflected("and")
    __or__, __ror__ = _operator("or"), _reflected("or")
    __xor__, __rxor__ = _operator("xor"), _reflected("xor")
    __lshift__, __rlshift__ = _operator("lshift"), _reflected("lshift")
    __rshift__, __rrshift__ = _operator("rshift"), _reflected("rshift")
    __lt__, __le__ = _operator("lt"), _operator("le")
    __gt__, __ge__ = _operator("gt"), _operator("ge")

    def __eq__(self, other: object) -> Any:
        return dispatch_operator("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return dispatch_operator("ne", self, other)

    def __hash__(self) -> int:
        # __eq__ is the language's comparison, so hashing goes by identity.
        return id(self)

    def __neg__(self) -> tensor:
        return dispatch_operator("neg", self)

    def __pos__(self) -> tensor:
        return self

    def __invert__(self) -> tensor:
        return dispatch_operator("invert", self)

    def __bool__(self) -> bool:
        return dispatch_operator("bool", self)

    def __int__(self) -> int:
        return dispatch_operator("int", self)

    def __float__(self) -> float:
        return dispatch_operator("float", self)

    def __index__(self) -> int:
        return dispatch_operator("index", self)


def member(stub: F) -> F:
    """Make a stub a method of `tensor` too: `x.sum(0)` is `tl.sum(x, 0)`."""
    setattr(tensor, cast("Any", stub).__name__, stub)
    return stub


def member_names() -> list[str]:
    """Public attributes and methods of tensors, for error messages."""
    # "handle" is public but not of the language.
    return [name for name in dir(tensor) if not name.startswith("_") and name != "handle"]


class aggregate_value(base_value):
    """Base of values that consist of several values and compile-time facts.

    Where control flow joins, its `parts` are joined one by one. description: its name in messages.
    """

    __slots__ = ()

    description = "a value"

    def parts(self) -> list[Any]:
        """Its run-time values."""
        raise NotImplementedError(type(self).__name__)

    def rebuild(self, parts: Sequence[Any]) -> aggregate_value:
        """The same kind of value with other parts, in the order of `parts`."""
        raise NotImplementedError(type(self).__name__)

    def same_kind(self, other: aggregate_value) -> bool:
        """Whether both differ at most in their parts."""
        raise NotImplementedError(type(self).__name__)


class block_pointer(aggregate_value):
    """A window of `block_shape` elements into a strided array: the result of `make_block_ptr`.

    base: scalar pointer; shape and strides: int64 scalars, in elements; offsets: int32 scalars;
    order: dimensions from the most to the least contiguous, a hint.
    """

    description = "a block pointer"

    __slots__ = ("base", "block_shape", "offsets", "order", "strides", "whole")

    def __init__(
        self,
        base: tensor,
        whole: Sequence[tensor],
        strides: Sequence[tensor],
        offsets: Sequence[tensor],
        block_shape: builtins.tuple[int, ...],
        order: builtins.tuple[int, ...],
    ) -> None:
        self.base = base
        self.whole = builtins.tuple(whole)
        self.strides = builtins.tuple(strides)
        self.offsets = builtins.tuple(offsets)
        self.block_shape = block_shape
        self.order = order

    @property
    def dtype(self) -> pointer_type:
        """The pointer type; its `element_ty` is the type of a load."""
        type_ = self.base.handle.type
        assert isinstance(type_, PointerType)
        return cast("pointer_type", type_of(type_))

    @property
    def type(self) -> pointer_type:
        """As `dtype`."""
        return self.dtype

    @property
    def shape(self) -> tuple:
        """Shape of the window, as constexprs."""
        return _shape_as_constexprs(self.block_shape)

    def parts(self) -> list[tensor]:
        """The run-time values: base, shape, strides, offsets."""
        return [self.base, *self.whole, *self.strides, *self.offsets]

    def rebuild(self, parts: Sequence[tensor]) -> block_pointer:
        """The same kind of window with other run-time values, in the order of `parts`."""
        rank = len(self.block_shape)
        whole, strides, offsets = (parts[1 + i * rank : 1 + (i + 1) * rank] for i in range(3))
        return block_pointer(parts[0], whole, strides, offsets, self.block_shape, self.order)

    def same_kind(self, other: aggregate_value) -> bool:
        """Whether both are windows of one shape and order."""
        return (
            isinstance(other, block_pointer)
            and self.block_shape == other.block_shape
            and self.order == other.order
        )

    def __getattr__(self, name: str) -> Any:
        raise errors.UnknownAttribute(
            self.description, name, ("advance", "dtype", "type", "shape", "store")
        )

    def __repr__(self) -> str:
        return f"block_pointer({self.dtype}, {list(self.block_shape)})"
