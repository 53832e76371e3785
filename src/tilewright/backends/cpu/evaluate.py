"""Evaluates a tile value at the coordinates of the lanes: tile ops as functions of an index.

Ops that only compute or move elements have no code of their own: `Evaluator.at(value, coords)`
walks from a use up to what exists (a buffer, a scalar, memory) and emits what one vector step
needs. Results are remembered for the nest, so that a value shared by several sinks of a nest is
computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import cast

from tilewright.backends.cpu.access import (
    Access,
    Buffer,
    load,
    memory_type,
    read_buffer,
)
from tilewright.backends.cpu.lanes import Address, LaneMath, Lanes, literal, uniform
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import DType, PointerType, TileType, dtype_of, element_of, shape_of
from tilewright.llvm import Code, Val, constant, integer_literal, llvm_type, lower_elementwise
from tilewright.ops import (
    AddOp,
    BroadcastOp,
    CastOp,
    CatOp,
    CompareOp,
    ConstantOp,
    ExpandDimsOp,
    GatherOp,
    HintOp,
    ItemOp,
    JoinOp,
    LoadOp,
    MulOp,
    OffsetOp,
    RangeOp,
    ReshapeOp,
    SelectOp,
    SplatOp,
    SplitOp,
    SubOp,
    TransposeOp,
)

Coords = tuple[Lanes, ...]
Evaluated = Lanes | Address


class Environment:
    """What exists in the function so far: scalars, and tiles in buffers."""

    __slots__ = ("buffers", "scalars")

    def __init__(self) -> None:
        self.scalars: dict[Value, Evaluated] = {}
        self.buffers: dict[Value, Buffer] = {}


class Evaluator:
    """Evaluates values for one nest. holds: conditions that are true wherever it runs."""

    __slots__ = ("code", "env", "holds", "known", "math")

    def __init__(
        self, code: Code, env: Environment, width: int, holds: frozenset[Value] = frozenset()
    ) -> None:
        self.code = code
        self.env = env
        self.holds = holds
        self.math = LaneMath(code, width)
        self.known: dict[tuple[Value, Coords], Evaluated] = {}

    def at(self, value: Value, coords: Coords) -> Evaluated:
        """The value at the lanes' coordinates (none for a scalar)."""
        if not isinstance(value.type, TileType):
            found = self.env.scalars.get(value)
            if found is not None:
                return found
            coords = ()
        key = (value, coords)
        found = self.known.get(key)
        if found is None:
            buffer = self.env.buffers.get(value)
            if value in self.holds:
                found = uniform(integer_literal(1, "i1"))
            elif buffer is not None:
                found = read_buffer(self.math, buffer, coords)
            else:
                found = self._compute(value, coords)
            self.known[key] = found
        return found

    def lanes(self, value: Value, coords: Coords) -> Lanes:
        """As `at`, for a value that is no pointer, or for pointers one by one."""
        return self.as_lanes(self.at(value, coords), value)

    def as_lanes(self, found: Evaluated, value: Value) -> Lanes:
        """Addresses spelled out as a vector of pointers."""
        if isinstance(found, Lanes):
            return found
        if found.offset is None:
            return uniform(found.base)
        element = element_of(value.type)
        assert isinstance(element, PointerType)
        return self.math.wrap(self.math.addresses(found, memory_type(element.element)))

    def vector(self, value: Value, coords: Coords) -> Val:
        return self.math.vector(self.lanes(value, coords))

    def _compute(self, value: Value, coords: Coords) -> Evaluated:
        op = cast("Op | None", value.op)
        assert op is not None, f"argument {value} has no buffer"
        special = _INDEX_FUNCTIONS.get(type(op))
        if special is not None:
            return special(self, op, value, coords)
        assert Trait.ELEMENTWISE in op.traits, f"{op.opcode} is not an index function"
        return self.elementwise(op, [self.at(v, coords) for v in op.operands])

    def elementwise(self, op: Op, found: list[Evaluated]) -> Evaluated:
        """One element-wise op on evaluated operands: on scalars if all are uniform."""
        affine = _AFFINE.get(type(op))
        if affine is not None:
            result = affine(self, op, found)
            if result is not None:
                return result
        operands = [self.as_lanes(f, v) for f, v in zip(found, op.operands, strict=True)]
        if all(lanes.is_uniform for lanes in operands):
            return uniform(lower_elementwise(self.code, op, [lanes.base for lanes in operands]))
        vectors = [self.math.vector(lanes) for lanes in operands]
        return self.math.wrap(lower_elementwise(self.code, op, vectors))


IndexFunction = Callable[[Evaluator, Op, Value, Coords], Evaluated]
_INDEX_FUNCTIONS: dict[type[Op], IndexFunction] = {}


def index_function(op_class: type[Op]) -> Callable[[IndexFunction], IndexFunction]:
    """Register how the elements of an op's result are found."""

    def register(function: IndexFunction) -> IndexFunction:
        _INDEX_FUNCTIONS[op_class] = function
        return function

    return register


@index_function(ConstantOp)
def _constant(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    number = cast("float", op.attrs["value"])
    element = element_of(value.type)
    if isinstance(element, PointerType):
        return Address(Val(f"inttoptr (i64 {int(number)} to ptr)" if number else "null", "ptr"))
    return uniform(constant(number, element))


@index_function(RangeOp)
def _range(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    return ev.math.add(coords[0], literal(cast("int", op.attrs["start"])))


@index_function(SplatOp)
@index_function(ItemOp)
def _same_everywhere(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    source = op.operands[0]
    return ev.at(source, tuple(literal(0) for _ in shape_of(source.type)))


@index_function(HintOp)
def _hint(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    return ev.at(op.operands[0], coords)


@index_function(BroadcastOp)
def _broadcast(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    extents = shape_of(op.operands[0].type)
    inner = (literal(0) if n == 1 else c for n, c in zip(extents, coords, strict=True))
    return ev.at(op.operands[0], tuple(inner))


@index_function(ExpandDimsOp)
def _expand_dims(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    axis = cast("int", op.attrs["axis"])
    return ev.at(op.operands[0], coords[:axis] + coords[axis + 1 :])


@index_function(TransposeOp)
def _transpose(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    order = cast("tuple[int, ...]", op.attrs["order"])
    inner = [coords[order.index(k)] for k in range(len(order))]
    return ev.at(op.operands[0], tuple(inner))


@index_function(ReshapeOp)
def _reshape(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    source = op.operands[0]
    target_shape, source_shape = shape_of(value.type), shape_of(source.type)
    inner: list[Lanes] = []
    for targets, sources in _matching_groups(target_shape, source_shape):
        index = _flatten(ev, [coords[d] for d in targets], [target_shape[d] for d in targets])
        inner += _unflatten(ev, index, [source_shape[d] for d in sources])
    return ev.at(source, tuple(inner))


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
def _join(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    lhs, rhs = (ev.lanes(v, coords[:-1]) for v in op.operands)
    return _choose(ev, _is_below(ev, coords[-1], 1), lhs, rhs)


@index_function(CatOp)
def _cat(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    axis = cast("int", op.attrs["axis"])
    extents = [shape_of(v.type)[axis] for v in op.operands]
    below = _is_below(ev, coords[axis], extents[0])
    zero = literal(0)
    inside = _choose(ev, below, coords[axis], zero)
    past = ev.math.add(coords[axis], literal(extents[0]), "sub")
    beyond = _choose(ev, below, zero, past)
    sides = (
        ev.lanes(v, (*coords[:axis], coord, *coords[axis + 1 :]))
        for v, coord in zip(op.operands, (inside, beyond), strict=True)
    )
    return _choose(ev, below, *sides)


def _is_below(ev: Evaluator, coord: Lanes, bound: int) -> Lanes:
    limit = integer_literal(bound, coord.base.element)
    if coord.is_uniform:
        return uniform(ev.code.compare("icmp ult", coord.base, limit))
    vector = ev.math.vector(coord)
    return ev.math.wrap(ev.code.compare("icmp ult", vector, ev.code.splat(limit, ev.math.width)))


def _choose(ev: Evaluator, condition: Lanes, x: Lanes, y: Lanes) -> Lanes:
    if condition.is_uniform and x.is_uniform and y.is_uniform:
        return uniform(ev.code.select(condition.base, x.base, y.base))
    return ev.math.wrap(ev.code.select(*(ev.math.vector(v) for v in (condition, x, y))))


@index_function(SplitOp)
def _split(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    return ev.at(op.operands[0], (*coords, literal(value.index)))


@index_function(GatherOp)
def _gather(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    axis = cast("int", op.attrs["axis"])
    signed = dtype_of(op.operands[1].type).is_signed
    index = ev.math.coordinate(ev.lanes(op.operands[1], coords), signed)
    return ev.at(op.operands[0], (*coords[:axis], index, *coords[axis + 1 :]))


@index_function(OffsetOp)
def _offset(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    base, amount = ev.at(op.operands[0], coords), ev.lanes(op.operands[1], coords)
    element = element_of(value.type)
    assert isinstance(element, PointerType)
    kind = memory_type(element.element)
    signed = dtype_of(op.operands[1].type).is_signed
    if isinstance(base, Address):
        return ev.math.offset(base, amount, signed, kind)
    wide = ev.math.widen(amount, signed, "i64")
    pointers, steps = ev.math.vector(base), ev.math.vector(wide)
    return ev.math.wrap(ev.code.element_address(pointers, steps, kind))


@index_function(LoadOp)
def _load(ev: Evaluator, op: Op, value: Value, coords: Coords) -> Evaluated:
    access, other = load_access(ev, cast("LoadOp", op), coords)
    return load(ev.math, access, other)


def load_access(ev: Evaluator, op: LoadOp, coords: Coords) -> tuple[Access, Lanes | None]:
    """The access of a load at the lanes' coordinates, and what masked-off lanes get."""
    mask = None if op.mask is None else ev.lanes(op.mask, coords)
    other = None if op.other is None else ev.lanes(op.other, coords)
    access = Access(ev.at(op.pointer, coords), element_of(op.type), mask, op.volatile)
    return access, other


Affine = Callable[[Evaluator, Op, list[Evaluated]], "Evaluated | None"]


def _affine_sum(ev: Evaluator, op: Op, found: list[Evaluated]) -> Evaluated | None:
    x, y = found
    if isinstance(x, Address) or isinstance(y, Address) or dtype_of(op.results[0].type).is_float:
        return None
    if x.is_vector or y.is_vector:
        return None
    return ev.math.add(x, y, "add" if isinstance(op, AddOp) else "sub")


def _affine_product(ev: Evaluator, op: Op, found: list[Evaluated]) -> Evaluated | None:
    x, y = found
    if isinstance(x, Address) or isinstance(y, Address) or dtype_of(op.results[0].type).is_float:
        return None
    return None if x.is_vector or y.is_vector else ev.math.multiply(x, y)


def _affine_cast(ev: Evaluator, op: Op, found: list[Evaluated]) -> Evaluated | None:
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    x = found[0]
    if isinstance(source, PointerType) and isinstance(target, PointerType):
        moves = isinstance(x, Address) and x.offset is not None
        return None if moves and source.element.bytes != target.element.bytes else x
    if isinstance(source, PointerType) or isinstance(target, PointerType):
        return None
    if isinstance(x, Address) or not x.is_affine or not _widens(source, target):
        return None
    if target.bits > source.bits and not ev.math.counts_up(x) and not _only_addresses(op):
        return None
    return ev.math.widen(x, source.is_signed, llvm_type(target))


_INDEX_ARITHMETIC = (
    AddOp,
    SubOp,
    MulOp,
    CastOp,
    BroadcastOp,
    ExpandDimsOp,
    TransposeOp,
    ReshapeOp,
)


def _only_addresses(op: Op) -> bool:
    """Whether a number serves to form addresses and masks only: then it is taken not to wrap."""
    for raw in op.result.uses:
        user = cast("Op", raw)
        if isinstance(user, OffsetOp | CompareOp):
            continue
        if not isinstance(user, _INDEX_ARITHMETIC) or not _only_addresses(user):
            return False
    return True


def _widens(source: DType, target: DType) -> bool:
    return source.is_integer and target.is_integer and target.bits >= source.bits


def _select_same(ev: Evaluator, op: Op, found: list[Evaluated]) -> Evaluated | None:
    condition, x, y = found
    if (
        isinstance(condition, Lanes)
        and condition.is_uniform
        and condition.base.constant is not None
    ):
        return x if condition.base.constant else y
    return x if x == y else None


_AFFINE: dict[type[Op], Affine] = {
    AddOp: _affine_sum,
    SubOp: _affine_sum,
    MulOp: _affine_product,
    CastOp: _affine_cast,
    SelectOp: _select_same,
}
