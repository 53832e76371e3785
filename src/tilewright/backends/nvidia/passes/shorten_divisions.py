"""Divides program ids by the shorter ways: which tile a program computes is known sooner.

    %h = arith.min %rest, 8                %h = arith.min %rest, 8
    %m = arith.rem %i, %h : i32            %whole = arith.compare %h, 8 {predicate = "eq"} : i1
                                     ->    %m = cf.if %whole : i32 {
                                             cf.yield %i mod 8          by a mask, in u32
                                           } {
                                             cf.yield %i mod %h
                                           }

A division by a number that only the launch tells takes some 30 instructions, each of which waits
for the one before: 100 clock cycles. A program in the order of groups makes three, one after the
other, before its first copy; 1000x1000x1000 took 7.68 us on an H200 with all of them, and 7.52 with
one. Two of them have a result that is known as a rule:

* a minimum with a constant is that constant but in the last group of tiles;
* a program that a block starts with is one of the first row of the grid; of a grid with one axis
  all are.

Numbers that are not negative are divided as unsigned ones, which takes a third less, and by a power
of two one instruction. Scalars only, and where there is a producer, whose first copy all wait for:
elsewhere branches keep addresses from being computed between loads, and cost registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.role_ops import NeighbourOp, RolesOp, is_over_programs
from tilewright.ir import Block, Builder, Function, Pass, Rewriter, Value
from tilewright.ir.types import i32, u32
from tilewright.ops import (
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    ForOp,
    IfOp,
    MinOp,
    NumProgramsOp,
    RemOp,
    Sign,
    YieldOp,
)

Facts = dict[Value, Alignment]
Division = DivOp | RemOp


class ShortenDivisions(Pass, name="nvidia-shorten-divisions"):
    """Divide scalars as unsigned numbers where they are such, and as a rule not at all."""

    def run(self, function: Function) -> bool:
        if not any(isinstance(op, RolesOp) for op in function.body):
            return False
        facts = analyze_alignment(function)
        # Quotient and remainder of the same numbers are one division.
        groups: dict[tuple[Block | None, Value, Value], list[Division]] = {}
        for op in function.walk():
            if isinstance(op, Division) and op.result.type in (i32, u32):
                groups.setdefault((op.parent, op.lhs, op.rhs), []).append(op)
        return any([_shorten(group, facts) for group in groups.values()])


def _shorten(group: Sequence[Division], facts: Facts) -> bool:
    """Rewrite divisions of the same numbers; whether there is a shorter way."""
    first = group[0]
    known = _usual_divisor(first.rhs)
    if known is not None:
        _expect(group, known, facts)
    elif _is_program(first.lhs) and _is_number_of_programs(first.rhs):
        holds = Builder.at(first).value(CompareOp(first.lhs, first.rhs, predicate="lt"))
        _branch(group, holds, _divide_by_more, facts)
    elif first.result.type is i32 and _are_natural(first, facts):
        for op in group:
            _replace(op, _divide(Builder.at(op), op, facts), facts)
    else:
        return False
    return True


def _expect(group: Sequence[Division], divisor: int, facts: Facts) -> None:
    """Divide by a constant where the divisor is that."""
    first = group[0]
    builder = Builder.at(first)
    usual = builder.value(ConstantOp(divisor, first.rhs.type))
    facts[usual] = replace(facts[first.rhs], sign=Sign.NON_NEGATIVE)
    holds = builder.value(CompareOp(first.rhs, usual, predicate="eq"))

    def by_constant(inner: Builder, op: Division) -> Value:
        return _divide(inner, type(op)(op.lhs, usual), facts)

    _branch(group, holds, by_constant, facts)


def _branch(
    group: Sequence[Division],
    holds: Value,
    usual: Callable[[Builder, Division], Value],
    facts: Facts,
) -> None:
    """Divide in the usual way where it holds, else as before."""
    then, orelse = Block(), Block()
    short, long = (Builder(block, None, group[0].loc) for block in (then, orelse))
    short.emit(YieldOp(tuple(usual(short, op) for op in group)))
    long.emit(YieldOp(tuple(_divide(long, op, facts) for op in group)))
    types = tuple(op.result.type for op in group)
    chosen = Builder.at(group[0]).emit(IfOp(holds, then, orelse, result_types=types))
    for op, result in zip(group, chosen.results, strict=True):
        _replace(op, result, facts)


def _replace(op: Division, result: Value, facts: Facts) -> None:
    facts[result] = facts[op.result]
    Rewriter.replace(op, result)


def _divide(builder: Builder, op: Division, facts: Facts) -> Value:
    """What an op computes, as an unsigned division if neither number is negative."""
    if op.result.type is u32 or not _are_natural(op, facts):
        return builder.value(type(op)(op.lhs, op.rhs))
    lhs, rhs = (builder.value(CastOp(value, u32)) for value in op.operands)
    return builder.value(CastOp(builder.value(type(op)(lhs, rhs)), i32))


def _divide_by_more(builder: Builder, op: Division) -> Value:
    """By a number that is greater than what is divided."""
    return op.lhs if isinstance(op, RemOp) else builder.value(ConstantOp(0, op.result.type))


def _are_natural(op: Division, facts: Facts) -> bool:
    """Whether neither number is negative."""
    return all(facts[value].natural for value in op.operands)


def _usual_divisor(value: Value) -> int | None:
    """The constant that a divisor is at most, if it is one."""
    op = value.op
    sides = (op.lhs.op, op.rhs.op) if isinstance(op, MinOp) else ()
    numbers = (int(side.value) for side in sides if isinstance(side, ConstantOp))
    return next((number for number in numbers if number > 0), None)


def _is_program(value: Value) -> bool:
    """Whether it is the number of a program that a block runs, or of the one beside it."""
    if isinstance(value.op, NeighbourOp):
        return _is_program(value.op.program)
    loop = value.owner.owner if isinstance(value.owner, Block) else None
    return isinstance(loop, ForOp) and value is loop.index and is_over_programs(loop)


def _is_number_of_programs(value: Value) -> bool:
    return isinstance(value.op, CastOp) and isinstance(value.op.x.op, NumProgramsOp)
