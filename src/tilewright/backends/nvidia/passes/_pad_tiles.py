"""Padding of tiles to power-of-two shapes.

    %i = tile.range 0..12                   %i = tile.range 0..16
    %x = mem.load %p                 ->     %x = mem.load %p mask %i < 12
    %s = tile.reduce add %x                 %s = tile.reduce add (select %i < 12, %x, -0.0)

Padding follows the elements of each dimension and holds arbitrary values. Ops with effects are
masked: memory accesses, assertions, prints. Reductions and scans along a padded dimension get
neutral elements, or a flag with each element; dots get zeros along K; ops that move elements across
dimensions become gathers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.ir import ArithmeticBuilder, Block, Builder, Function, Op, Rewriter, Value
from tilewright.ir.types import DType, TileType, Type, dtype_of, element_of, i1, shape_of
from tilewright.ops import (
    AddOp,
    AndOp,
    AssertOp,
    AtomicCasOp,
    AtomicOp,
    CatOp,
    DotOp,
    GatherOp,
    HistogramOp,
    LoadOp,
    MaxOp,
    MinOp,
    MulOp,
    OrOp,
    PrintOp,
    RangeOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    StoreOp,
    XorOp,
    YieldOp,
)
from tilewright.support import errors
from tilewright.support.registration import Registration

Shape = tuple[int, ...]


def pad_tiles(function: Function) -> None:
    """Pad the shapes of all tiles to powers of two."""
    types = [v.type for op in function.walk() for v in op.results]
    if any(padded(type_) is not type_ for type_ in types):
        _Padding(function).run()


def _up(extent: int) -> int:
    """The next power of two."""
    return 1 << (extent - 1).bit_length()


def padded(type_: Type) -> Type:
    """A type with extents that are powers of two."""
    if not isinstance(type_, TileType):
        return type_
    shape = tuple(map(_up, type_.shape))
    return type_ if shape == type_.shape else TileType(shape, type_.element)


def _is_gone(op: Op) -> bool:
    return op.parent is None


class _Padding(ArithmeticBuilder):
    """One run. shapes: of padded values, without their padding; definitions are padded before
    uses."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.shapes: dict[Value, Shape] = {}
        self.builder = Builder(function.body)

    def run(self) -> None:
        for op in list(self.function.walk()):
            if _is_gone(op):  # in a region that was rebuilt
                continue
            self.builder = Builder.at(op)
            handler = _HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op)
            if not _is_gone(op):
                self.pad(op)

    def pad(self, op: Op) -> None:
        """Give an op padded types and extents."""
        for name, value in op.attrs.items():
            if isinstance(value, TileType):
                op.attrs[name] = padded(value)
            elif name == "shape":
                op.attrs[name] = tuple(map(_up, value))
            elif name == "bins":
                op.attrs[name] = _up(value)
            elif name == "result_types":
                op.attrs[name] = tuple(map(padded, value))
        for value in (*op.results, *(arg for block in op.regions for arg in block.args)):
            shape = shape_of(value.type)
            value.type = padded(value.type)
            if shape_of(value.type) != shape:
                self.shapes[value] = shape

    def shape(self, value: Value) -> Shape:
        """The extents of a value without its padding."""
        return self.shapes.get(value, shape_of(value.type))

    def is_padded(self, value: Value | None) -> bool:
        return value is not None and value in self.shapes

    # --- ops that are added -----------------------------------------------------------------------

    def value(self, op: Op) -> Value:
        return self.builder.value(op)

    def inside(self, shape: Shape, dims: range | None = None) -> Value:
        """Mask of the elements of a padded tile that are no padding, along all dimensions or
        some."""
        full = tuple(map(_up, shape))
        valid: Value | None = None
        for dim in dims or range(len(shape)):
            if full[dim] == shape[dim]:
                continue
            one = self.along(self.lt(self.arange(0, full[dim]), shape[dim]), dim, full)
            valid = one if valid is None else self.bit_and(valid, one)
        assert valid is not None, "nothing is padded"
        return valid

    def where(self, valid: Value, x: Value, otherwise: float) -> Value:
        """x where `valid` holds, a number elsewhere."""
        return self.select(valid, x, otherwise)

    def replace(self, op: Op, *values: Value) -> None:
        """Put padded values in place of the results of an op."""
        for result, value in zip(op.results, values, strict=True):
            if padded(result.type) is not result.type:
                self.shapes[value] = shape_of(result.type)
        Rewriter.replace(op, values)


_HANDLERS: dict[type[Op], Callable[[_Padding, Any], None]] = {}
_handles = Registration(_HANDLERS)


@_handles(RangeOp)
def _range(padding: _Padding, op: RangeOp) -> None:
    op.attrs["end"] = op.start + _up(op.end - op.start)


# --- ops that take a mask -------------------------------------------------------------------------


@_handles(LoadOp, StoreOp, AtomicOp, HistogramOp, AssertOp)
def _masked(padding: _Padding, op: LoadOp | StoreOp | AtomicOp | HistogramOp | AssertOp) -> None:
    first = op.operands[0]
    if not padding.is_padded(first):
        return
    valid = padding.inside(padding.shape(first))
    mask = op.mask
    if mask is not None:
        valid = padding.bit_and(mask, valid)
    fields: dict[str, Any] = {f.name: getattr(op, f.name) for f in op.fields}
    fields["mask"] = valid
    if isinstance(op, HistogramOp):
        fields["bins"] = _up(op.bins)
    # Types of results are inferred from operands, which are already padded.
    new = padding.builder.emit(type(op)(**fields))
    padding.replace(op, *new.results)


@_handles(AtomicCasOp)
def _compare_and_swap(padding: _Padding, op: AtomicCasOp) -> None:
    if padding.is_padded(op.pointer):
        construct = "on a GPU, atomic_cas of a tile whose extents are no powers of two"
        raise errors.UnsupportedLanguageConstruct(construct, "use such extents", loc=op.loc)


@_handles(PrintOp)
def _printed(padding: _Padding, op: PrintOp) -> None:
    if any(map(padding.is_padded, op.args)):
        op.attrs["extents"] = tuple(n for arg in op.args for n in padding.shape(arg))


# --- folds and dots ---------------------------------------------------------------------------

_NEUTRAL: dict[type[Op], Callable[[DType], float]] = {
    AddOp: lambda t: -0.0 if t.is_float else 0,
    MulOp: lambda t: 1.0 if t.is_float else 1,
    MaxOp: lambda t: -math.inf if t.is_float else t.min_int,
    MinOp: lambda t: math.inf if t.is_float else t.max_int,
    AndOp: lambda t: -1 if t.is_signed and not t.is_bool else t.max_int,
    OrOp: lambda t: 0,
    XorOp: lambda t: 0,
}
"""Neutral numbers, by the combining op. Not 0.0: the sum of -0.0 and 0.0 is 0.0."""


@_handles(ReduceOp, ScanOp)
def _fold(padding: _Padding, op: ReduceOp | ScanOp) -> None:
    shape, axis = padding.shape(op.inputs[0]), op.axis
    # A forward scan reaches the padding last.
    forwards = isinstance(op, ScanOp) and not op.reverse
    if forwards or _up(shape[axis]) == shape[axis]:
        return
    valid = padding.inside(shape, range(axis, axis + 1))
    neutral = neutral_number(op)
    if neutral is not None:
        op.set_operand(0, padding.where(valid, op.inputs[0], neutral))
        return
    attrs = dict(op.attrs)
    combine = _flagged(op.combine, len(op.inputs))
    new = padding.builder.emit(type(op)((*op.inputs, valid), combine, **attrs))
    padding.replace(op, *new.results[:-1])


def neutral_number(op: ReduceOp | ScanOp) -> float | None:
    """The neutral number of a reduction or scan by a single op; None without one."""
    first = op.combine.first
    element = element_of(op.inputs[0].type)
    if len(op.inputs) > 1 or first is None or not isinstance(element, DType):
        return None
    find, combine_result = _NEUTRAL.get(type(first)), op.combine.terminator.operands
    plain = set(first.operands) == set(op.combine.args)
    # fp8 may have no infinity.
    if find is None or not plain or (element.is_float and element.bits < 16):
        return None
    return find(element) if combine_result == [first.result] else None


def _flagged(combine: Block, count: int) -> Block:
    """A combine region with a flag for each side: whether it has an element."""
    types = tuple(arg.type for arg in combine.args[:count])
    block = Block((*types, i1, *types, i1))
    builder = Builder(block)
    left, (has_left,) = block.args[:count], block.args[count : count + 1]
    right, (has_right,) = block.args[count + 1 : -1], block.args[-1:]
    combined = Rewriter.inline_block(combine, (*left, *right), builder)
    both = builder.bit_and(has_left, has_right)
    results: list[Value] = []
    for a, b, ab in zip(left, right, combined, strict=True):
        one = builder.select(has_left, a, b)
        results.append(builder.select(both, ab, one))
    builder.emit(YieldOp((*results, builder.bit_or(has_left, has_right))))
    return block


@_handles(DotOp)
def _dot(padding: _Padding, op: DotOp) -> None:
    for index, axis in ((0, -1), (1, -2)):
        operand = op.operands[index]
        shape = padding.shape(operand)
        axis += len(shape)
        if _up(shape[axis]) != shape[axis]:
            valid = padding.inside(shape, range(axis, axis + 1))
            zero = 0.0 if dtype_of(operand.type).is_float else 0
            op.set_operand(index, padding.where(valid, operand, zero))


# --- ops that move elements -----------------------------------------------------------------------


@_handles(GatherOp)
def _gather(padding: _Padding, op: GatherOp) -> None:
    if padding.is_padded(op.index):
        valid = padding.inside(padding.shape(op.index))
        op.set_operand(1, padding.where(valid, op.index, 0))


@_handles(ReshapeOp)
def _reshape(padding: _Padding, op: ReshapeOp) -> None:
    source, target = padding.shape(op.x), op.shape
    # With padding in the first dimension only, elements keep their numbers in row-major order.
    if all(_up(n) == n for n in (*source[1:], *target[1:])):
        return
    full = tuple(map(_up, target))
    place = padding.arange(0, math.prod(full))
    number = _renumbered(padding, place, full, target)
    number = padding.min(number, math.prod(source) - 1)
    place = _renumbered(padding, number, source, tuple(map(_up, source)))
    flat = padding.value(ReshapeOp(op.x, (math.prod(shape_of(op.x.type)),)))
    moved = padding.value(GatherOp(flat, place, 0))
    padding.replace(op, padding.value(ReshapeOp(moved, full)))


def _renumbered(padding: _Padding, number: Value, old: Shape, new: Shape) -> Value:
    """Row-major numbers of elements in a tile of shape `old`, as numbers in shape `new`."""
    total = padding.constant(0, number.type)
    for dim in range(len(old)):
        index = padding.rem(padding.div(number, math.prod(old[dim + 1 :])), old[dim])
        total = padding.add(total, padding.mul(index, math.prod(new[dim + 1 :])))
    return total


@_handles(CatOp)
def _cat(padding: _Padding, op: CatOp) -> None:
    left, right = padding.shape(op.lhs), padding.shape(op.rhs)
    axis = op.axis
    if left == right and left[axis] == _up(left[axis]):
        return
    whole = list(left)
    whole[axis] += right[axis]
    full = tuple(map(_up, whole))
    place = padding.arange(0, full[axis])
    first = left[axis]
    sides: list[Value] = []
    for x, index, extent in (
        (op.lhs, place, left[axis]),
        (op.rhs, padding.sub(place, first), right[axis]),
    ):
        index = padding.min(index, extent - 1)
        index = padding.max(index, 0)
        sides.append(padding.value(GatherOp(x, padding.along(index, axis, full), axis)))
    is_left = padding.along(padding.lt(place, first), axis, full)
    padding.replace(op, padding.select(is_left, *sides))
