"""Memory order of the elements of which a tile is computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tilewright.analysis import Alignment
from tilewright.ir import Trait, Value
from tilewright.ir.types import element_of, i1, shape_of
from tilewright.ops import LoadOp, SplatOp


def reads_columns(
    value: Value, alignments: Mapping[Value, Alignment], carried: Collection[Value] = ()
) -> bool:
    """Whether a matrix is computed from loads whose columns are contiguous in memory.

    carried: matrices with the same order; masks have none
    """
    reached, stack, loads = {value, *carried}, [value], 0
    while stack:
        op = stack.pop().op
        if isinstance(op, LoadOp):
            *_, down, across = alignments[op.pointer].contiguity
            loads += 1
            if down == 1 or across > 1:
                return False
        elif isinstance(op, SplatOp):
            continue
        elif op is None or not {Trait.ELEMENTWISE, Trait.PURE} <= op.traits:
            return False
        else:
            tiles = [v for v in op.operands if len(shape_of(v.type)) == 2 and not _is_mask(v)]
            stack += [v for v in tiles if v not in reached]
            reached.update(tiles)
    return loads > 0


def _is_mask(value: Value) -> bool:
    return element_of(value.type) is i1
