"""The condition that masks whole rows of a nest.

    %m = (row < rows) & (column < columns)
    x = load p, %m                                 lanes along the columns

The first comparison is the same for all elements of a row: where it holds, loads need no mask for
it. That saves more than instructions: some CPUs do not prefetch for masked loads (figures in ADR
0033).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.backends.cpu.lower.fusion import LoopNest, is_inlinable
from tilewright.backends.cpu.lower.lane_values import Lanes
from tilewright.backends.cpu.lower.loop_clipping import IndexedValue
from tilewright.ir import Trait
from tilewright.ops import CompareOp, LoadOp, SplatOp

_MOST_VALUES = 256
"""Limit of the values that are searched; only generated code has more."""


def row_condition(nest: LoopNest, coords: Mapping[int, Lanes]) -> IndexedValue | None:
    """A comparison in the mask of a load that depends only on the dims whose loops are open.

    coords: of these dims
    """
    for mask in _masks_of_loads(nest):
        stack = [mask]
        while stack:
            condition = stack.pop()
            stack += condition.conjuncts()
            value, axes = condition
            if isinstance(value.op, SplatOp):
                value, axes = value.op.operands[0], ()
            known = all(axis is None or axis in coords for axis in axes)
            if known and isinstance(value.op, CompareOp):
                return IndexedValue(value, axes)
    return None


def _masks_of_loads(nest: LoopNest) -> Iterator[IndexedValue]:
    """The masks of the loads of each step."""
    everywhere = tuple(range(len(nest.shape)))
    consumed = [*nest.materialized, *(v for sink in nest.sinks for v in sink.operands)]
    stack = [IndexedValue(value, everywhere) for value in consumed]
    reached: set[IndexedValue] = set()
    while stack and len(reached) < _MOST_VALUES:
        item = stack.pop()
        op, inner = item.value.op, item.inner()
        if item in reached or op is None or not is_inlinable(op):
            continue
        reached.add(item)
        if inner is not None:
            stack.append(inner)
        elif isinstance(op, LoadOp) and op.mask is not None:
            yield IndexedValue(op.mask, item.axes)
        elif Trait.ELEMENTWISE in op.traits:
            stack += [IndexedValue(v, item.axes) for v in op.operands]
