"""From which pointers an address starts: what decides whether two accesses may meet.

    %p = mem.offset %X, %i          starts from %X
    %q = arith.select %c, %p, %Y    from %X or %Y
    cf.for ... %q (%k, %r) ...      %r from what %q does, and from what the body yields
    %s = arith.cast %n + %m         from what the integers %n and %m start from, if of 64 bits

Arguments are taken not to overlap unless they are the same address, as are pointers that are
loaded. In a function with the attribute MAY_OVERLAP all pointer arguments count as one, and so do
integers that may hold an address.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ir.types import PointerType, element_of
from tilewright.ops import CatOp, ForOp, IfOp, JoinOp, SelectOp, WhileOp

MAY_OVERLAP = "may_overlap"
"""Attribute of a function: its pointer arguments may be parts of one array."""

_ADDRESS_BITS = 64
"""Integers of fewer hold no address."""


def roots(value: Value, cache: dict[Value, frozenset[Value]] | None = None) -> frozenset[Value]:
    """Arguments, loaded pointers and integers that an address may be computed from.

    cache: the roots of values that were computed before; those of `value` are added
    """
    cache = {} if cache is None else cache
    starts: set[Value] = set()
    seen: set[Value] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        sources = _sources(current)
        if current in cache:
            starts |= cache[current]
        elif sources:
            stack += sources
        else:
            starts.add(current)
    # Only the value asked for: within the cycle of a loop the answers for others are not complete.
    cache[value] = frozenset(starts)
    return cache[value]


def _sources(value: Value) -> Sequence[Value]:
    """The values that an address is made of; none for a root."""
    op = value.op
    if op is None:
        return _of_argument(value)
    if isinstance(op, IfOp):
        return [region.terminator.operands[value.index] for region in op.regions]
    if isinstance(op, ForOp):
        return (op.inits[value.index], op.body.terminator.operands[value.index])
    if isinstance(op, WhileOp):
        return (op.before.terminator.operands[1 + value.index],)
    return () if Trait.PURE not in op.traits else _of_operands(op)


def _of_operands(op: Op) -> Sequence[Value]:
    if isinstance(op, SelectOp):
        return (op.x, op.y)
    if isinstance(op, JoinOp | CatOp):
        return (op.lhs, op.rhs)
    if isinstance(element_of(op.results[0].type), PointerType):
        return op.operands[:1]
    wide = (v for v in op.operands if element_of(v.type).bits == _ADDRESS_BITS)
    return [v for v in wide if v.op is None or v.op.operands]  # a constant is no start


def _of_argument(value: Value) -> Sequence[Value]:
    """What a carried value starts from, and what the body passes on; nothing for a parameter."""
    block = value.owner
    assert isinstance(block, Block)
    owner = block.owner
    if isinstance(owner, ForOp) and value.index > 0:
        at = value.index - 1
        return (owner.inits[at], block.terminator.operands[at])
    if isinstance(owner, WhileOp):
        if block is owner.body:
            return (owner.before.terminator.operands[1 + value.index],)
        return (owner.inits[value.index], owner.body.terminator.operands[value.index])
    if isinstance(owner, Function) and owner.attrs.get(MAY_OVERLAP):
        return _stand_in(owner, value)
    return ()


def _stand_in(function: Function, value: Value) -> Sequence[Value]:
    """The first pointer argument, for every other argument that may hold an address."""
    pointers = (arg for arg in function.args if isinstance(arg.type, PointerType))
    first = next(pointers, value)
    holds_address = (
        isinstance(value.type, PointerType) or element_of(value.type).bits == _ADDRESS_BITS
    )
    return (first,) if holds_address and first is not value else ()
