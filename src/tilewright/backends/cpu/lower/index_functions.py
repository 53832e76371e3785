"""Index functions: how the elements of a tile op's result are computed, one function for each op.

A function yields (operand, coordinates) for each element that it needs; the `yield` returns the
evaluated element:

    x[i, j] of a transposition:    element = yield operand, (j, i)
"""

from __future__ import annotations

from math import prod

from tilewright.backends.cpu.lower.affine_lanes import Evaluated
from tilewright.backends.cpu.lower.evaluate_lanes import Coords, Evaluator, Steps, index_function
from tilewright.backends.cpu.lower.lane_values import Address, Lanes, literal, uniform
from tilewright.backends.cpu.lower.vector_access import Access, load, memory_type
from tilewright.ir import Value
from tilewright.ir.types import PointerType, dtype_of, element_of, shape_of
from tilewright.llvm import Val, constant, integer_literal
from tilewright.ops import (
    BroadcastOp,
    CatOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    GatherOp,
    HintOp,
    ItemOp,
    JoinOp,
    LoadOp,
    OffsetOp,
    RangeOp,
    RemOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransposeOp,
)


@index_function(ConstantOp)
def _constant(ev: Evaluator, op: ConstantOp, value: Value, coords: Coords) -> Steps:
    # Makes the function a generator, which the evaluator runs.
    yield from ()
    number = op.value
    element = element_of(value.type)
    if isinstance(element, PointerType):
        return Address(Val(f"inttoptr (i64 {int(number)} to ptr)" if number else "null", "ptr"))
    return uniform(constant(number, element))


@index_function(RangeOp)
def _range(ev: Evaluator, op: RangeOp, value: Value, coords: Coords) -> Steps:
    yield from ()
    return ev.math.add(coords[0], literal(op.start))


@index_function(SplatOp, ItemOp)
def _same_everywhere(ev: Evaluator, op: SplatOp | ItemOp, value: Value, coords: Coords) -> Steps:
    source = op.operands[0]
    return (yield source, tuple(literal(0) for _ in shape_of(source.type)))


@index_function(HintOp)
def _hint(ev: Evaluator, op: HintOp, value: Value, coords: Coords) -> Steps:
    return (yield op.operands[0], coords)


@index_function(BroadcastOp)
def _broadcast(ev: Evaluator, op: BroadcastOp, value: Value, coords: Coords) -> Steps:
    extents = shape_of(op.operands[0].type)
    inner = (literal(0) if n == 1 else c for n, c in zip(extents, coords, strict=True))
    return (yield op.operands[0], tuple(inner))


@index_function(ExpandDimsOp)
def _expand_dims(ev: Evaluator, op: ExpandDimsOp, value: Value, coords: Coords) -> Steps:
    axis = op.axis
    return (yield op.operands[0], coords[:axis] + coords[axis + 1 :])


@index_function(TransposeOp)
def _transpose(ev: Evaluator, op: TransposeOp, value: Value, coords: Coords) -> Steps:
    order = op.order
    inner = [coords[order.index(k)] for k in range(len(order))]
    return (yield op.operands[0], tuple(inner))


@index_function(ReshapeOp)
def _reshape(ev: Evaluator, op: ReshapeOp, value: Value, coords: Coords) -> Steps:
    source = op.operands[0]
    target_shape, source_shape = shape_of(value.type), shape_of(source.type)
    inner: list[Lanes] = []
    # By groups, so that dimensions of both shapes keep their affine coordinate.
    for targets, sources in _matching_groups(target_shape, source_shape):
        index = _flatten(ev, [coords[d] for d in targets], [target_shape[d] for d in targets])
        inner += _unflatten(ev, index, [source_shape[d] for d in sources])
    return (yield source, tuple(inner))


def _matching_groups(
    first: tuple[int, ...], second: tuple[int, ...]
) -> list[tuple[list[int], list[int]]]:
    """Split the dimensions of two shapes into groups of equal size, in order."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(first) or j < len(second):
        left, right = [i] if i < len(first) else [], [j] if j < len(second) else []
        i, j = i + len(left), j + len(right)
        while prod(first[d] for d in left) != prod(second[d] for d in right):
            if prod(first[d] for d in left) < prod(second[d] for d in right):
                left.append(i)
                i += 1
            else:
                right.append(j)
                j += 1
        groups.append((left, right))
    return groups


def _flatten(ev: Evaluator, coords: list[Lanes], extents: list[int]) -> Lanes:
    index = literal(0)
    for coord, extent in zip(coords, extents, strict=True):
        index = ev.math.add(ev.math.multiply(index, literal(extent)), coord)
    return index


def _unflatten(ev: Evaluator, index: Lanes, extents: list[int]) -> list[Lanes]:
    coords: list[Lanes] = []
    for extent in reversed(extents[1:]):
        index, coord = ev.math.divide(index, extent)
        coords.append(coord)
    return [index, *reversed(coords)] if extents else []


@index_function(JoinOp)
def _join(ev: Evaluator, op: JoinOp, value: Value, coords: Coords) -> Steps:
    first, second = op.operands
    lhs = ev.as_lanes((yield first, coords[:-1]), first)
    rhs = ev.as_lanes((yield second, coords[:-1]), second)
    return _choose(ev, _is_below(ev, coords[-1], 1), lhs, rhs)


@index_function(CatOp)
def _cat(ev: Evaluator, op: CatOp, value: Value, coords: Coords) -> Steps:
    axis = op.axis
    extents = [shape_of(v.type)[axis] for v in op.operands]
    below = _is_below(ev, coords[axis], extents[0])
    zero = literal(0)
    # Both operands are read in all lanes: index 0 keeps the lanes of the other in bounds.
    inside = _choose(ev, below, coords[axis], zero)
    past = ev.math.add(coords[axis], literal(extents[0]), "sub")
    beyond = _choose(ev, below, zero, past)
    sides: list[Lanes] = []
    for v, coord in zip(op.operands, (inside, beyond), strict=True):
        sides.append(ev.as_lanes((yield v, (*coords[:axis], coord, *coords[axis + 1 :])), v))
    return _choose(ev, below, *sides)


def _is_below(ev: Evaluator, coord: Lanes, bound: int) -> Lanes:
    limit = integer_literal(bound, coord.base.element)
    if coord.is_uniform:
        # Unsigned: coordinates are never negative.
        return uniform(ev.code.compare("icmp ult", coord.base, limit))
    vector = ev.math.vector(coord)
    return ev.math.wrap(ev.code.compare("icmp ult", vector, ev.code.splat(limit, ev.math.width)))


def _choose(ev: Evaluator, condition: Lanes, x: Lanes, y: Lanes) -> Lanes:
    if condition.is_uniform and x.is_uniform and y.is_uniform:
        return uniform(ev.code.select(condition.base, x.base, y.base))
    return ev.math.wrap(ev.code.select(*(ev.math.vector(v) for v in (condition, x, y))))


@index_function(SplitOp)
def _split(ev: Evaluator, op: SplitOp, value: Value, coords: Coords) -> Steps:
    return (yield op.operands[0], (*coords, literal(value.index)))


@index_function(GatherOp)
def _gather(ev: Evaluator, op: GatherOp, value: Value, coords: Coords) -> Steps:
    axis = op.axis
    x, indices = op.operands
    signed = dtype_of(indices.type).is_signed
    index = ev.math.coordinate(ev.as_lanes((yield indices, coords), indices), signed)
    return (yield x, (*coords[:axis], index, *coords[axis + 1 :]))


@index_function(OffsetOp)
def _offset(ev: Evaluator, op: OffsetOp, value: Value, coords: Coords) -> Steps:
    pointer, steps = op.operands
    base = yield pointer, coords
    amount = ev.as_lanes((yield steps, coords), steps)
    element = element_of(value.type)
    assert isinstance(element, PointerType)
    kind = memory_type(element.element)
    signed = dtype_of(op.operands[1].type).is_signed
    if isinstance(base, Lanes) and base.is_uniform:  # of an integer
        base = Address(base.base)
    if isinstance(base, Address):
        return ev.math.offset(base, amount, signed, kind)
    wide = ev.math.widen(amount, signed, "i64")
    address = ev.code.element_address(ev.math.vector(base), ev.math.vector(wide), kind)
    return ev.math.wrap(address)


@index_function(DivOp, RemOp)
def _index_quotient(ev: Evaluator, op: DivOp | RemOp, value: Value, coords: Coords) -> Steps:
    """The quotient and remainder of an index, `i // 256` and `i % 256`, as uniform or affine
    lanes."""
    x = yield op.lhs, coords
    y = yield op.rhs, coords
    divisor = _positive_constant(y)
    if divisor and isinstance(x, Lanes) and not x.is_uniform and ev.env.is_natural(op.lhs):
        divided = ev.math.quotient if isinstance(op, DivOp) else ev.math.remainder
        return divided(x, divisor)
    return ev.elementwise(op, [x, y])


def _positive_constant(x: Evaluated) -> int:
    """An integer that is the same in all lanes; 0 for others, and below 1."""
    number = x.base.constant if isinstance(x, Lanes) and x.is_uniform else None
    return number if isinstance(number, int) and number > 0 else 0


@index_function(LoadOp)
def _load(ev: Evaluator, op: LoadOp, value: Value, coords: Coords) -> Steps:
    values: list[Evaluated] = []
    for operand in op.operands:
        values.append((yield operand, coords))
    at = dict(zip(op.operands, values, strict=True))

    def lanes(operand: Value | None) -> Lanes | None:
        return None if operand is None else ev.as_lanes(at[operand], operand)

    access = Access(at[op.pointer], element_of(value.type), lanes(op.mask), op.volatile)
    if ev.record is not None:
        ev.record.access(op, access, ev.math.width)
    return load(ev.math, access, lanes(op.other))
