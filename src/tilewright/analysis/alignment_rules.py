"""Transfer functions of ops on alignment facts, and the analysis of a function.

A rule takes (op, facts of the operands) and may claim more than the result type can satisfy, which
`bounded` reduces. In the reasons below x is a run of c numbers from s on: x[j] = s + j.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import gcd, prod
from typing import cast

from tilewright.analysis.alignment import (
    LARGEST,
    Alignment,
    bounded,
    extents_of,
    meet,
    power_of_two_in,
    unit_of,
    unknown,
)
from tilewright.analysis.dataflow import Forward
from tilewright.analysis.index_relations import (
    is_place_in_grid,
    leaves_remainder,
    promised_non_negative,
)
from tilewright.analysis.integer_ranges import tile_index_range
from tilewright.ir import Function, Op, Trait, Value
from tilewright.ir.types import DType, PointerType, element_of, shape_of
from tilewright.ops import (
    AddOp,
    AndOp,
    BroadcastOp,
    CastOp,
    CatOp,
    CompareOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    ItemOp,
    JoinOp,
    LoadOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    NumProgramsOp,
    OffsetOp,
    OrOp,
    ProgramIdOp,
    RangeOp,
    RemOp,
    ReshapeOp,
    SelectOp,
    ShlOp,
    ShrOp,
    Sign,
    SplatOp,
    SplitOp,
    SubOp,
    TransposeOp,
    XorOp,
    sign_of,
)
from tilewright.support.registration import Registration

Facts = Sequence[Alignment]
Rule = Callable[[Op, Facts], Alignment]
_RULES: dict[type[Op], Rule] = {}


def analyze_alignment(function: Function) -> dict[Value, Alignment]:
    """The facts of every value of a function, from those of its arguments."""
    promised = promised_non_negative(function)
    # The fixpoints of loops visit an op several times.
    related = cache(partial(_related_sign, promised))

    def transfer(op: Op, operands: Facts) -> Facts:
        facts = _transfer(op, operands, related)
        if promised.isdisjoint(op.results):
            return facts
        return [replace(fact, sign=Sign.NON_NEGATIVE) for fact in facts]

    solver = Forward(transfer, meet, lambda value: unknown(value.type), _loop_index)
    return solver.run(function, [_argument(arg, arg in promised) for arg in function.args])


def _argument(arg: Value, promised: bool) -> Alignment:
    facts, pointer = arg.facts or {}, isinstance(element_of(arg.type), PointerType)
    # facts are powers of two: a promise of 24 is used as 8
    multiple = power_of_two_in(facts.get("aligned" if pointer else "multiple_of", 1))
    natural = promised or "non_negative" in facts
    sign = Sign.NON_NEGATIVE if natural else Sign.UNKNOWN
    return bounded(arg.type, Alignment((1,), (multiple,), (1,)), sign)


def _loop_index(op: ForOp, bounds: Facts) -> Alignment:
    lower, _, step = bounds
    # Every index is lower + k * step.
    multiple = gcd(lower.divisibility[0], step.divisibility[0])
    return bounded(op.index.type, Alignment((1,), (multiple,), (1,)), lower.sign)


def _transfer(op: Op, operands: Facts, related: Callable[[Value], Sign]) -> Facts:
    rule = _RULES.get(type(op))
    if rule is not None:
        divides = isinstance(op, DivOp | RemOp)
        fact = rule(op, _without_wraps(op, operands, related) if divides else operands)
        return [bounded(r.type, fact, _sign(op, r, operands, related)) for r in op.results]
    if Trait.ELEMENTWISE in op.traits and operands:
        constancy = _constancy(*operands)
        return [_only_constant(result, constancy) for result in op.results]
    return [unknown(result.type) for result in op.results]


def _sign(op: Op, result: Value, operands: Facts, related: Callable[[Value], Sign]) -> Sign:
    if leaves_remainder(op):
        return operands[0].sign
    if is_place_in_grid(op):
        return Sign.NON_NEGATIVE
    found = sign_of(op, result.type, [x.sign for x in operands])
    # The operands of a difference decide its sign by relations only.
    if found is Sign.UNKNOWN and isinstance(op, SubOp) and isinstance(result.type, DType):
        return related(result)
    return found


def _related_sign(promised: frozenset[Value], value: Value) -> Sign:
    """The sign by ranges."""
    if not _is_natural(value, promised, divisors=True):
        return Sign.UNKNOWN
    known = _is_natural(value, promised, divisors=False)
    return Sign.NON_NEGATIVE if known else Sign.ASSUMED


def _without_wraps(op: Op, operands: Facts, related: Callable[[Value], Sign]) -> Facts:
    """The facts of a division; a dividend that may wrap has an unknown sign."""
    x, y = operands
    sign = Sign.NON_NEGATIVE if x.value is not None else related(op.operands[0])
    return x if sign is Sign.NON_NEGATIVE else replace(x, sign=sign), y


def _is_natural(value: Value, promised: frozenset[Value], divisors: bool) -> bool:
    found = tile_index_range(value, promised, divisors)
    return found is not None and found.low >= 0


def _only_constant(result: Value, constancy: tuple[int, ...]) -> Alignment:
    ones = (1,) * len(constancy)
    return bounded(result.type, Alignment(ones, ones, constancy))


def _constancy(*facts: Alignment) -> tuple[int, ...]:
    """The constancy of a result: where all operands are equal, so is the result."""
    return tuple(gcd(*ks) for ks in zip(*(f.constancy for f in facts), strict=True))


_rule = Registration(_RULES)


# --- constants ------------------------------------------------------------------------------------


def _everywhere(op: Op, every: int, value: int | None) -> Alignment:
    """One number in all elements of the result."""
    extents = extents_of(op.results[0].type)
    ones = (1,) * len(extents)
    return Alignment(ones, (every,) * len(ones), extents, value)


@_rule(ConstantOp)
def _constant(op: Op, operands: Facts) -> Alignment:
    element = element_of(op.results[0].type)
    if isinstance(element, DType) and element.is_float:
        return _everywhere(op, 1, None)
    number = int(cast("int", op.attrs["value"]))
    return _everywhere(op, power_of_two_in(number), number)


@_rule(RangeOp)
def _range(op: Op, operands: Facts) -> Alignment:
    start, end = cast("int", op.attrs["start"]), cast("int", op.attrs["end"])
    run = power_of_two_in(end - start)
    multiple = power_of_two_in(start)
    # Of several groups the later ones start at start + k * run.
    first = multiple if run == end - start else gcd(multiple, run)
    return Alignment((run,), (first,), (1,))


@_rule(ProgramIdOp, NumProgramsOp)
def _grid(op: Op, operands: Facts) -> Alignment:
    return Alignment((1,), (1,), (1,))


# --- shapes ---------------------------------------------------------------------------------------


@_rule(SplatOp)
def _splat(op: Op, operands: Facts) -> Alignment:
    x = operands[0]
    return _everywhere(op, x.every, x.value)


@_rule(ItemOp)
def _item(op: Op, operands: Facts) -> Alignment:
    x = operands[0]
    return Alignment((1,), (x.every,), (1,), x.value)


@_rule(ExpandDimsOp)
def _expand_dims(op: Op, operands: Facts) -> Alignment:
    x, axis = operands[0], cast("int", op.attrs["axis"])

    def insert(facts: tuple[int, ...], new: int) -> tuple[int, ...]:
        return (*facts[:axis], new, *facts[axis:])

    return replace(
        x,
        contiguity=insert(x.contiguity, 1),
        divisibility=insert(x.divisibility, x.every),
        constancy=insert(x.constancy, 1),
    )


@_rule(BroadcastOp)
def _broadcast(op: Op, operands: Facts) -> Alignment:
    x, source, target = operands[0], shape_of(op.operands[0].type), shape_of(op.results[0].type)
    constancy = (n if m == 1 else k for m, n, k in zip(source, target, x.constancy, strict=True))
    return replace(x, constancy=tuple(constancy))


@_rule(TransposeOp)
def _transpose(op: Op, operands: Facts) -> Alignment:
    x, order = operands[0], cast("tuple[int, ...]", op.attrs["order"])

    def move(facts: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(facts[k] for k in order)

    return replace(
        x,
        contiguity=move(x.contiguity),
        divisibility=move(x.divisibility),
        constancy=move(x.constancy),
    )


@_rule(ReshapeOp)
def _reshape(op: Op, operands: Facts) -> Alignment:
    """Groups along the innermost dimensions other than 1 are groups of the flat index."""
    x = operands[0]
    source, target = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    # all elements are equal in any shape
    if prod(source) == prod(x.constancy):
        return _everywhere(op, x.every, x.value)
    # dims of extent 1 move no element; groups along any other dim may be split
    inner, outer = _innermost(source), _innermost(target)

    def at_inner(facts: tuple[int, ...], other: int) -> tuple[int, ...]:
        return tuple(facts[inner] if d == outer else other for d in range(len(target)))

    return replace(
        x,
        contiguity=at_inner(x.contiguity, 1),
        divisibility=at_inner(x.divisibility, x.every),
        constancy=at_inner(x.constancy, 1),
    )


def _innermost(shape: tuple[int, ...]) -> int:
    return max((d for d, n in enumerate(shape) if n > 1), default=len(shape) - 1)


@_rule(SplitOp)
def _split(op: Op, operands: Facts) -> Alignment:
    x = operands[0]
    return replace(
        x,
        contiguity=x.contiguity[:-1],
        divisibility=x.divisibility[:-1],
        constancy=x.constancy[:-1],
    )


@_rule(JoinOp)
def _join(op: Op, operands: Facts) -> Alignment:
    met = meet(*operands)
    return replace(
        met,
        contiguity=(*met.contiguity, 1),
        divisibility=(*met.divisibility, met.every),
        constancy=(*met.constancy, 1),
    )


@_rule(CatOp)
def _cat(op: Op, operands: Facts) -> Alignment:
    """Groups are not longer than the left part, so that none crosses the boundary."""
    return meet(*operands)


# --- casts and promises ---------------------------------------------------------------------------


@_rule(CastOp)
def _cast(op: Op, operands: Facts) -> Alignment:
    """Modulo a power of two, runs are preserved, and so are multiples of smaller powers."""
    x = operands[0]
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    kinds = [isinstance(e, PointerType) or e.is_integer for e in (source, target)]
    if not all(kinds):
        bit = isinstance(source, DType) and source.is_bool
        value = x.value if bit else None
        ones = (1,) * len(x.contiguity)
        return Alignment(ones, ones, x.constancy, value)
    # Elements of another size: runs do not have the step of one element.
    if unit_of(op.results[0].type) != x.unit:
        ones = (1,) * len(x.contiguity)
        return Alignment(ones, (x.every,) * len(ones), x.constancy, x.value)
    return x


@_rule(LoadOp)
def _loaded(op: Op, operands: Facts) -> Alignment:
    """Equal addresses have equal values: memory that changes is loaded as `volatile`."""
    ones = (1,) * len(operands[0].constancy)
    return Alignment(ones, ones, ones if op.attrs["volatile"] else _constancy(*operands))


@_rule(HintOp)
def _hint(op: Op, operands: Facts) -> Alignment:
    x = operands[0]

    def promised(name: str, derived: tuple[int, ...]) -> tuple[int, ...]:
        said = cast("tuple[int, ...]", op.attrs[name])
        # a promise for another rank does not concern these dims
        if len(said) != len(derived):
            return derived
        return tuple(max(a, power_of_two_in(b)) for a, b in zip(derived, said, strict=True))

    return replace(
        x,
        contiguity=promised("contiguity", x.contiguity),
        divisibility=promised("divisibility", x.divisibility),
        constancy=promised("constancy", x.constancy),
    )


# --- arithmetic -----------------------------------------------------------------------------------


def _folded(op: Op, x: Alignment, y: Alignment) -> int | None:
    if x.value is None or y.value is None:
        return None
    table: dict[type[Op], int] = {
        AddOp: x.value + y.value,
        SubOp: x.value - y.value,
        MulOp: x.value * y.value,
    }
    return table.get(type(op))


@_rule(AddOp)
def _sum(op: Op, operands: Facts) -> Alignment:
    x, y = operands
    return replace(_added(x, y, 1), value=_folded(op, x, y))


@_rule(OffsetOp)
def _offset(op: Op, operands: Facts) -> Alignment:
    return _added(operands[0], operands[1], operands[0].unit)


def _added(x: Alignment, y: Alignment, scale: int) -> Alignment:
    """x + scale * y; a run continues where one side counts and the other is constant."""
    runs: list[int] = []
    starts: list[int] = []
    for d in x.dims:
        left, right = gcd(x.contiguity[d], y.constancy[d]), gcd(x.constancy[d], y.contiguity[d])
        run = max(left, right)
        first = x.start(d, run) if run == left else x.each(d)
        second = y.each(d) if run == left else y.start(d, run)
        runs.append(run)
        # at most LARGEST, or the product would claim more than zero has
        starts.append(gcd(first, min(scale * second, LARGEST)))
    return Alignment(tuple(runs), tuple(starts), _constancy(x, y), unit=x.unit)


@_rule(SubOp)
def _difference(op: Op, operands: Facts) -> Alignment:
    x, y = operands
    # constant - run counts down, which is not a run.
    runs = tuple(gcd(x.contiguity[d], y.constancy[d]) for d in x.dims)
    starts = tuple(gcd(x.start(d, runs[d]), y.each(d)) for d in x.dims)
    return Alignment(runs, starts, _constancy(x, y), _folded(op, x, y))


@_rule(NegOp)
def _negative(op: Op, operands: Facts) -> Alignment:
    x = operands[0]
    ones = (1,) * len(x.contiguity)
    return Alignment(ones, tuple(map(x.each, x.dims)), x.constancy)


@_rule(MulOp)
def _product(op: Op, operands: Facts) -> Alignment:
    x, y = operands
    if x.value == 1:
        return y
    if y.value == 1:
        return x
    factors = tuple(y.each(d) for d in y.dims)
    return _scaled(x, factors, _constancy(x, y), _folded(op, x, y))


@_rule(ShlOp)
def _shifted_left(op: Op, operands: Facts) -> Alignment:
    x, y = operands
    if y.value == 0:
        return x
    # 30 bits are LARGEST; shifts by a negative or unknown amount give no facts.
    factor = 1 << min(y.value or 0, 30) if (y.value or 0) >= 0 else 1
    return _scaled(x, (factor,) * len(x.contiguity), _constancy(x, y), None)


def _scaled(
    x: Alignment, factors: tuple[int, ...], constancy: tuple[int, ...], value: int | None
) -> Alignment:
    """x times a value whose elements are divisible by `factors`."""
    ones = (1,) * len(x.contiguity)
    multiples = tuple(min(x.each(d) * factors[d], LARGEST) for d in x.dims)
    return Alignment(ones, multiples, constancy, value)


@_rule(DivOp)
def _quotient(op: Op, operands: Facts) -> Alignment:
    """s + j with j < g has the quotient of s, if g divides both s and the divisor and s >= 0.

    Not below zero: -4 / 4 = -1, but -3 / 4 = 0.
    """
    x, y = operands
    if y.value == 1:
        return x
    constancy = list(_constancy(x, y))
    if x.natural:
        for d in x.dims:
            constancy[d] = max(constancy[d], gcd(x.blocks(d, y.each(d)), y.constancy[d]))
    divisor = power_of_two_in(y.value or 1)
    # only a power of two divides all multiples of powers of two exactly
    exact = divisor == y.value
    ones = (1,) * len(constancy)
    starts = tuple(max(1, x.each(d) // divisor) if exact else 1 for d in x.dims)
    return Alignment(ones, starts, tuple(constancy))


@_rule(ShrOp)
def _shifted_right(op: Op, operands: Facts) -> Alignment:
    """As division, but towards minus infinity, so that the sign does not matter."""
    x, y = operands
    if y.value == 0:
        return x
    constancy = list(_constancy(x, y))
    ones = (1,) * len(constancy)
    if y.value is None or not 0 <= y.value <= 30:
        return Alignment(ones, ones, tuple(constancy))
    divisor = 1 << y.value
    for d in x.dims:
        constancy[d] = max(constancy[d], x.blocks(d, divisor))
    starts = tuple(max(1, x.each(d) // divisor) for d in x.dims)
    return Alignment(ones, starts, tuple(constancy))


@_rule(RemOp)
def _remainder(op: Op, operands: Facts) -> Alignment:
    """s + j with j < g counts up from the remainder of s, if g divides s and the divisor, s >= 0.

    Not below zero: -4 % 4 = 0, but -3 % 4 = -3. Tile indices are assumed not to be negative.
    """
    x, y = operands
    counts = x.sign is not Sign.UNKNOWN
    runs = [gcd(x.blocks(d, y.each(d)), y.constancy[d]) if counts else 1 for d in x.dims]
    starts = tuple(gcd(x.start(d, runs[d]), y.each(d)) for d in x.dims)
    return Alignment(tuple(runs), starts, _constancy(x, y))


@_rule(AndOp)
def _conjunction(op: Op, operands: Facts) -> Alignment:
    """x & (2^n - 1) is the remainder by 2^n that is never negative; low zeros are preserved."""
    x, y = operands if operands[1].value is not None else (operands[1], operands[0])
    limit = (y.value or 0) + 1 if y.natural else 1
    counts = power_of_two_in(limit) == limit
    runs = tuple(x.blocks(d, limit) if counts else 1 for d in x.dims)
    starts = tuple(
        x.start(d, runs[d]) if runs[d] > 1 else max(x.each(d), y.each(d)) for d in x.dims
    )
    return Alignment(runs, starts, _constancy(x, y))


@_rule(OrOp, XorOp, MinOp, MaxOp)
def _bitwise_or_extremum(op: Op, operands: Facts) -> Alignment:
    """Low bits of both, or one of the two, element by element."""
    x, y = operands
    ones = (1,) * len(x.contiguity)
    common = tuple(gcd(x.each(d), y.each(d)) for d in x.dims)
    return Alignment(ones, common, _constancy(x, y))


@_rule(CompareOp)
def _comparison(op: Op, operands: Facts) -> Alignment:
    """All elements of a group of an aligned run are on one side of an aligned bound.

    s + j < b for a j < g exactly if s < b, where g divides s and b; so for `<` and `>=` the run
    is on the left, for `>` and `<=` on the right.
    """
    x, y = operands
    constancy = list(_constancy(x, y))
    predicate = op.attrs["predicate"]
    if predicate in ("lt", "ge", "gt", "le"):
        run, bound = (x, y) if predicate in ("lt", "ge") else (y, x)
        for d in x.dims:
            together = gcd(run.blocks(d, bound.each(d)), bound.constancy[d])
            constancy[d] = max(constancy[d], together)
    ones = (1,) * len(constancy)
    return Alignment(ones, ones, tuple(constancy))


@_rule(SelectOp)
def _select(op: Op, operands: Facts) -> Alignment:
    condition, x, y = operands
    if condition.value is not None:
        return x if condition.value else y
    met = meet(x, y)
    runs = tuple(gcd(met.contiguity[d], condition.constancy[d]) for d in met.dims)
    return replace(
        met,
        contiguity=runs,
        divisibility=tuple(met.start(d, runs[d]) for d in met.dims),
        constancy=tuple(gcd(met.constancy[d], condition.constancy[d]) for d in met.dims),
    )
