"""Global memory: pointer arithmetic, loads, stores, atomics."""

from __future__ import annotations

from tilewright.ir import (
    Effect,
    Op,
    Trait,
    Value,
    any_type,
    attr,
    boolean,
    integer,
    operand,
    optional_operand,
    pointer,
)
from tilewright.ir.types import (
    DType,
    PointerType,
    Type,
    bf16,
    element_of,
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
    shape_of,
    u16,
    u32,
    u64,
    with_element,
)

LOAD_MODIFIERS = ("", ".ca", ".cg", ".cv", ".cs")
STORE_MODIFIERS = ("", ".wb", ".cg", ".cs", ".wt")
EVICTION_POLICIES = ("", "evict_first", "evict_last")
_INTEGERS = (i32, u32, i64, u64)
ATOMIC_TYPES: dict[str, tuple[DType, ...]] = {
    "add": (*_INTEGERS, f16, bf16, f32, f64),
    "max": (*_INTEGERS, f16, bf16, f32, f64),
    "min": (*_INTEGERS, f16, bf16, f32, f64),
    "and": _INTEGERS,
    "or": _INTEGERS,
    "xor": _INTEGERS,
    "xchg": (*_INTEGERS, f32, f64),
    **dict.fromkeys(("load", "store", "cas"), (*_INTEGERS, i16, u16, f16, bf16, f32, f64)),
}
"""The element types of each atomic operation."""

ATOMIC_KINDS = tuple(kind for kind in ATOMIC_TYPES if kind != "cas")
MEMORY_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
ACCESS_ORDERS = {"load": ("acquire", "relaxed"), "store": ("release", "relaxed")}
"""The MEMORY_ORDERS of atomic loads and stores."""
SCOPES = ("cta", "gpu", "sys")


def pointee(type_: Type) -> Type:
    """The type that a pointer, or a tile of pointers, points to."""
    element = element_of(type_)
    assert isinstance(element, PointerType)
    return with_element(type_, element.element)


def _wrong_mask(pointer: Value, mask: Value | None) -> str | None:
    if mask is None or shape_of(mask.type) == shape_of(pointer.type):
        return None
    return f"the mask {mask.type} does not fit the pointer {pointer.type}"


def _wrong_value(pointer: Value, value: Value, verb: str) -> str | None:
    """The error in storing `value` through `pointer`, or None."""
    if pointee(pointer.type) is value.type:
        return None
    return f"{verb} {value.type} through {pointer.type}"


def _wrong_atomic(kind: str, pointer: Value) -> str | None:
    element = element_of(pointee(pointer.type))
    if element in ATOMIC_TYPES[kind]:
        return None
    return f"{kind} supports {', '.join(map(str, ATOMIC_TYPES[kind]))}, not {element}"


def _wrong_order(kind: str, order: str) -> str | None:
    orders = ACCESS_ORDERS.get(kind, MEMORY_ORDERS)
    return None if order in orders else f"a {kind} is {' or '.join(orders)}, not {order}"


def _const(pointer: Value) -> str | None:
    element = element_of(pointer.type)
    assert isinstance(element, PointerType)
    return "writes through a const pointer" if element.const else None


class OffsetOp(Op, opcode="mem.offset", traits=(Trait.PURE, Trait.ELEMENTWISE)):
    """result = pointer + offset elements; the offset may have any integer type"""

    pointer: Value = operand(pointer)
    offset: Value = operand(integer)

    def infer(self) -> Type:
        return self.pointer.type


class LoadOp(Op, opcode="mem.load", effects=(Effect.READ,)):
    """result[i] = *pointer[i] where mask[i], else other[i], or 0 without `other`

    read_only: the kernel does not write the memory that is loaded; by_owner: of the threads that
    hold an element only the one that stores it loads it, as nothing else uses it
    """

    pointer: Value = operand(pointer)
    mask: Value | None = optional_operand(boolean, default=None)
    other: Value | None = optional_operand(any_type, default=None)
    cache: str = attr(default="", choices=LOAD_MODIFIERS)
    eviction: str = attr(default="", choices=EVICTION_POLICIES)
    volatile: bool = attr(default=False)
    read_only: bool = attr(default=False)
    by_owner: bool = attr(default=False)

    def infer(self) -> Type:
        return pointee(self.pointer.type)

    def verify(self) -> str | None:
        if self.other is not None and self.other.type is not pointee(self.pointer.type):
            return f"`other` is {self.other.type}, but the load is of {pointee(self.pointer.type)}"
        return _wrong_mask(self.pointer, self.mask)


class StoreOp(Op, opcode="mem.store", effects=(Effect.WRITE,)):
    """*pointer[i] = value[i] where mask[i]"""

    pointer: Value = operand(pointer)
    stored: Value = operand(any_type)
    mask: Value | None = optional_operand(boolean, default=None)
    cache: str = attr(default="", choices=STORE_MODIFIERS)
    eviction: str = attr(default="", choices=EVICTION_POLICIES)

    def verify(self) -> str | None:
        return (
            _wrong_value(self.pointer, self.stored, "stores")
            or _wrong_mask(self.pointer, self.mask)
            or _const(self.pointer)
        )


class AtomicOp(Op, opcode="mem.atomic", effects=(Effect.READ, Effect.WRITE)):
    """result[i] = *pointer[i]; *pointer[i] = kind(result[i], operand[i]); atomic, where mask[i]

    A load ignores its operand; the result of a store is its operand.
    """

    pointer: Value = operand(pointer)
    operand: Value = operand(any_type)
    mask: Value | None = optional_operand(boolean, default=None)
    kind: str = attr(default="add", choices=ATOMIC_KINDS)
    order: str = attr(default="acq_rel", choices=MEMORY_ORDERS)
    scope: str = attr(default="gpu", choices=SCOPES)

    @property
    def is_reduction(self) -> bool:
        """Whether the old value is unused and the order relaxed, so that a `red` suffices."""
        return self.order == "relaxed" and not self.result.uses and self.kind != "load"

    def infer(self) -> Type:
        return pointee(self.pointer.type)

    def verify(self) -> str | None:
        return (
            _wrong_value(self.pointer, self.operand, "combines")
            or _wrong_atomic(self.kind, self.pointer)
            or _wrong_mask(self.pointer, self.mask)
            or _wrong_order(self.kind, self.order)
            or (None if self.kind == "load" else _const(self.pointer))
        )


class AtomicCasOp(Op, opcode="mem.atomic_cas", effects=(Effect.READ, Effect.WRITE)):
    """result[i] = *pointer[i]; *pointer[i] = new[i] if result[i] == expected[i], atomically"""

    pointer: Value = operand(pointer)
    expected: Value = operand(any_type)
    new: Value = operand(any_type)
    order: str = attr(default="acq_rel", choices=MEMORY_ORDERS)
    scope: str = attr(default="gpu", choices=SCOPES)

    def infer(self) -> Type:
        return pointee(self.pointer.type)

    def verify(self) -> str | None:
        return (
            _wrong_value(self.pointer, self.expected, "compares")
            or _wrong_value(self.pointer, self.new, "stores")
            or _wrong_atomic("cas", self.pointer)
            or _const(self.pointer)
        )


class BarrierOp(Op, opcode="mem.barrier", effects=(Effect.BARRIER,)):
    """Complete all memory operations of the program instance before any later one starts."""
