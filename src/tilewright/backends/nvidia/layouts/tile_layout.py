"""The layout of a tile."""

from __future__ import annotations

from tilewright.ir import Value
from tilewright.ir.types import TileType
from tilewright.layout import REGISTER, LinearLayout


def layout_of(value: Value) -> LinearLayout:
    """The layout of a tile value."""
    assert isinstance(value.type, TileType) and isinstance(value.type.layout, LinearLayout), value
    return value.type.layout


def register_count(value: Value) -> int:
    """The elements that a thread holds; 1 for a scalar."""
    return layout_of(value).in_size(REGISTER) if isinstance(value.type, TileType) else 1
