"""Legalize shapes: every tile becomes power-of-two tiles, as layouts require (ADR 0036).

    %k = mem.load %p : tile<128x96xf16>       %k = mem.load %p : tile<128x64xf16>
    %s = tile.dot %a, %k, ...            ->   %l = mem.load %q : tile<128x32xf16>
                                              %r = tile.dot %a, %k, ...    and %s of %l
    %y = mem.load %o : tile<96xf32>           %y = mem.load %o, %valid : tile<128xf32>

Tiles that feed a dot are decomposed where that is possible (_decompose_tiles.py), all others are
padded (_pad_tiles.py). Descriptor accesses of such blocks are lowered first, to masked loads and
stores that both can rewrite.
"""

from __future__ import annotations

from tilewright.backends.nvidia.passes._decompose_tiles import decompose_tiles
from tilewright.backends.nvidia.passes._pad_tiles import pad_tiles
from tilewright.ir import Function, Op, Pass
from tilewright.ir.types import shape_of
from tilewright.transforms import lower_descriptors


class LegalizeShapes(Pass, name="nvidia-legalize-shapes"):
    """Leave only tiles of power-of-two shapes."""

    def run(self, function: Function) -> bool:
        if not any(map(_has_odd_extent, function.walk())):
            return False
        lower_descriptors(function, _has_odd_extent)
        decompose_tiles(function)
        pad_tiles(function)
        return True


def _has_odd_extent(op: Op) -> bool:
    """Whether a tile of an op has a dimension that is no power of two."""
    types = (value.type for value in (*op.operands, *op.results))
    return any(n & (n - 1) for type_ in types for n in shape_of(type_))
