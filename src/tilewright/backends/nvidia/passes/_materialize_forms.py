"""Materialization of affine forms as IR.

    64 * pid + 32 * n     ->      %a = arith.mul %pid, 64;  %b = arith.mul %k, 32;  arith.add %a, %b

In i64, since a stride times an extent of i32 may not fit into 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

from tilewright.analysis import Form, Kind, Symbol
from tilewright.ir import Block, Builder, Op, Value
from tilewright.ir.types import i64
from tilewright.ops import ForOp
from tilewright.transforms import trip_count


def is_computable(form: Form, before: Op) -> bool:
    """Whether each symbol has a scalar that is defined before an op."""
    return all(_is_known(symbol, before) for monomial, _ in form for symbol in monomial)


def materialize(builder: Builder, form: Form, before: Op) -> Value:
    """The value of a form, from scalars that are defined before an op."""
    terms = [_term(builder, monomial, factor, before) for monomial, factor in form]
    return reduce(builder.add, terms or [builder.constant(0, i64)])


def dominates(value: Value, op: Op) -> bool:
    """Whether the definition of a value dominates an op."""
    inner: object = op
    while isinstance(inner, Op):
        block = inner.parent
        # An argument of an enclosing block.
        if value.owner is block:
            return True
        if value.op is not None and value.op.parent is block:
            return _comes_before(value.op, inner)
        assert isinstance(block, Block)
        inner = block.owner
    return False


def _comes_before(first: object, second: Op) -> bool:
    op = second.prev
    while op is not None and op is not first:
        op = op.prev
    return op is first


def _scalar(symbol: Symbol, before: Op) -> Value | None:
    """A scalar with the value of a symbol that is defined before an op, or the index of the loop
    whose iterations the symbol counts; None without one."""
    values = [cast("ForOp", symbol.key).index] if _is_count(symbol) else symbol.values
    return next((value for value in values if dominates(value, before)), None)


def _is_known(symbol: Symbol, before: Op) -> bool:
    if symbol.kind is Kind.TRIPS:
        loop = cast("ForOp", symbol.key)
        return all(dominates(bound, before) for bound in (loop.lower, loop.upper, loop.step))
    return _scalar(symbol, before) is not None


def _is_count(symbol: Symbol) -> bool:
    return symbol.kind is Kind.ITERATION and isinstance(symbol.key, ForOp)


def _term(builder: Builder, monomial: Sequence[Symbol], factor: int, before: Op) -> Value:
    values = [builder.constant(factor, i64)]
    values += [_factor(builder, symbol, before) for symbol in monomial]
    return reduce(builder.mul, values)


def _factor(builder: Builder, symbol: Symbol, before: Op) -> Value:
    if symbol.kind is Kind.TRIPS:
        return builder.cast(trip_count(builder, cast("ForOp", symbol.key)), i64)
    scalar = _scalar(symbol, before)
    assert scalar is not None
    value = builder.cast(scalar, i64)
    if not _is_count(symbol):
        return value
    loop = cast("ForOp", symbol.key)
    passed = builder.sub(value, builder.cast(loop.lower, i64))
    return builder.div(passed, builder.cast(loop.step, i64))
