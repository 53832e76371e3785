"""Integers that are not negative by the relation of several ops, or by `tl.assume`.

%g = div %pid, %n;  %r = sub %pid, (mul %g, %n)     %r is the remainder of %pid
%p = cast (rem %x, (cast %programs : u32)) : i32    %p is below the number of programs of an axis
cf.assume (compare %r, 0 {"ge"})                    `tl.assume(r >= 0)`
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir import Function, Op, Value
from tilewright.ir.types import i32
from tilewright.ops import (
    AndOp,
    AssumeOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    MinOp,
    MulOp,
    NumProgramsOp,
    RemOp,
    SubOp,
)


def leaves_remainder(op: Op) -> bool:
    """Whether an op is x - x // n * n, which is x % n and has the sign of x."""
    if not isinstance(op, SubOp):
        return False
    product = op.rhs.op
    if not isinstance(product, MulOp):
        return False
    factors = (product.lhs, product.rhs)
    return any(
        isinstance(quotient.op, DivOp) and quotient.op.operands == [op.lhs, divisor]
        for quotient, divisor in (factors, factors[::-1])
    )


def is_place_in_grid(op: Op) -> bool:
    """Whether an op is `x % num_programs`, or the minimum of x and a constant, cast to i32: such
    an unsigned number fits."""
    place = op.x.op if isinstance(op, CastOp) else None
    limit = place.rhs.op if isinstance(place, RemOp | MinOp) else None
    if isinstance(place, MinOp):
        return isinstance(limit, ConstantOp) and 0 <= limit.value <= i32.max_int
    return isinstance(limit, CastOp) and isinstance(limit.x.op, NumProgramsOp)


def promised_non_negative(function: Function) -> frozenset[Value]:
    """The values that `tl.assume` states not to be negative, in the block that computes them."""
    return frozenset(
        value
        for op in function.walk()
        if isinstance(op, AssumeOp)
        for value in _bounded_below(op.condition)
        # elsewhere the assumption may not be reached
        if value.block is op.parent
    )


def _bounded_below(condition: Value) -> Iterator[Value]:
    """The values that are not negative if a condition holds."""
    op = condition.op
    if isinstance(op, AndOp):
        yield from _bounded_below(op.lhs)
        yield from _bounded_below(op.rhs)
    elif isinstance(op, CompareOp):
        # the condition as left > right or left >= right
        sides = (op.lhs, op.rhs) if op.predicate in ("gt", "ge") else (op.rhs, op.lhs)
        strict = {"gt": 1, "lt": 1, "ge": 0, "le": 0}.get(op.predicate)
        least = sides[1].op
        if isinstance(least, ConstantOp) and strict is not None and least.value + strict >= 0:
            yield sides[0]
