"""Layouts of the tiles of a function, each once, for the grids of the inspector."""

from __future__ import annotations

from tilewright.backends.explanation import LayoutRow
from tilewright.ir import Function, Value
from tilewright.ir.types import TileType, element_of
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout


def layout_rows(function: Function) -> tuple[LayoutRow, ...]:
    """The layouts in the order of the code, those of most elements first."""
    found: dict[tuple[str, LinearLayout], dict[str, None]] = {}
    for op in function.walk():
        for value in op.results:
            layout = value.type.layout if isinstance(value.type, TileType) else None
            if isinstance(layout, LinearLayout):
                shape = "x".join(map(str, layout.shape))
                key = f"{shape}x{element_of(value.type)}", layout
                found.setdefault(key, {})[_named(value)] = None
    rows = [_row(tile, layout, tuple(names)) for (tile, layout), names in found.items()]
    return tuple(sorted(rows, key=lambda row: -len(row.register) - len(row.lane)))


def _row(tile: str, layout: LinearLayout, names: tuple[str, ...]) -> LayoutRow:
    register, lane, warp = (layout.bases(name) for name in (REGISTER, LANE, WARP))
    return LayoutRow(tile, names, layout.shape, register, lane, warp)


def _named(value: Value) -> str:
    op = value.op
    assert op is not None
    name = value.name or op.opcode.rpartition(".")[2]
    return name if op.loc is None else f"{name} (line {op.loc.outermost.line})"
