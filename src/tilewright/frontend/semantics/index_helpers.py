"""Integer helpers of index arithmetic: cdiv, swizzle2d."""

from __future__ import annotations

from typing import Any

from tilewright import language as tl
from tilewright.frontend.semantics.numeric_operators import binary
from tilewright.frontend.semantics.selection import extremum
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements


@implements(tl.cdiv)
def cdiv(ctx: Context, x: object, div: object) -> Any:
    # x + (div - 1), in this order, so that a literal div folds to one constant.
    return binary(ctx, "floordiv", binary(ctx, "add", x, binary(ctx, "sub", div, 1)), div)


@implements(tl.swizzle2d)
def swizzle2d(
    ctx: Context, i: object, j: object, size_i: object, size_j: object, size_g: object
) -> Any:
    """New (row, column): row-major positions are split into groups of size_g rows, each of which is
    traversed column by column."""
    position = binary(ctx, "add", binary(ctx, "mul", i, size_j), j)
    group_size = binary(ctx, "mul", size_g, size_j)
    first_row = binary(ctx, "mul", binary(ctx, "floordiv", position, group_size), size_g)
    # The last group has fewer rows if size_g does not divide size_i.
    rows = extremum(ctx, "minimum", binary(ctx, "sub", size_i, first_row), size_g, False)
    within = binary(ctx, "mod", position, group_size)
    row = binary(ctx, "add", first_row, binary(ctx, "mod", within, rows))
    return row, binary(ctx, "floordiv", within, rows)
