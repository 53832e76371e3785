"""Reductions and scans by functions that print, assert, or access memory.

The region of a reduction has no effects: a backend chooses how often it runs, and on which lanes.
A function with effects is called on tiles instead, once for each pair of elements that it combines:

    reduction of 8       adjacent pairs: 4 pairs, then 2, then 1
    scan of 8            the last of each first half with all of its second half: halves of 1, 2, 4
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright import language as tl
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.formula_tracing import evaluate
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.shape_functions import part, reshaped, without_axis
from tilewright.ir.types import shape_of
from tilewright.language import tensor

Tiles = list[tensor]
Combine = Callable[[Tiles], Sequence[tensor]]


def reduce_in_pairs(ctx: Context, tiles: Tiles, axis: int, combine: Combine) -> Tiles:
    """Tiles of one shape folded along an axis, which they lose."""
    extent = _extent(tiles, axis)
    while extent > 1:
        half = extent // 2
        first, second = _pairs(ctx, _parts(ctx, tiles, axis, 0, 2 * half), axis, half)
        folded = list(combine([*first, *second]))
        if extent % 2:
            folded = _joined(ctx, folded, _parts(ctx, tiles, axis, extent - 1, 1), axis)
        tiles, extent = folded, half + extent % 2
    return [without_axis(ctx, tile, axis) for tile in tiles]


def scan_in_halves(ctx: Context, tiles: Tiles, axis: int, combine: Combine, reverse: bool) -> Tiles:
    """The inclusive scan of tiles of one shape along an axis."""
    if reverse:
        flipped = _flipped(ctx, tiles, axis)
        return _flipped(ctx, _scan(ctx, flipped, axis, combine), axis)
    return _scan(ctx, tiles, axis, combine)


def _scan(ctx: Context, tiles: Tiles, axis: int, combine: Combine) -> Tiles:
    extent = _extent(tiles, axis)
    size = 1 << (extent.bit_length() - 1)
    head = _parts(ctx, tiles, axis, 0, size)
    for half in range(size.bit_length() - 1):
        head = _merged(ctx, head, axis, 1 << half, combine)
    if size == extent:
        return head
    tail = _scan(ctx, _parts(ctx, tiles, axis, size, extent - size), axis, combine)
    return _joined(ctx, head, _after(ctx, head, tail, axis, combine), axis)


def _after(ctx: Context, first: Tiles, second: Tiles, axis: int, combine: Combine) -> Tiles:
    """The scanned elements of a run, each combined with the last one of the preceding run."""
    last = _parts(ctx, first, axis, _extent(first, axis) - 1, 1)
    shape = shape_of(second[0].handle.type)
    spread = [tensor(broadcast_value(ctx, tile.handle, shape)) for tile in last]
    return list(combine([*spread, *second]))


def _merged(ctx: Context, tiles: Tiles, axis: int, size: int, combine: Combine) -> Tiles:
    """Each two adjacent scanned runs of `size` elements as one."""
    shape = shape_of(tiles[0].handle.type)
    halves = (*shape[:axis], shape[axis] // (2 * size), 2, size, *shape[axis + 1 :])
    split = [reshaped(ctx, tile, halves) for tile in tiles]
    first, second = (_parts(ctx, split, axis + 1, i, 1) for i in (0, 1))
    merged = _joined(ctx, first, _after(ctx, first, second, axis + 2, combine), axis + 1)
    return [reshaped(ctx, tile, shape) for tile in merged]


def _pairs(ctx: Context, tiles: Tiles, axis: int, count: int) -> tuple[Tiles, Tiles]:
    """The first and the second elements of adjacent pairs."""
    shape = shape_of(tiles[0].handle.type)
    paired = (*shape[:axis], count, 2, *shape[axis + 1 :])
    split = [reshaped(ctx, tile, paired) for tile in tiles]
    first, second = (_parts(ctx, split, axis + 1, i, 1) for i in (0, 1))
    return (
        [without_axis(ctx, tile, axis + 1) for tile in first],
        [without_axis(ctx, tile, axis + 1) for tile in second],
    )


def _extent(tiles: Tiles, axis: int) -> int:
    return shape_of(tiles[0].handle.type)[axis]


def _parts(ctx: Context, tiles: Tiles, axis: int, start: int, count: int) -> Tiles:
    if count == _extent(tiles, axis):
        return tiles
    return [part(ctx, tile, axis, start, count) for tile in tiles]


def _joined(ctx: Context, left: Tiles, right: Tiles, axis: int) -> Tiles:
    pairs = zip(left, right, strict=True)
    return evaluate(ctx, lambda: [tl.cat(a, b, dim=axis) for a, b in pairs])


def _flipped(ctx: Context, tiles: Tiles, axis: int) -> Tiles:
    return evaluate(ctx, lambda: [tl.flip(tile, axis) for tile in tiles])
