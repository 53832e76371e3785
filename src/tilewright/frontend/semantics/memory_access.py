"""Loads and stores through pointers and tiles of pointers."""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.frontend.dtype_promotion import Literal
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.block_pointers import load_window, store_window
from tilewright.frontend.semantics.broadcasting import broadcast_value, common_shape
from tilewright.frontend.semantics.dtype_casts import cast_to
from tilewright.frontend.semantics.literal_constants import (
    constant,
    describe,
    dtype_of_literal,
    is_literal,
)
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir import Value
from tilewright.ir.types import DType, PointerType, element_of, i1, shape_of, with_shape
from tilewright.language import block_pointer, tensor, tensor_descriptor_base, type_of
from tilewright.ops import (
    EVICTION_POLICIES,
    LOAD_MODIFIERS,
    MEMORY_ORDERS,
    SCOPES,
    STORE_MODIFIERS,
    LoadOp,
    StoreOp,
)
from tilewright.support import errors

_HINT_VALUES = {
    "sem": MEMORY_ORDERS,
    "scope": SCOPES,
    "cache_modifier": {*LOAD_MODIFIERS, *STORE_MODIFIERS} - {""},
    "eviction_policy": EVICTION_POLICIES[1:],
}
"""Argument -> values of it that are sometimes passed in the position of the mask."""


@implements(tl.load)
def load(
    ctx: Context,
    pointer: object,
    mask: object = None,
    other: object = None,
    boundary_check: object = (),
    padding_option: object = "",
    cache_modifier: object = "",
    eviction_policy: object = "",
    volatile: object = False,
) -> tensor:
    hints = (
        constant_arguments.choice(
            ctx, "load", "cache_modifier", cache_modifier, LOAD_MODIFIERS, ""
        ),
        constant_arguments.choice(
            ctx, "load", "eviction_policy", eviction_policy, EVICTION_POLICIES, ""
        ),
        constant_arguments.flag(ctx, "load", "volatile", volatile),
    )
    if isinstance(pointer, block_pointer):
        # A block pointer already has its mask: `boundary_check`.
        _reject_mask(ctx, "load", mask, other)
        window = load_window(ctx, pointer, boundary_check, padding_option)
        return ctx.tensor(LoadOp(window.pointer, window.mask, window.other, *hints))
    _reject_window_options(ctx, "load", boundary_check, padding_option)
    address = pointer_argument(ctx, "load", pointer)
    if other is not None and mask is None:
        ctx.fail(
            errors.InvalidOperation,
            "load with 'other' but no 'mask'",
            "'other' is the value of masked-out elements",
            "add mask=..., or remove other=...",
        )
    address, condition = broadcast_mask(ctx, "load", address, mask)
    if condition is None:
        return ctx.tensor(LoadOp(address, None, None, *hints))
    rest = None if other is None else converted(ctx, "load", address, other)
    return ctx.tensor(LoadOp(address, condition, rest, *hints))


@implements(tl.store)
def store(
    ctx: Context,
    pointer: object,
    value: object,
    mask: object = None,
    boundary_check: object = (),
    cache_modifier: object = "",
    eviction_policy: object = "",
) -> None:
    hints = (
        constant_arguments.choice(
            ctx, "store", "cache_modifier", cache_modifier, STORE_MODIFIERS, ""
        ),
        constant_arguments.choice(
            ctx, "store", "eviction_policy", eviction_policy, EVICTION_POLICIES, ""
        ),
    )
    if isinstance(pointer, block_pointer):
        _reject_mask(ctx, "store", mask, None)
        check_writable(ctx, pointer.base.handle)
        window = store_window(ctx, pointer, boundary_check)
        stored = converted(ctx, "store", window.pointer, value)
        ctx.emitter.emit(StoreOp(window.pointer, stored, window.mask, *hints))
        return
    _reject_window_options(ctx, "store", boundary_check, "")
    address = pointer_argument(ctx, "store", pointer)
    check_writable(ctx, address)
    stored = converted(ctx, "store", address, value)
    # Unlike a load, a store keeps the shape of its pointer: the mask must broadcast to it.
    condition = mask_for(ctx, "store", address, mask)
    ctx.emitter.emit(StoreOp(address, stored, condition, *hints))


def pointer_argument(ctx: Context, function: str, pointer: object) -> Value:
    """The value of a pointer or a tile of pointers. Errors: InvalidOperation."""
    if isinstance(pointer, tensor):
        value = pointer.handle
        if isinstance(element_of(value.type), PointerType):
            return value
    instead = "pass an array to the kernel and add offsets to its parameter"
    if isinstance(pointer, tensor_descriptor_base):
        methods = ("load(offsets)", "store(offsets, value)", "atomic_add(offsets, value)")
        instead = "call its methods: " + ", ".join(f"d.{method}" for method in methods)
    what = f"{function} through {describe(pointer)}"
    ctx.fail(errors.InvalidOperation, what, "it is no pointer", instead)


def check_writable(ctx: Context, pointer: Value) -> None:
    """Check that a pointer may be stored to. Errors: StoreToConst for one annotated `tl.const`."""
    element = element_of(pointer.type)
    if isinstance(element, PointerType) and element.const:
        ctx.fail(errors.StoreToConst, pointer.name or "the pointer")


def pointee_type(pointer: Value) -> DType:
    """The element type that a pointer, or each of a tile, points to."""
    element = element_of(pointer.type)
    assert isinstance(element, PointerType)
    return element.element


def broadcast_mask(
    ctx: Context, function: str, pointer: Value, mask: object
) -> tuple[Value, Value | None]:
    """Pointer and mask in their common shape; only a tile of pointers widens to its mask."""
    if isinstance(mask, tensor) and shape_of(pointer.type):
        shapes = shape_of(mask.handle.type), shape_of(pointer.type)
        what = f"{function} with a mask"
        shape = common_shape(ctx, what, *shapes, mismatch=errors.AccessMismatch)
        pointer = broadcast_value(ctx, pointer, shape)
    return pointer, mask_for(ctx, function, pointer, mask)


def mask_for(ctx: Context, function: str, pointer: Value, mask: object) -> Value | None:
    """The mask in the pointer's shape; None for none and for True. Errors: InvalidOperation"""
    # A literal True masks nothing; an access without a mask is cheaper on every backend.
    if mask is None or mask is True:
        return None
    shape = shape_of(pointer.type)
    if mask is False:
        return constant(ctx, False, with_shape(i1, shape))
    # Not converted to int1: a mask of integers is usually another argument passed by position.
    if not isinstance(mask, tensor) or element_of(mask.handle.type) is not i1:
        actual = mask.dtype if isinstance(mask, tensor) else describe(mask)
        ctx.fail(
            errors.InvalidOperation,
            f"{function} with a mask of {actual}",
            "a mask is int1",
            _mask_advice(mask),
        )
    _check_block(ctx, function, "mask", shape, mask)
    what = f"{function} with a mask"
    return broadcast_value(ctx, mask.handle, shape, what, mismatch=errors.AccessMismatch)


def _mask_advice(mask: object) -> str:
    """The advice for a value that is no mask but is passed in its position."""
    for name, values in _HINT_VALUES.items():
        if isinstance(mask, str) and mask in values:
            return f'name the argument: {name}="{mask}"'
    if is_literal(mask):
        return f"name the argument if it is another: other={mask}"
    return "compare it: mask=m != 0"


def converted(ctx: Context, function: str, pointer: Value, value: object) -> Value:
    """A value in the pointer's shape and the dtype that it points to."""
    element, shape = pointee_type(pointer), shape_of(pointer.type)
    # As C and Triton do on a store: the literal wraps to the pointee's type.
    if is_literal(value):
        dtype_of_literal(ctx, value)  # for its error: nothing holds more than 64 bits
        return constant(ctx, _wrapped(value, element), with_shape(element, shape))
    if not isinstance(value, tensor):
        ctx.fail(errors.InvalidOperation, f"{function} {describe(value)}", "it is no number")
    _check_block(ctx, function, "value", shape, value)
    number = cast_to(ctx, value, type_of(element)).handle
    what = "load with 'other'" if function == "load" else f"{function} a value"
    return broadcast_value(ctx, number, shape, what, mismatch=errors.AccessMismatch)


def _wrapped(value: Literal, element: DType) -> Literal:
    """A literal, converted from its own dtype."""
    return element.wrap(int(value)) if element.is_integer else value


def _check_block(
    ctx: Context, function: str, name: str, shape: tuple[int, ...], value: tensor
) -> None:
    extents = shape_of(value.handle.type)
    if extents and not shape:
        ctx.fail(
            errors.InvalidOperation,
            f"{function} a {name} of shape {extents} through a scalar pointer",
            "the pointer must have the shape of the access",
            "add a tile of offsets to the pointer, such as tl.arange(...)",
        )


def _reject_mask(ctx: Context, function: str, mask: object, other: object) -> None:
    if mask is not None or other is not None:
        ctx.fail(
            errors.InvalidOperation,
            f"{function} through a block pointer with 'mask' or 'other'",
            "a block pointer checks its own bounds",
            'use boundary_check=(0, 1) and padding_option="zero"',
        )


def _reject_window_options(ctx: Context, function: str, check: Any, padding: object) -> None:
    # `()` and `""` are the defaults: equal arguments cannot be distinguished from them.
    if tuple(check or ()) or padding:
        ctx.fail(
            errors.InvalidOperation,
            f"{function} through a tensor of pointers with 'boundary_check' or 'padding_option'",
            "these belong to block pointers",
            "use mask=... and other=...",
        )
