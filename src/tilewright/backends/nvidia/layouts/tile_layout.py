"""The layout of a tile."""

from __future__ import annotations

from tilewright.ir import Value
from tilewright.ir.types import TileType
from tilewright.layout import LinearLayout


def layout_of(value: Value) -> LinearLayout:
    """The layout of a tile value."""
    assert isinstance(value.type, TileType) and isinstance(value.type.layout, LinearLayout), value
    return value.type.layout
