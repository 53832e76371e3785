"""What is known of integers and addresses along each dimension: runs, constancy, divisibility.

For a tile and a dimension, with indices along the others fixed:
    contiguity c:  every aligned group of c elements counts up by one (addresses: by one element)
    constancy k:   every aligned group of k elements is equal
    divisibility d: the first element of every contiguous group is a multiple of d (addresses:
    bytes)
All three are powers of two; a scalar has one dimension of extent 1. The idea is that of Triton's
axis analysis; the rules are derived from the definitions above and checked against evaluation in
tests/property/test_alignment.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import cast

from tilewright.analysis.dataflow import Forward
from tilewright.ir import Function, Op, Value
from tilewright.ir.types import DType, PointerType, Type, element_of, shape_of
from tilewright.ops import (
    AddOp,
    AndOp,
    BroadcastOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    ItemOp,
    MulOp,
    OffsetOp,
    OrOp,
    RangeOp,
    RemOp,
    SelectOp,
    ShlOp,
    SplatOp,
    SubOp,
    TransposeOp,
    XorOp,
)

LARGEST = 1 << 30
"""Divisibility of zero; nothing is known to be divided by more."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Facts per dimension, and the value if it is one known number."""

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    value: int | None = None

    def each(self, dim: int) -> int:
        """What every element along `dim` is divisible by."""
        return self.divisibility[dim] if self.contiguity[dim] == 1 else 1

    def start(self, dim: int, run: int) -> int:
        """What the first elements of groups of `run` <= contiguity elements are divisible by."""
        if run == self.contiguity[dim]:
            return self.divisibility[dim]
        return gcd(self.divisibility[dim], run)


def power_of_two_in(number: int) -> int:
    """The largest power of two that divides a number."""
    return min(number & -number, LARGEST) if number else LARGEST


def _extents(type_: Type) -> tuple[int, ...]:
    return shape_of(type_) or (1,)


def unknown(value: Value) -> Alignment:
    """Nothing known."""
    ones = (1,) * len(_extents(value.type))
    return Alignment(ones, ones, ones)


def meet(a: Alignment, b: Alignment) -> Alignment:
    """What holds of both."""
    if a == b:
        return a
    dims = range(len(a.contiguity))
    runs = tuple(gcd(a.contiguity[d], b.contiguity[d]) for d in dims)
    return Alignment(
        runs,
        tuple(gcd(a.start(d, runs[d]), b.start(d, runs[d])) for d in dims),
        tuple(gcd(a.constancy[d], b.constancy[d]) for d in dims),
        a.value if a.value == b.value else None,
    )


def analyze_alignment(function: Function) -> dict[Value, Alignment]:
    """Facts of every value of a function, from those of its arguments."""
    solver = Forward(_transfer, meet, unknown, _loop_index)
    return solver.run(function, [_argument(arg) for arg in function.args])


def _argument(arg: Value) -> Alignment:
    facts = arg.facts or {}
    if isinstance(element_of(arg.type), PointerType):
        return Alignment((1,), (power_of_two_in(facts.get("aligned", 1)),), (1,))
    return Alignment((1,), (power_of_two_in(facts.get("multiple_of", 1)),), (1,))


def _loop_index(op: ForOp, bounds: Sequence[Alignment]) -> Alignment:
    return Alignment((1,), (gcd(bounds[0].divisibility[0], bounds[2].divisibility[0]),), (1,))


Rule = Callable[[Op, Sequence[Alignment]], Alignment]
_RULES: dict[type[Op], Rule] = {}


def _transfer(op: Op, operands: Sequence[Alignment]) -> Sequence[Alignment]:
    rule = _RULES.get(type(op))
    if rule is None:
        return [unknown(result) for result in op.results]
    return [_bounded(op.results[0], rule(op, operands))]


def _bounded(result: Value, fact: Alignment) -> Alignment:
    """No run is longer than its dimension."""
    extents = _extents(result.type)
    runs = tuple(gcd(c, power_of_two_in(n)) for c, n in zip(fact.contiguity, extents, strict=True))
    return Alignment(
        runs,
        tuple(fact.start(d, runs[d]) for d in range(len(runs))),
        tuple(gcd(k, power_of_two_in(n)) for k, n in zip(fact.constancy, extents, strict=True)),
        fact.value,
    )


def _rule(*op_classes: type[Op]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for op_class in op_classes:
            _RULES[op_class] = rule
        return rule

    return register


@_rule(ConstantOp)
def _constant(op: Op, operands: Sequence[Alignment]) -> Alignment:
    raw = cast("float", op.attrs["value"])
    number = int(raw) if raw == raw and abs(raw) != float("inf") else 1
    extents = _extents(op.results[0].type)
    ones = (1,) * len(extents)
    return Alignment(ones, (power_of_two_in(number),) * len(ones), extents, number)


@_rule(RangeOp)
def _range(op: Op, operands: Sequence[Alignment]) -> Alignment:
    start, end = cast("int", op.attrs["start"]), cast("int", op.attrs["end"])
    run = power_of_two_in(end - start)
    divisibility = power_of_two_in(start)
    return Alignment(
        (run,), (divisibility if run == end - start else gcd(divisibility, run),), (1,)
    )


@_rule(SplatOp)
def _splat(op: Op, operands: Sequence[Alignment]) -> Alignment:
    extents = _extents(op.results[0].type)
    ones = (1,) * len(extents)
    return Alignment(ones, (operands[0].divisibility[0],) * len(ones), extents, operands[0].value)


@_rule(ItemOp)
def _item(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x = operands[0]
    return Alignment((1,), (max(x.each(d) for d in range(len(x.contiguity))),), (1,), x.value)


@_rule(ExpandDimsOp)
def _expand_dims(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x, axis = operands[0], cast("int", op.attrs["axis"])
    each = max(x.each(d) for d in range(len(x.contiguity)))

    def insert(facts: tuple[int, ...], new: int) -> tuple[int, ...]:
        return (*facts[:axis], new, *facts[axis:])

    return Alignment(
        insert(x.contiguity, 1), insert(x.divisibility, each), insert(x.constancy, 1), x.value
    )


@_rule(BroadcastOp)
def _broadcast(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x, source, target = operands[0], shape_of(op.operands[0].type), shape_of(op.results[0].type)
    constancy = (n if m == 1 else k for m, n, k in zip(source, target, x.constancy, strict=True))
    return Alignment(x.contiguity, x.divisibility, tuple(constancy), x.value)


@_rule(TransposeOp)
def _transpose(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x, order = operands[0], cast("tuple[int, ...]", op.attrs["order"])

    def move(facts: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(facts[k] for k in order)

    return Alignment(move(x.contiguity), move(x.divisibility), move(x.constancy), x.value)


@_rule(CastOp)
def _cast(op: Op, operands: Sequence[Alignment]) -> Alignment:
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    if _widens(source, target):
        return operands[0]
    ones = (1,) * len(operands[0].contiguity)
    return Alignment(ones, ones, operands[0].constancy)


def _widens(source: Type, target: Type) -> bool:
    if not (isinstance(source, DType) and isinstance(target, DType)):
        return False
    return source.is_integer and target.is_integer and target.bits >= source.bits


@_rule(HintOp)
def _hint(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x = operands[0]

    def promised(name: str, known: tuple[int, ...]) -> tuple[int, ...]:
        said = cast("tuple[int, ...]", op.attrs[name])
        if len(said) != len(known):
            return known
        return tuple(max(a, power_of_two_in(b)) for a, b in zip(known, said, strict=True))

    return Alignment(
        promised("contiguity", x.contiguity),
        promised("divisibility", x.divisibility),
        promised("constancy", x.constancy),
        x.value,
    )


@_rule(AddOp, SubOp)
def _sum(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x, y = operands
    if isinstance(op, AddOp):
        return _added(x, y, 1, _folded(op, x, y))
    return _subtracted(x, y, _folded(op, x, y))


def _added(x: Alignment, y: Alignment, scale: int, value: int | None) -> Alignment:
    """x + scale * y; a run goes on where one side counts and the other stays."""
    runs: list[int] = []
    divisibility: list[int] = []
    for d in range(len(x.contiguity)):
        left, right = gcd(x.contiguity[d], y.constancy[d]), gcd(x.constancy[d], y.contiguity[d])
        run = max(left, right)
        if run == 1:
            divisibility.append(gcd(x.each(d), scale * y.each(d)))
        elif run == left:
            divisibility.append(
                gcd(
                    x.start(d, run) if scale == 1 else gcd(x.divisibility[d], scale * run),
                    scale * y.each(d),
                )
            )
        else:
            divisibility.append(gcd(x.each(d), scale * y.start(d, run)))
        runs.append(run)
    constancy = tuple(gcd(a, b) for a, b in zip(x.constancy, y.constancy, strict=True))
    return Alignment(tuple(runs), tuple(divisibility), constancy, value)


def _subtracted(x: Alignment, y: Alignment, value: int | None) -> Alignment:
    dims = range(len(x.contiguity))
    runs = tuple(gcd(x.contiguity[d], y.constancy[d]) for d in dims)
    divisibility = tuple(
        gcd(x.each(d) if runs[d] == 1 else x.start(d, runs[d]), y.each(d)) for d in dims
    )
    constancy = tuple(gcd(a, b) for a, b in zip(x.constancy, y.constancy, strict=True))
    return Alignment(runs, divisibility, constancy, value)


def _folded(op: Op, x: Alignment, y: Alignment) -> int | None:
    if x.value is None or y.value is None:
        return None
    table = {AddOp: x.value + y.value, SubOp: x.value - y.value, MulOp: x.value * y.value}
    return table.get(cast("type[AddOp]", type(op)))


@_rule(OffsetOp)
def _offset(op: Op, operands: Sequence[Alignment]) -> Alignment:
    element = element_of(op.operands[0].type)
    assert isinstance(element, PointerType)
    return _added(operands[0], operands[1], element.element.bytes, None)


@_rule(MulOp)
def _product(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x, y = operands
    if x.value == 1:
        return y
    if y.value == 1:
        return x
    dims = range(len(x.contiguity))
    return Alignment(
        (1,) * len(x.contiguity),
        tuple(min(x.each(d) * y.each(d), LARGEST) for d in dims),
        tuple(gcd(a, b) for a, b in zip(x.constancy, y.constancy, strict=True)),
        _folded(op, x, y),
    )


@_rule(ShlOp)
def _shifted(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x, y = operands
    factor = 1 << y.value if y.value is not None and 0 <= y.value < 31 else 1
    dims = range(len(x.contiguity))
    return Alignment(
        (1,) * len(x.contiguity),
        tuple(min(x.each(d) * factor, LARGEST) for d in dims),
        tuple(gcd(a, b) for a, b in zip(x.constancy, y.constancy, strict=True)),
    )


@_rule(DivOp)
def _quotient(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x, y = operands
    if y.value == 1:
        return x
    divisor = power_of_two_in(y.value) if y.value else 1
    exact = y.value is not None and divisor == y.value
    dims = range(len(x.contiguity))
    constancy: list[int] = []
    for d in dims:
        both = gcd(x.constancy[d], y.constancy[d])
        counted = gcd(x.contiguity[d], gcd(x.divisibility[d], divisor)) if exact else 1
        constancy.append(max(both, counted))
    divisibility = tuple(
        max(1, x.each(d) // divisor) if exact and x.each(d) < LARGEST else 1 for d in dims
    )
    return Alignment((1,) * len(x.contiguity), divisibility, tuple(constancy))


@_rule(RemOp)
def _remainder(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x, y = operands
    dims = range(len(x.contiguity))
    runs: list[int] = []
    divisibility: list[int] = []
    for d in dims:
        run = gcd(gcd(x.contiguity[d], x.divisibility[d]), y.each(d))
        run = gcd(run, y.constancy[d])
        runs.append(run)
        divisibility.append(gcd(x.start(d, run) if run > 1 else x.each(d), y.each(d)))
    constancy = tuple(gcd(a, b) for a, b in zip(x.constancy, y.constancy, strict=True))
    return Alignment(tuple(runs), tuple(divisibility), constancy)


@_rule(CompareOp)
def _comparison(op: Op, operands: Sequence[Alignment]) -> Alignment:
    """Groups of an aligned run fall on one side of an aligned bound together."""
    x, y = operands
    constancy: list[int] = []
    ordered = op.attrs["predicate"] in ("lt", "ge")
    flipped = op.attrs["predicate"] in ("gt", "le")
    for d in range(len(x.contiguity)):
        known = gcd(x.constancy[d], y.constancy[d])
        if ordered:
            known = max(known, _side(x, y, d))
        if flipped:
            known = max(known, _side(y, x, d))
        constancy.append(known)
    ones = (1,) * len(x.contiguity)
    return Alignment(ones, ones, tuple(constancy))


def _side(run: Alignment, bound: Alignment, dim: int) -> int:
    group = gcd(run.contiguity[dim], bound.constancy[dim])
    return gcd(gcd(group, run.divisibility[dim]), bound.each(dim))


@_rule(AndOp, OrOp, XorOp)
def _bitwise(op: Op, operands: Sequence[Alignment]) -> Alignment:
    x, y = operands
    ones = (1,) * len(x.contiguity)
    constancy = tuple(gcd(a, b) for a, b in zip(x.constancy, y.constancy, strict=True))
    return Alignment(ones, ones, constancy)


@_rule(SelectOp)
def _select(op: Op, operands: Sequence[Alignment]) -> Alignment:
    condition, x, y = operands
    met = meet(x, y)
    dims = range(len(x.contiguity))
    kept = condition.constancy if len(condition.constancy) == len(x.constancy) else (1,) * len(dims)
    runs = tuple(gcd(met.contiguity[d], kept[d]) for d in dims)
    return Alignment(
        runs,
        tuple(met.start(d, runs[d]) for d in dims),
        tuple(gcd(met.constancy[d], kept[d]) for d in dims),
        met.value,
    )
