"""Fast paths for divisions of program ids, so that a program has its tile sooner.

    %h = arith.min %rest, 8                %h = arith.min %rest, 8
    %m = arith.rem %i, %h : i32            %whole = arith.compare %h, 8 {predicate = "eq"} : i1
                                     ->    %m = cf.if %whole : i32 {
                                             cf.yield %i mod 8          by a mask, in u32
                                           } {
                                             cf.yield %i mod %h
                                           }

A division by a launch constant is a chain of some 30 dependent instructions. A program in grouped
order computes three before its first load (figures in ADR 0029). Two of them have a likely result:

* a minimum with a constant is that constant except in the last group of tiles;
* the first program of a block is in the first row of the grid; in a grid with one axis all are.

Numbers that ranges prove non-negative are divided as unsigned, which is a third shorter, and by a
power of two with one instruction; a divisor of unknown sign is replaced by its magnitude, and the
sign of the quotient is restored. The pass applies to scalars of functions with a producer, whose
first load all warps wait for: elsewhere branches would keep addresses from being computed between
loads, and cost registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tilewright.analysis import integer_range
from tilewright.backends.nvidia.role_ops import NeighbourOp, RolesOp, is_over_programs
from tilewright.ir import Block, Builder, Function, Pass, Rewriter, Value
from tilewright.ir.types import i32, u32
from tilewright.ops import (
    CastOp,
    ConstantOp,
    DivOp,
    ForOp,
    IfOp,
    MinOp,
    NumProgramsOp,
    RemOp,
    YieldOp,
)

Division = DivOp | RemOp


class SimplifyPidDivision(Pass, name="nvidia-simplify-pid-division"):
    """Divide scalars as unsigned where possible, and branch around likely results."""

    def run(self, function: Function) -> bool:
        if not any(isinstance(op, RolesOp) for op in function.body):
            return False
        # Quotient and remainder of equal operands are one division.
        groups: dict[tuple[Block | None, Value, Value], list[Division]] = {}
        for op in function.walk():
            if isinstance(op, Division) and op.result.type in (i32, u32):
                groups.setdefault((op.parent, op.lhs, op.rhs), []).append(op)
        divisor = _Divisor(groups.values())
        return any([divisor.simplify(group) for group in groups.values()])


class _Divisor:
    """The rewrite of divisions, by ranges from before it: branches hide bounds of remainders."""

    def __init__(self, groups: Iterable[Sequence[Division]]) -> None:
        operands = {value for group in groups for value in group[0].operands}
        self._natural = {value for value in operands if _is_proved_natural(value)}

    def simplify(self, group: Sequence[Division]) -> bool:
        """Rewrite divisions of equal operands; whether there is a fast path."""
        first = group[0]
        known = _usual_divisor(first.rhs)
        if known is not None:
            self._expect(group, known)
        elif _is_program(first.lhs) and _is_number_of_programs(first.rhs):
            holds = Builder.at(first).lt(first.lhs, first.rhs)
            self._branch(group, holds, _divide_by_more)
        elif first.result.type is i32 and first.lhs in self._natural:
            for op in group:
                self._replace(op, self._divide(Builder.at(op), op))
        else:
            return False
        return True

    def _expect(self, group: Sequence[Division], divisor: int) -> None:
        """Divide by a constant where the divisor equals it."""
        first = group[0]
        builder = Builder.at(first)
        usual = builder.constant(divisor, first.rhs.type)
        self._natural.add(usual)
        holds = builder.eq(first.rhs, usual)

        def by_constant(inner: Builder, op: Division) -> Value:
            return self._divide(inner, type(op)(op.lhs, usual))

        self._branch(group, holds, by_constant)

    def _branch(
        self, group: Sequence[Division], holds: Value, usual: Callable[[Builder, Division], Value]
    ) -> None:
        """Divide by the fast path where a condition holds, otherwise as before."""
        then, orelse = Block(), Block()
        short, long = (Builder(block, None, group[0].loc) for block in (then, orelse))
        short.emit(YieldOp(tuple(usual(short, op) for op in group)))
        long.emit(YieldOp(tuple(self._divide(long, op) for op in group)))
        types = tuple(op.result.type for op in group)
        chosen = Builder.at(group[0]).emit(IfOp(holds, then, orelse, result_types=types))
        for op, result in zip(group, chosen.results, strict=True):
            self._replace(op, result)

    def _replace(self, op: Division, result: Value) -> None:
        if op.result in self._natural:
            self._natural.add(result)
        Rewriter.replace(op, result)

    def _divide(self, builder: Builder, op: Division) -> Value:
        """The result of a division, unsigned if its dividend is non-negative."""
        if op.result.type is u32 or op.lhs not in self._natural:
            return builder.value(type(op)(op.lhs, op.rhs))
        if op.rhs in self._natural:
            return _divide_unsigned(builder, op, op.rhs)
        found = _divide_unsigned(builder, op, builder.abs(op.rhs))
        if isinstance(op, RemOp):
            return found
        negative = builder.lt(op.rhs, 0)
        return builder.select(negative, builder.neg(found), found)


def _divide_unsigned(builder: Builder, op: Division, divisor: Value) -> Value:
    lhs, rhs = (builder.cast(value, u32) for value in (op.lhs, divisor))
    return builder.cast(builder.value(type(op)(lhs, rhs)), i32)


def _divide_by_more(builder: Builder, op: Division) -> Value:
    """Divide by a number that is greater than the dividend."""
    return op.lhs if isinstance(op, RemOp) else builder.constant(0, op.result.type)


def _is_proved_natural(value: Value) -> bool:
    """Whether ranges prove that a number is not negative."""
    found = integer_range(value)
    return found is not None and found.low >= 0


def _usual_divisor(value: Value) -> int | None:
    """The constant upper bound of a divisor that is a minimum; None for others."""
    op = value.op
    sides = (op.lhs.op, op.rhs.op) if isinstance(op, MinOp) else ()
    numbers = (int(side.value) for side in sides if isinstance(side, ConstantOp))
    return next((number for number in numbers if number > 0), None)


def _is_program(value: Value) -> bool:
    """Whether a value is the id of a program of this block, or of the adjacent one."""
    if isinstance(value.op, NeighbourOp):
        return _is_program(value.op.program)
    loop = value.owner.owner if isinstance(value.owner, Block) else None
    return isinstance(loop, ForOp) and value is loop.index and is_over_programs(loop)


def _is_number_of_programs(value: Value) -> bool:
    return isinstance(value.op, CastOp) and isinstance(value.op.x.op, NumProgramsOp)
