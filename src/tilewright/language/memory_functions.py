"""Loads, stores, atomics and block pointers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tilewright.language.compile_time import constexpr
from tilewright.language.core import Operand, Shape
from tilewright.language.stub_dispatch import builtin, must_use_result
from tilewright.language.tensors import block_pointer, member, tensor


@builtin
def load(
    pointer: tensor | block_pointer,
    mask: Operand | None = None,
    other: Operand | None = None,
    boundary_check: Sequence[int] = (),
    padding_option: str | constexpr = "",
    cache_modifier: str | constexpr = "",
    eviction_policy: str | constexpr = "",
    volatile: bool | constexpr = False,
) -> tensor:
    """The value at `pointer`: a scalar, or a tile in the shape of a tile of pointers.

    mask: int1; elements where it is false are not read and give `other`, or anything without it.
    mask and other broadcast against the pointer; `other` takes the element type.
    A block pointer takes instead `boundary_check`, the dimensions to check against the array, and
    `padding_option`, the value outside: "zero", "nan" or "" (anything).
    cache_modifier ("", ".ca", ".cg", ".cv", ".cs"), eviction_policy ("", "evict_first",
    "evict_last"): hints. volatile: never cached or merged.
    Errors: ShapeMismatch; InvalidOperation for a value that is no pointer, a mask that is not int1,
    `other` without `mask`.
    """
    ...


@member
@builtin
def store(
    pointer: tensor | block_pointer,
    value: Operand,
    mask: Operand | None = None,
    boundary_check: Sequence[int] = (),
    cache_modifier: str | constexpr = "",
    eviction_policy: str | constexpr = "",
) -> None:
    """Write `value`, broadcast to the pointer's shape and cast to its element type, where `mask`.

    cache_modifier: "", ".wb", ".cg", ".cs", ".wt". boundary_check: as for `load`.
    Errors: ShapeMismatch, StoreToConst; InvalidOperation for a value that is no pointer, a mask
    that is not int1, a value that does not convert.
    """
    ...


@builtin
def make_block_ptr(
    base: tensor,
    shape: Shape | Sequence[Operand],
    strides: Sequence[Operand],
    offsets: Sequence[Operand],
    block_shape: Shape,
    order: Sequence[int] | constexpr,
) -> block_pointer:
    """A window of `block_shape` at `offsets` into the array `base[shape]` with `strides`
    (elements).

    All five sequences have one length; shape and strides become int64, offsets int32; order lists
    the dimensions from the most contiguous on, a hint.
    """
    ...


@must_use_result("it has no side effects: assign the window that it returns to a variable")
@member
@builtin
def advance(base: block_pointer, offsets: Sequence[Operand]) -> block_pointer:
    """The window moved by `offsets` (one for each dimension); `base` itself does not change."""
    ...


F = TypeVar("F", bound=Callable[..., Any])

# setattr: the class is defined in `tensors`, which must not import this module.
setattr(block_pointer, "advance", advance)  # noqa: B010 -- methods of the window
setattr(block_pointer, "store", store)  # noqa: B010

_ATOMIC = """

    Atomically for each element where `mask`; the result is undefined elsewhere.
    sem: "acquire", "release", "acq_rel" (default) or "relaxed"; scope: "gpu" (default), "cta",
    "sys".
    Errors: InvalidOperation for element types without this operation, ShapeMismatch,
    StoreToConst.
    """


def _atomic(stub: F) -> F:
    # The shared part of the docstring, before `member` makes the stub a method.
    stub.__doc__ = (stub.__doc__ or "").rstrip() + _ATOMIC
    return member(stub)


@_atomic
@builtin
def atomic_add(
    pointer: tensor,
    val: Operand,
    mask: Operand | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Add `val`; returns the old value. fp16, bf16, fp32, fp64, 32- and 64-bit integers."""
    ...


@_atomic
@builtin
def atomic_max(
    pointer: tensor,
    val: Operand,
    mask: Operand | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Store the larger of memory and `val`; returns the old value. Types: as `atomic_add`."""
    ...


@_atomic
@builtin
def atomic_min(
    pointer: tensor,
    val: Operand,
    mask: Operand | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Store the smaller of memory and `val`; returns the old value. Types: as `atomic_add`."""
    ...


@_atomic
@builtin
def atomic_and(
    pointer: tensor,
    val: Operand,
    mask: Operand | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Bitwise and with `val`; returns the old value. 32- and 64-bit integers."""
    ...


@_atomic
@builtin
def atomic_or(
    pointer: tensor,
    val: Operand,
    mask: Operand | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Bitwise or with `val`; returns the old value. 32- and 64-bit integers."""
    ...


@_atomic
@builtin
def atomic_xor(
    pointer: tensor,
    val: Operand,
    mask: Operand | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Bitwise xor with `val`; returns the old value. 32- and 64-bit integers."""
    ...


@_atomic
@builtin
def atomic_xchg(
    pointer: tensor,
    val: Operand,
    mask: Operand | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Store `val`; returns the old value. 32 and 64 bits."""
    ...


@member
@builtin
def atomic_load(
    pointer: tensor,
    mask: Operand | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """The value in memory, read atomically where `mask`. Numbers of 16, 32 and 64 bits.

    sem: "acquire" (default) or "relaxed"; scope: as for `atomic_add`. Errors: InvalidOperation for
    other types, ShapeMismatch, InvalidValue.
    """
    ...


@member
@builtin
def atomic_store(
    pointer: tensor,
    val: Operand,
    mask: Operand | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> None:
    """Store `val` atomically where `mask`. Numbers of 16, 32 and 64 bits.

    sem: "release" (default) or "relaxed"; scope: as for `atomic_add`. Errors: InvalidOperation
    for other types, ShapeMismatch, InvalidValue, StoreToConst.
    """
    ...


@member
@builtin
def atomic_poll(
    pointer: tensor,
    expected_value: Operand,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
    timeout_ns: Operand | None = None,
) -> tensor:
    """Wait until memory holds `expected_value`; int1: whether it did in time. Integers.

    sem: "acquire" (default) or "relaxed"; scope: as for `atomic_add`. timeout_ns: for all elements
    together, by `tl.extra.cuda.globaltimer`; None waits forever. Errors: InvalidOperation
    for other types, ShapeMismatch, InvalidValue.
    """
    ...


@member
@builtin
def atomic_cas(
    pointer: tensor,
    cmp: Operand,
    val: Operand,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Store `val` where memory holds `cmp`; returns the old value. 16, 32 and 64 bits.

    sem, scope: as for `atomic_add`. Errors: InvalidOperation, ShapeMismatch, StoreToConst.
    """
    ...


@builtin
def debug_barrier() -> None:
    """A barrier for memory operations within the program instance: none moves across it."""
    ...
