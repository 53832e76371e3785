"""Equality of layouts up to the order of dims and up to dims of size 1."""

from tilewright.layout import LinearLayout


def is_same_map(one: LinearLayout, other: LinearLayout) -> bool:
    """Whether two layouts map equally."""
    return _sorted(one) == _sorted(other)


def _sorted(layout: LinearLayout) -> LinearLayout:
    ins = sorted(name for name, bits in layout.ins if bits)
    return layout.sublayout(ins, sorted(name for name, bits in layout.outs if bits))
