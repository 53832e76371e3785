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
from tilewright.ir.types import PointerType, Type, element_of, with_element

CACHE_MODIFIERS = ("", ".ca", ".cg", ".cv", ".cs", ".wb", ".wt")
EVICTION_POLICIES = ("", "evict_first", "evict_last")
ATOMIC_KINDS = ("add", "max", "min", "and", "or", "xor", "xchg")
MEMORY_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("cta", "gpu", "sys")


def pointee(type_: Type) -> Type:
    """The type of what a pointer, or a tile of pointers, points to."""
    element = element_of(type_)
    assert isinstance(element, PointerType)
    return with_element(type_, element.element)


class OffsetOp(Op, opcode="mem.offset", traits=(Trait.PURE, Trait.ELEMENTWISE)):
    """result = pointer + offset elements; the offset may have any integer type"""

    pointer: Value = operand(pointer)
    offset: Value = operand(integer)

    def infer(self) -> Type:
        return self.pointer.type


class LoadOp(Op, opcode="mem.load", effects=(Effect.READ,)):
    """result[i] = *pointer[i] where mask[i], else other[i] (undefined without `other`)"""

    pointer: Value = operand(pointer)
    mask: Value | None = optional_operand(boolean, default=None)
    other: Value | None = optional_operand(any_type, default=None)
    cache: str = attr(default="", choices=CACHE_MODIFIERS)
    eviction: str = attr(default="", choices=EVICTION_POLICIES)
    volatile: bool = attr(default=False)

    def infer(self) -> Type:
        return pointee(self.pointer.type)


class StoreOp(Op, opcode="mem.store", effects=(Effect.WRITE,)):
    """*pointer[i] = value[i] where mask[i]"""

    pointer: Value = operand(pointer)
    stored: Value = operand(any_type)
    mask: Value | None = optional_operand(boolean, default=None)
    cache: str = attr(default="", choices=CACHE_MODIFIERS)
    eviction: str = attr(default="", choices=EVICTION_POLICIES)

    def infer(self) -> None:
        return None

    def verify(self) -> str | None:
        if pointee(self.pointer.type) is not self.stored.type:
            return f"stores {self.stored.type} through {self.pointer.type}"
        return None


class AtomicOp(Op, opcode="mem.atomic", effects=(Effect.READ, Effect.WRITE)):
    """result[i] = *pointer[i]; *pointer[i] = kind(result[i], operand[i]); atomic, where mask[i]"""

    pointer: Value = operand(pointer)
    operand: Value = operand(any_type)
    mask: Value | None = optional_operand(boolean, default=None)
    kind: str = attr(default="add", choices=ATOMIC_KINDS)
    order: str = attr(default="acq_rel", choices=MEMORY_ORDERS)
    scope: str = attr(default="gpu", choices=SCOPES)

    def infer(self) -> Type:
        return pointee(self.pointer.type)


class AtomicCasOp(Op, opcode="mem.atomic_cas", effects=(Effect.READ, Effect.WRITE)):
    """result[i] = *pointer[i]; *pointer[i] = new[i] if result[i] == expected[i], atomically"""

    pointer: Value = operand(pointer)
    expected: Value = operand(any_type)
    new: Value = operand(any_type)
    order: str = attr(default="acq_rel", choices=MEMORY_ORDERS)
    scope: str = attr(default="gpu", choices=SCOPES)

    def infer(self) -> Type:
        return pointee(self.pointer.type)


class BarrierOp(Op, opcode="mem.barrier", effects=(Effect.BARRIER,)):
    """Every memory operation before it is done before any after it, within the program instance."""

    def infer(self) -> None:
        return None
