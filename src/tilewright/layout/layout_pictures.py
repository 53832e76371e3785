"""Layouts as text pictures, for debugging and for the documents.

`render` prints the owner of each element of a tile, `render_shared` its offset and bank. Tiles of
one dim are printed as one row; tiles of more than two dims as one picture for each leading
coordinate.
"""

from collections.abc import Callable, Iterator
from itertools import product

from tilewright.layout import f2
from tilewright.layout.linear_layout import LANE, OFFSET, REGISTER, WARP, LinearLayout

_LETTERS = {REGISTER: "r", LANE: "l", WARP: "w", "block": "b", OFFSET: "@"}


def render(layout: LinearLayout, *, max_rows: int = 64, max_columns: int = 32) -> str:
    """The first owner of every element: ``w1l4r0`` is register 0 of lane 4 of warp 1.

    Empty dims are left out, and ``+`` marks elements with further copies. Rows and columns beyond
    the limits are counted, not printed.
    """
    span = f2.Span(layout.columns)
    copies = "+" if not layout.is_injective else ""
    shown = [name for name in layout.in_names[::-1] if layout.in_size(name) > 1]

    def owner(coordinates: tuple[int, ...]) -> str:
        # The first owner, since `solve` prefers low bits.
        location = span.solve(layout.pack(coordinates))
        if location is None:
            return "."
        values = dict(zip(layout.in_names, _split(layout, location), strict=True))
        return "".join(f"{_LETTERS.get(n, n)}{values[n]}" for n in shown) + copies

    return _picture(layout.shape, owner, max_rows, max_columns)


def render_shared(
    shared: LinearLayout, element_bits: int, *, max_rows: int = 64, max_columns: int = 32
) -> str:
    """The offset of every element and its bank: ``33/b0`` is at element 33, in bank 0."""
    inverse = shared.invert()

    def offset_and_bank(coordinates: tuple[int, ...]) -> str:
        offset = f2.apply(inverse.columns, shared.pack(coordinates))
        return f"{offset}/b{offset * element_bits // 32 % 32}"

    return _picture(shared.shape, offset_and_bank, max_rows, max_columns)


def _split(layout: LinearLayout, location: int) -> tuple[int, ...]:
    return LinearLayout((), layout.ins, ()).unpack(location)


def _picture(
    shape: tuple[int, ...], cell: Callable[[tuple[int, ...]], str], max_rows: int, max_columns: int
) -> str:
    *leading, rows, columns = (1, 1, *shape) if len(shape) < 2 else shape
    # Leading dims of size 1 that only the picture has.
    pad = len(leading) + 2 - len(shape)
    pages: list[str] = []
    for page in product(*(range(size) for size in leading)):
        head = [f"[{', '.join(map(str, page))}, :, :]"] if len(shape) > 2 else []
        lines = _page(
            lambda i, j, p=page: cell((*p, i, j)[pad:]), rows, columns, max_rows, max_columns
        )
        pages.append("\n".join([*head, *lines]))
    return "\n\n".join(pages)


def _page(
    cell: Callable[[int, int], str], rows: int, columns: int, max_rows: int, max_columns: int
) -> Iterator[str]:
    shown_rows, shown_columns = min(rows, max_rows), min(columns, max_columns)
    table = [[cell(i, j) for j in range(shown_columns)] for i in range(shown_rows)]
    width = max(len(text) for line in table for text in line)
    margin = len(str(shown_rows - 1))
    for i, line in enumerate(table):
        tail = " ..." if shown_columns < columns else ""
        yield f"{i:>{margin}} | " + " ".join(f"{text:<{width}}" for text in line).rstrip() + tail
    if shown_rows < rows:
        yield f"... {rows - shown_rows} more rows"
