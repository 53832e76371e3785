"""Atomic reads and writes of memory."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.memory_access import (
    broadcast_mask,
    check_writable,
    converted,
    pointee_type,
    pointer_argument,
)
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import call, implements
from tilewright.ir import Value
from tilewright.language import tensor, type_of
from tilewright.ops import (
    ACCESS_ORDERS,
    ATOMIC_TYPES,
    MEMORY_ORDERS,
    SCOPES,
    AtomicCasOp,
    AtomicOp,
    BarrierOp,
)
from tilewright.support import errors


def _target(ctx: Context, kind: str, pointer: object) -> Value:
    address = pointer_argument(ctx, f"atomic_{kind}", pointer)
    if kind != "load":
        check_writable(ctx, address)
    element = pointee_type(address)
    if element not in ATOMIC_TYPES[kind]:
        names = ", ".join(str(type_of(dtype)) for dtype in ATOMIC_TYPES[kind])
        ctx.fail(
            errors.InvalidOperation,
            f"atomic_{kind} on {type_of(element)}",
            f"it works on {names}",
        )
    return address


def _ordering(ctx: Context, kind: str, sem: object, scope: object) -> tuple[str, str]:
    function = f"atomic_{kind}"
    orders = ACCESS_ORDERS.get(kind, MEMORY_ORDERS)
    default = orders[0] if kind in ACCESS_ORDERS else "acq_rel"
    order = constant_arguments.choice(ctx, function, "sem", sem, orders, default)
    return order, constant_arguments.choice(ctx, function, "scope", scope, SCOPES, "gpu")


def atomic(
    ctx: Context, kind: str, pointer: object, val: object, mask: object, sem: object, scope: object
) -> tensor:
    """One read-modify-write of each element; returns the old values."""
    address = _target(ctx, kind, pointer)
    order, extent = _ordering(ctx, kind, sem, scope)
    # The mask may widen the pointers, so the value is broadcast after it.
    address, condition = broadcast_mask(ctx, f"atomic_{kind}", address, mask)
    value = converted(ctx, f"atomic_{kind}", address, val)
    return ctx.tensor(AtomicOp(address, value, condition, kind, order, extent))


def _register(kind: str) -> None:
    @implements(getattr(tl, f"atomic_{kind}"))
    def function(  # pyright: ignore[reportUnusedFunction]
        ctx: Context,
        pointer: object,
        val: object,
        mask: object = None,
        sem: object = None,
        scope: object = None,
    ) -> tensor:
        return atomic(ctx, kind, pointer, val, mask, sem, scope)


for _kind in ("add", "max", "min", "and", "or", "xor", "xchg"):
    _register(_kind)


@implements(tl.atomic_load)
def atomic_load(
    ctx: Context, pointer: object, mask: object = None, sem: object = None, scope: object = None
) -> tensor:
    # a number that the op ignores: all kinds have one form
    return atomic(ctx, "load", pointer, 0, mask, sem, scope)


@implements(tl.atomic_store)
def atomic_store(
    ctx: Context,
    pointer: object,
    val: object,
    mask: object = None,
    sem: object = None,
    scope: object = None,
) -> None:
    atomic(ctx, "store", pointer, val, mask, sem, scope)


@implements(tl.atomic_poll)
def atomic_poll(
    ctx: Context,
    pointer: object,
    expected_value: object,
    sem: object = None,
    scope: object = None,
    timeout_ns: object = None,
) -> tensor:
    address = pointer_argument(ctx, "atomic_poll", pointer)
    element = pointee_type(address)
    if element.is_float:
        reason = "it works on int16, uint16, int32, uint32, int64, uint64"
        ctx.fail(errors.InvalidOperation, f"atomic_poll on {type_of(element)}", reason)
    return call(ctx, tl.poll, (pointer, expected_value, sem, scope, timeout_ns), {})


@implements(tl.atomic_cas)
def atomic_cas(
    ctx: Context,
    pointer: object,
    cmp: object,
    val: object,
    sem: object = None,
    scope: object = None,
) -> tensor:
    address = _target(ctx, "cas", pointer)
    order, extent = _ordering(ctx, "cas", sem, scope)
    # Literals wrap to the pointee's type here, as in a store.
    expected = converted(ctx, "atomic_cas", address, cmp)
    new = converted(ctx, "atomic_cas", address, val)
    return ctx.tensor(AtomicCasOp(address, expected, new, order, extent))


@implements(tl.debug_barrier)
def debug_barrier(ctx: Context) -> None:
    ctx.emitter.emit(BarrierOp())
