"""Split reductions across warps: first within warps, then across them.

    %s = tile.reduce %x {axis = 0}        %p = tile.reshape %x : tile<4x256xf32>    of 4 warps
                                    ->    %w = tile.reduce %p {axis = 1} : tile<4xf32>
                                          %a = nvidia.convert %w                    all in a thread
                                          %s = tile.reduce %a {axis = 0}

The conversion goes through shared memory (lower_exchanges.py). Where warps are not one run along
the axis, its elements are permuted first, within each thread.

The partial results of n warps are in n registers of each thread, which takes n - 1 combinations;
or, where these cost more than shuffles, in n lanes of each warp, which takes log2(n) of both:

    %a = nvidia.convert %w                                    one of 16 in each lane
    %s, %t = tile.reduce %a, %b {axis = 0} (...) { ... }      4 times shuffled and combined

A constant that is equal in all warps, such as the count of a mean, is not exchanged:

    %n = arith.constant {value = 256.0} : tile<16xf32>        instead of a conversion
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod

from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import TileType, element_of
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout, log2, slice_of, tile_dims
from tilewright.ops import DivOp, MathOp, ReduceOp, ReshapeOp, TransposeOp
from tilewright.support.data_class import dataclass
from tilewright.transforms.rules import reduced_constants

_SHUFFLE = 6
"""Instructions with the latency of a shuffle, estimated: 23 cycles versus 4."""

_LONG = 12
"""The same for a division or a function."""


@dataclass(frozen=True)
class SplitReductions(Pass, name="nvidia-split-reductions"):
    """Reduce within warps first; then the partial results, which every thread reads."""

    def run(self, function: Function) -> bool:
        split = [op for op in function.walk() if isinstance(op, ReduceOp) and warps_along(op)]
        for op in split:
            _split(op)
        return bool(split)


def warps_along(op: ReduceOp) -> list[int]:
    """The bits of coordinates along the reduced axis that the warp number determines."""
    bases = [basis[op.axis] for basis in layout_of(op.inputs[0]).bases(WARP)]
    return [log2(along) for along in bases if along]


def _split(op: ReduceOp) -> None:
    build = Builder.at(op)
    apart = [_apart(build, x, op.axis, warps_along(op)) for x in op.inputs]
    inner = apart[0][1]
    within = ReduceOp(tuple(x for x, _ in apart), op.combine.clone({}), inner)
    parts = emitted(build, within, slice_of(layout_of(apart[0][0]), inner))
    by_lanes = _is_sooner_by_lanes(op, 1 << len(warps_along(op)))
    known = reduced_constants(op, layout_of(apart[0][0]).shape[inner])
    together = [
        _collected(build, part, op.axis, by_lanes, number)
        for part, number in zip(parts, known, strict=True)
    ]
    last = ReduceOp(tuple(together), op.combine.clone({}), op.axis)
    Rewriter.replace(op, emitted(build, last, slice_of(layout_of(together[0]), op.axis)))


def _apart(build: Builder, x: Value, axis: int, warps: list[int]) -> tuple[Value, int]:
    """The same elements with the axis split into warps and the rest; and the axis of the rest."""
    shape = layout_of(x).shape
    before, after = shape[:axis], shape[axis + 1 :]
    runs = [
        (of_warps, 1 << len(list(bits)))
        for of_warps, bits in groupby(reversed(range(log2(shape[axis]))), warps.__contains__)
    ]
    x = reshaped(build, x, (*before, *(extent for _, extent in runs), *after))
    if [of_warps for of_warps, _ in runs] == [True, False]:
        return x, axis + 1
    inner, outer = ([i for i, run in enumerate(runs) if run[0] is side] for side in (False, True))
    rest = range(axis + len(runs), len(layout_of(x).shape))
    order = (*range(axis), *(axis + i for i in (*inner, *outer)), *rest)
    x = emitted(build, TransposeOp(x, order), layout_of(x).transpose(order))[0]
    extents = (prod(runs[i][1] for i in dims) for dims in (inner, outer))
    return reshaped(build, x, (*before, *extents, *after)), axis


def reshaped(build: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    """The same elements in the same threads."""
    if shape == layout_of(x).shape:
        return x
    return emitted(build, ReshapeOp(x, shape), layout_of(x).reshape(shape))[0]


def _is_sooner_by_lanes(op: ReduceOp, warps: int) -> bool:
    """Whether lanes should combine the partial results: a thread combines registers in sequence."""
    combine = sum(
        _LONG if isinstance(step, DivOp | MathOp) else 1
        for step in op.combine
        if step.results and step.operands
    )
    shuffles = _SHUFFLE * len(op.inputs)
    return log2(warps) * (combine + shuffles) < (warps - 1) * combine


def _collected(
    build: Builder, part: Value, axis: int, by_lanes: bool, number: int | float | None
) -> Value:
    """The elements of all warps along an axis, in each thread or in each warp. number: their known
    common value."""
    layout = layout_of(part)
    target = in_each_warp(layout, axis) if by_lanes else in_each_thread(layout, axis)
    collected = TileType(target.shape, element_of(part.type), target)
    if number is not None:
        return build.constant(number, collected)
    return build.value(ConvertOp(part, collected))


def in_each_thread(layout: LinearLayout, axis: int) -> LinearLayout:
    """A layout without warps along an axis: their elements are in the lowest registers of all."""
    moved = sorted(basis for basis in layout.bases(WARP) if basis[axis])
    return _with_warps(layout, axis, moved, layout.bases(LANE))


def in_each_warp(layout: LinearLayout, axis: int) -> LinearLayout:
    """A layout without warps along an axis: their elements are in lanes that held copies, as far as
    there are such lanes, and in registers."""
    moved = sorted(basis for basis in layout.bases(WARP) if basis[axis])
    lanes = [basis if any(basis) or not moved else moved.pop(0) for basis in layout.bases(LANE)]
    return _with_warps(layout, axis, moved, lanes)


def _with_warps(
    layout: LinearLayout,
    axis: int,
    registers: Sequence[tuple[int, ...]],
    lanes: Sequence[tuple[int, ...]],
) -> LinearLayout:
    """A layout without warps along an axis. registers: bases before the existing ones."""
    none = (0,) * len(layout.shape)
    bases = {
        **{name: layout.bases(name) for name in layout.in_names},
        REGISTER: [*registers, *layout.bases(REGISTER)],
        LANE: lanes,
        WARP: [none if basis[axis] else basis for basis in layout.bases(WARP)],
    }
    return LinearLayout.from_bases(bases, tile_dims(layout.shape))


def emitted(build: Builder, op: Op, layout: LinearLayout) -> tuple[Value, ...]:
    """The results of an op whose tiles have a layout."""
    build.emit(op)
    for result in op.results:
        if isinstance(result.type, TileType):
            result.type = TileType(result.type.shape, result.type.element, layout)
    return op.results
