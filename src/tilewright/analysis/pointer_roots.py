"""Root pointers of addresses, which decide whether two accesses may overlap.

    %p = mem.offset %X, %i          root %X
    %q = arith.select %c, %p, %Y    roots %X and %Y
    cf.for ... %q (%k, %r) ...      the roots of %r: those of %q and of the yielded value
    %s = arith.cast %n + %m         the roots of the integers %n and %m, if they have 64 bits

Arguments, and loaded pointers, are assumed not to overlap unless they are the same address. In a
function with the attribute MAY_OVERLAP all pointer arguments are one root, as are integers that may
be an address.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ir.types import PointerType, element_of
from tilewright.ops import CatOp, JoinOp, SelectOp, incoming_values

MAY_OVERLAP = "may_overlap"
"""The attribute of a function whose pointer arguments may be parts of one array."""

_ADDRESS_BITS = 64
"""The bits of an address; narrower integers are not addresses."""


def roots(value: Value, cache: dict[Value, frozenset[Value]] | None = None) -> frozenset[Value]:
    """Arguments, loaded pointers and integers from which an address may be computed.

    cache: the roots of other values, to which those of `value` are added
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
    # Only this value: within the cycle of a loop the roots of others are incomplete.
    cache[value] = frozenset(starts)
    return cache[value]


def _sources(value: Value) -> Sequence[Value]:
    """The values from which an address is computed; none for a root."""
    if sources := incoming_values(value):
        return sources
    if value.op is not None:
        return () if Trait.PURE not in value.op.traits else _operand_sources(value.op)
    block = value.owner
    function = block.owner if isinstance(block, Block) else None
    if isinstance(function, Function) and function.attrs.get(MAY_OVERLAP):
        return _representative(function, value)
    return ()


def _operand_sources(op: Op) -> Sequence[Value]:
    if isinstance(op, SelectOp):
        return (op.x, op.y)
    if isinstance(op, JoinOp | CatOp):
        return (op.lhs, op.rhs)
    if isinstance(element_of(op.results[0].type), PointerType):
        return op.operands[:1]
    wide = (v for v in op.operands if element_of(v.type).bits == _ADDRESS_BITS)
    return [v for v in wide if v.op is None or v.op.operands]  # a constant is not a root


def _representative(function: Function, value: Value) -> Sequence[Value]:
    """The first pointer argument, which represents all arguments that may be an address."""
    pointers = (arg for arg in function.args if isinstance(arg.type, PointerType))
    first = next(pointers, value)
    holds_address = (
        isinstance(value.type, PointerType) or element_of(value.type).bits == _ADDRESS_BITS
    )
    return (first,) if holds_address and first is not value else ()
