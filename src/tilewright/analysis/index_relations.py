"""Integers that are not negative by the relation of several ops, or by `tl.assume`.

%g = div %pid, %n;  %r = sub %pid, (mul %g, %n)     %r is the remainder of %pid
%p = cast (rem %x, (cast %programs : u32)) : i32    %p is below the number of programs of an axis
%s = mul %pid, %steps                               where a loop starts: the first step of a program
cf.assume (compare %r, 0 {"ge"})                    `tl.assume(r >= 0)`
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir import Block, Function, Op, Value
from tilewright.ir.types import i32
from tilewright.ops import (
    LARGEST_FACTOR,
    AddOp,
    AndOp,
    AssumeOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    ForOp,
    MinOp,
    MulOp,
    NumProgramsOp,
    ProgramIdOp,
    RemOp,
    SubOp,
    WhileOp,
    incoming_values,
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


def starts_work(value: Value) -> bool:
    """Whether a scalar is the first of the tiles, or of the steps, of a program: sums and minima of
    program numbers, their products with arguments that are not negative, and constants."""
    op = value.op
    if isinstance(op, AddOp | MulOp | MinOp):
        return any(map(starts_work, op.operands)) and all(map(_is_place, op.operands))
    return isinstance(op, ProgramIdOp)


def _is_place(value: Value) -> bool:
    if isinstance(value.op, ConstantOp):
        return 0 <= value.op.value <= LARGEST_FACTOR
    return starts_work(value) or (value.op is None and "non_negative" in (value.facts or {}))


def counts_work(value: Value) -> bool:
    """Whether a scalar is the index of a loop, or carried by a `while`, that starts at a program's
    first tile or step."""
    block = value.owner
    loop = block.owner if isinstance(block, Block) else None
    if isinstance(loop, ForOp):
        return value is loop.index and starts_work(loop.lower)
    if not isinstance(loop, WhileOp):
        return False
    if block is loop.body:
        return counts_work(incoming_values(value)[0])
    return starts_work(loop.inits[value.index])


def is_counted(value: Value, loop: WhileOp) -> bool:
    """Whether a `while` runs as long as a value that it carries is below a bound."""
    go, *passed = loop.before.terminator.operands
    found = list(_smaller_sides(go))
    return value in found or passed[value.index] in found


def _smaller_sides(condition: Value) -> Iterator[Value]:
    """The values that are below others if a condition holds."""
    op = condition.op
    if isinstance(op, AndOp):
        for side in op.operands:
            yield from _smaller_sides(side)
    elif isinstance(op, CompareOp) and op.predicate in ("lt", "le", "gt", "ge"):
        yield op.operands[op.predicate in ("gt", "ge")]


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
