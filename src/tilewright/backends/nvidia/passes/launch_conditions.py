"""Conditions on the numbers of a launch, tested once before a loop.

%n = arith.cast %stride : i64
%d = arith.sub %n, 64
%ok = arith.compare ge %d, 0            some way to keep the iterations apart holds
cf.for ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.analysis import Form, Symbol, Way
from tilewright.ir import Block, Builder, Op, Value
from tilewright.ir.types import i64
from tilewright.ops import AddOp, AndOp, CastOp, CompareOp, ConstantOp, MulOp, OrOp


class LaunchConditions:
    """The conditions of one function, each computed once."""

    def __init__(self) -> None:
        self._made: dict[tuple[Op, tuple[Way, ...]], Value] = {}

    def value(self, loop: Op, ways: Sequence[Way]) -> Value | None:
        """Whether one of the ways holds, computed before a loop; None if values are missing."""
        testable = tuple(way for way in ways if all(_is_computed(form, loop) for form in way))
        if not testable:
            return None
        if (loop, testable) not in self._made:
            builder = Builder.at(loop)
            holds = [_joined(builder, AndOp, [_holds(builder, form, loop) for form in way])
                     for way in testable]  # fmt: skip
            self._made[loop, testable] = _joined(builder, OrOp, holds)
        return self._made[loop, testable]


def _is_computed(form: Form, loop: Op) -> bool:
    return all(_before(symbol, loop) for monomial, _ in form for symbol in monomial)


def _before(symbol: Symbol, loop: Op) -> Value | None:
    """A scalar with the value of a symbol that is defined before a loop; None if there is none."""
    return next((value for value in symbol.values if _dominates(value, loop)), None)


def _dominates(value: Value, loop: Op) -> bool:
    op: object = loop
    while isinstance(op, Op):
        block = op.parent
        # An argument of a block around the loop.
        if value.owner is block:
            return True
        if value.op is not None and value.op.parent is block:
            return _comes_before(value.op, op)
        assert isinstance(block, Block)
        op = block.owner
    return False


def _comes_before(first: object, second: Op) -> bool:
    op = second.prev
    while op is not None and op is not first:
        op = op.prev
    return op is first


def _holds(builder: Builder, form: Form, loop: Op) -> Value:
    """Whether a form is not negative."""
    zero = builder.value(ConstantOp(0, i64))
    terms = [_term(builder, monomial, factor, loop) for monomial, factor in form]
    return builder.value(CompareOp(_joined(builder, AddOp, terms), zero, "ge"))


def _term(builder: Builder, monomial: Sequence[Symbol], factor: int, loop: Op) -> Value:
    # In i64, as products of strides and extents of i32 may not fit into 32 bits.
    values = [builder.value(ConstantOp(factor, i64))]
    for symbol in monomial:
        value = _before(symbol, loop)
        assert value is not None
        values.append(value if value.type is i64 else builder.value(CastOp(value, i64)))
    return _joined(builder, MulOp, values)


def _joined(builder: Builder, op: Callable[[Value, Value], Op], values: Sequence[Value]) -> Value:
    total, *others = values
    for value in others:
        total = builder.value(op(total, value))
    return total
