"""Decomposition of tiles next to dots into power-of-two tiles.

    %k = mem.load %p : tile<128x96xf16>          %k = mem.load %p : tile<128x64xf16>
                                                 %l = mem.load %q : tile<128x32xf16>
    %t = tile.transpose %k                 ->    %t = tile.transpose %k
                                                 %u = tile.transpose %l
    %s = tile.dot %a, %t, %acc                   %r = tile.dot %a, %t, %acc
                                                 %s = tile.dot %b, %u, %r

A padded dot of 96 columns costs as much as one of 128, and its loads need masks. In parts of 64 and
32 nothing is padded: parts along K are accumulated, parts along columns have their own dots, and
loops carry parts. A function is left to padding where the rows of a dot are no power of two, a
part would be too small for an instruction, or an op moves elements across parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from tilewright.ir import Builder, Function, Op, Rewriter, Trait, Value
from tilewright.ir.types import TileType, Type, dtype_of, shape_of, with_shape
from tilewright.ops import (
    BroadcastOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    IfOp,
    LoadOp,
    RangeOp,
    ReduceOp,
    SplatOp,
    StoreOp,
    TransposeOp,
    YieldOp,
)
from tilewright.support.registration import Registration
from tilewright.transforms import add_choice, add_slot, is_root, keep_slice, yield_more

Piece = tuple[int, int]
"""Start along a dim, and extent."""

Region = tuple[Piece, ...]
"""A part of a tile: a piece along each dim."""

_LEAST_COLUMNS = 16
_LEAST_BITS = 256  # along K, of an instruction
_MOST_PIECES = 3


def decompose_tiles(function: Function) -> None:
    """Compute dots of any number of columns, and any K, without padding, where that is possible."""
    if _can_be_split(function):
        _Splitting().run(function)


def pieces(extent: int) -> tuple[Piece, ...]:
    """The powers of two whose sum is an extent, the largest first."""
    found: list[Piece] = []
    while extent:
        piece = 1 << extent.bit_length() - 1
        found.append((found[-1][0] + found[-1][1] if found else 0, piece))
        extent -= piece
    return tuple(found)


def _regions(type_: Type) -> list[Region]:
    return list(product(*map(pieces, shape_of(type_))))


def _is_split(value: Value) -> bool:
    return isinstance(value.type, TileType) and len(_regions(value.type)) > 1


def _can_be_split(function: Function) -> bool:
    """Whether there are dots of tiles to be split, and all of them can be."""
    touched = [op for op in function.walk() if any(map(_is_split, (*op.operands, *op.results)))]
    return any(isinstance(op, DotOp) for op in touched) and all(map(_is_splittable, touched))


def _is_splittable(op: Op) -> bool:
    if isinstance(op, DotOp):
        return _has_parts_for_instructions(op)
    if isinstance(op, ReduceOp):
        return len(op.results) == 1 and len(pieces(shape_of(op.inputs[0].type)[op.axis])) == 1
    if isinstance(op, YieldOp):
        return op.parent is not None and isinstance(op.parent.owner, ForOp | IfOp)
    return Trait.ELEMENTWISE in op.traits or type(op) in (ForOp, IfOp, *_HANDLERS)


def _has_parts_for_instructions(op: DotOp) -> bool:
    *outer, m, n = shape_of(op.type)
    k = shape_of(op.a.type)[-1]
    whole = not outer and len(pieces(m)) == 1
    found = pieces(n), pieces(k)
    bits = dtype_of(op.a.type).bits
    return (
        whole
        and max(map(len, found)) <= _MOST_PIECES
        and pieces(n)[-1][1] >= _LEAST_COLUMNS
        and pieces(k)[-1][1] * bits >= _LEAST_BITS
    )


class _Splitting:
    """One run. parts: of each split value."""

    def __init__(self) -> None:
        self.parts: dict[Value, dict[Region, Value]] = {}
        self.replaced: set[Op] = set()

    def run(self, function: Function) -> None:
        for op in list(function.walk()):
            if isinstance(op, ForOp):
                self._carry(op)
            elif isinstance(op, YieldOp):
                self._pass_on(op)
            elif any(map(_is_split, (*op.operands, *op.results))) and not isinstance(op, IfOp):
                self._split(op)
        # The originals are still there, without uses outside of themselves.
        roots = [op for op in function.walk() if op not in self.replaced and is_root(op)]
        keep_slice(function.body, roots)

    def part(self, value: Value, region: Region) -> Value:
        """A part of a tile; scalars, and tiles that are not split, unchanged."""
        return self.parts[value][region] if value in self.parts else value

    def _split(self, op: Op) -> None:
        handler = _HANDLERS.get(type(op), _elementwise)
        builder = Builder.at(op)
        of_what = op.results[0] if op.results else op.operands[0]
        made: dict[Region, Value] = {}
        for region in _regions(of_what.type):
            new = handler(self, builder, op, region)
            if op.results:
                made[region] = new.results[0]
        self.replaced.add(op)
        if not op.results:
            return
        if len(made) == 1:  # a dot that accumulates over parts
            Rewriter.replace_uses(op.result, next(iter(made.values())))
        else:
            self.parts[op.results[0]] = made

    def _carry(self, loop: ForOp) -> None:
        """Carry the parts of carried tiles."""
        for init, arg, result in list(zip(loop.inits, loop.carried, loop.results, strict=True)):
            if not _is_split(arg):
                continue
            self.parts[arg], self.parts[result] = {}, {}
            for region in _regions(arg.type):
                (view,) = add_slot(loop, self.part(init, region), arg.name)
                self.parts[arg][region] = view
                self.parts[result][region] = loop.results[-1]

    def _pass_on(self, end: YieldOp) -> None:
        """Yield the parts of yielded tiles."""
        owner = end.parent.owner if end.parent is not None else None
        values = [value for value in end.operands if _is_split(value)]
        if isinstance(owner, ForOp):
            for value in values:
                for region in _regions(value.type):
                    yield_more(owner, self.part(value, region))
        elif isinstance(owner, IfOp) and end.parent is owner.regions[-1]:
            self._choose(owner)

    def _choose(self, branch: IfOp) -> None:
        """Yield parts from a branch, both of whose blocks are split."""
        yielded = [list(block.terminator.operands) for block in branch.regions]
        for result, values in zip(branch.results, zip(*yielded, strict=True), strict=True):
            if _is_split(result):
                self.parts[result] = {
                    region: add_choice(branch, [self.part(x, region) for x in values], result.name)
                    for region in _regions(result.type)
                }


_HANDLERS: dict[type[Op], Callable[[_Splitting, Builder, Any, Region], Op]] = {}
_handles = Registration(_HANDLERS)


def _sizes(region: Region) -> tuple[int, ...]:
    return tuple(size for _, size in region)


def resized(builder: Builder, op: Op, operands: Sequence[Value], shape: tuple[int, ...]) -> Op:
    """A copy of an op with other operands, for a result of another shape."""
    new = op.clone(dict(zip(op.operands, operands, strict=True)))
    for name, value in op.attrs.items():
        if isinstance(value, TileType):
            new.attrs[name] = with_shape(value, shape)
        elif name == "shape":
            new.attrs[name] = shape
    for result in new.results:
        result.type = with_shape(result.type, shape)
    return builder.emit(new)


@_handles(LoadOp, StoreOp, SplatOp)
def _elementwise(splitting: _Splitting, builder: Builder, op: Op, region: Region) -> Op:
    return resized(builder, op, [splitting.part(x, region) for x in op.operands], _sizes(region))


@_handles(RangeOp)
def _range(splitting: _Splitting, builder: Builder, op: RangeOp, region: Region) -> Op:
    ((start, size),) = region
    return builder.emit(RangeOp(op.start + start, op.start + start + size))


@_handles(ExpandDimsOp)
def _expand_dims(splitting: _Splitting, builder: Builder, op: ExpandDimsOp, region: Region) -> Op:
    source = splitting.part(op.x, (*region[: op.axis], *region[op.axis + 1 :]))
    return builder.emit(ExpandDimsOp(source, op.axis))


@_handles(BroadcastOp)
def _broadcast(splitting: _Splitting, builder: Builder, op: BroadcastOp, region: Region) -> Op:
    extents = shape_of(op.x.type)
    source = tuple(
        (0, 1) if extent == 1 else piece for extent, piece in zip(extents, region, strict=True)
    )
    return builder.emit(BroadcastOp(splitting.part(op.x, source), _sizes(region)))


@_handles(TransposeOp)
def _transpose(splitting: _Splitting, builder: Builder, op: TransposeOp, region: Region) -> Op:
    source = list(region)
    for piece, dim in zip(region, op.order, strict=True):
        source[dim] = piece
    return builder.emit(TransposeOp(splitting.part(op.x, tuple(source)), order=op.order))


@_handles(ReduceOp)
def _reduce(splitting: _Splitting, builder: Builder, op: ReduceOp, region: Region) -> Op:
    """The reduction of a part, along an axis that is not split."""
    (axis,) = pieces(shape_of(op.inputs[0].type)[op.axis])
    source = (*region[: op.axis], axis, *region[op.axis :])
    return resized(builder, op, [splitting.part(x, source) for x in op.inputs], _sizes(region))


@_handles(DotOp)
def _dot(splitting: _Splitting, builder: Builder, op: DotOp, region: Region) -> Op:
    """The dots of the parts along K, accumulated."""
    rows, columns = region
    acc, new = splitting.part(op.acc, region), op
    for piece in pieces(shape_of(op.a.type)[-1]):
        a, b = splitting.part(op.a, (rows, piece)), splitting.part(op.b, (piece, columns))
        new = resized(builder, op, (a, b, acc), _sizes(region))
        acc = new.results[0]
    return new
