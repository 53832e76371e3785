"""Draw the pictures of the book: `docs/images/*.svg` but the chart of `draw_chart.py`.

    python scripts/draw_pictures.py             # --check: compare only

The contents of a picture are computed: offsets, masks and the order of programs by kernels in the
interpreter, memory traffic from the operations that NumPy executes and from the tile IR of a
kernel, layouts by `tilewright.layout`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if not __package__:
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import tilewright  # noqa: E402
import tilewright.language as tl  # noqa: E402
from scripts.svg_picture import HUES, Picture  # noqa: E402
from tilewright.layout import (  # noqa: E402
    FRAGMENTS,
    LinearLayout,
    SharedMemory,
    blocked,
    plan,
    shared_row_major,
)

FOLDER = ROOT / "docs/images"

# ---- grid, program, tile, mask -------------------------------------------------------------------

N, BLOCK = 10, 4
CELL = 48


@tilewright.jit(interpret=True)
def offsets_kernel(offsets_ptr: Any, mask_ptr: Any, n: Any, BLOCK: tl.constexpr):
    """Offsets and mask of each program, as in `add_kernel` of chapter 1."""
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(offsets_ptr + offsets, offsets)
    tl.store(mask_ptr + offsets, offsets < n)


def grid() -> Picture:
    """How a grid of programs covers an array, and the tile and mask of the last program."""
    programs = tilewright.cdiv(N, BLOCK)
    offsets, mask = np.empty((2, programs * BLOCK), np.int32)
    offsets_kernel[(programs,)](offsets, mask, N, BLOCK=BLOCK)
    outside = offsets[offsets >= N].tolist()
    picture = Picture(
        790, 372, "A grid of programs, the tile of one program, and its mask",
        f"An array of {N} elements is processed by {programs} program instances of {BLOCK} elements"
        f" each. The mask of the last one is false for {outside}, which are outside of the array.",
    )  # fmt: skip
    left = 196
    picture.text(14, 48, f"grid = ({programs},)", "code")
    picture.text(14, 68, f"BLOCK = {BLOCK} elements each", "code")
    for pid in range(programs):
        x = left + pid * BLOCK * CELL
        picture.rect(x + 3, 32, BLOCK * CELL - 6, 40, f"c{pid} edge", 6)
        picture.text(x + BLOCK * CELL / 2, 57, f"program {pid}", "middle head")
        picture.arrow(x + BLOCK * CELL / 2, 75, x + BLOCK * CELL / 2, 102)
    picture.text(14, 131, f"array, n = {N}")
    for i in offsets[offsets < N]:
        picture.cell(left + int(i) * CELL, 108, CELL, 36, f"x[{i}]", f"c{i // BLOCK}", "code")
    x, width = left + outside[0] * CELL, len(outside) * CELL
    picture.rect(x, 108, width, 36, "none edge dash")
    picture.text(x + width / 2, 130, "not in the array", "middle tiny soft")
    _last_tile(picture, offsets[-BLOCK:], mask[-BLOCK:], left)
    return picture


def _last_tile(picture: Picture, offsets: Any, mask: Any, left: int) -> None:
    """The variables of the last program, each below the elements that it is about."""
    pid = int(offsets[0]) // BLOCK
    x = left + int(offsets[0]) * CELL
    for edge in (x, x + BLOCK * CELL):
        picture.line(edge, 148, edge, 352, "edge dash")
    picture.text(14, 184, f"In program {pid}:", "head")
    rows = (
        ("offsets = pid * BLOCK + tl.arange(0, BLOCK)", [str(i) for i in offsets]),
        ("mask = offsets < n", ["true" if m else "false" for m in mask]),
        (
            "x = tl.load(x_ptr + offsets, mask=mask)",
            [f"x[{i}]" if m else "–" for i, m in zip(offsets, mask, strict=True)],
        ),
    )
    for row, (code, values) in enumerate(rows):
        y = 200 + row * 52
        picture.text(14, y + 23, code, "code")
        for lane, value in enumerate(values):
            fill = f"c{pid}" if mask[lane] else "none"
            picture.cell(x + lane * CELL, y, CELL, 36, value, fill, "code")


# ---- memory traffic ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """An operation, with the number of arrays of the matrix's size that it reads and writes."""

    name: str
    reads: int
    writes: int


class Traced(np.ndarray[Any, Any]):
    """An array that reports the operations on it."""

    log: list[Operation]

    def __array_finalize__(self, parent: object) -> None:
        self.log = getattr(parent, "log", [])

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> np.ndarray[Any, Any]:
        plain = [np.asarray(array) for array in inputs]
        options.pop("out", None)
        result = np.asarray(getattr(ufunc, method)(*plain, **options))
        reads = sum(array.size == self.size or array.size > result.size for array in plain)
        writes = int(result.size == max(array.size for array in plain))
        self.log.append(Operation(ufunc.__name__, reads, writes))
        traced = result.view(Traced)
        traced.log = self.log
        return traced


def naive_softmax(x: Any) -> Any:
    """The NumPy version of chapter 2."""
    numerator = np.exp(x - x.max(axis=1, keepdims=True))
    return numerator / numerator.sum(axis=1, keepdims=True)


@tilewright.jit
def softmax_kernel(out_ptr: Any, x_ptr: Any, stride: Any, columns: Any, BLOCK: tl.constexpr):
    """The kernel of chapter 2."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    result = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * stride + offsets, result, mask=mask)


def numpy_operations() -> list[Operation]:
    """The operations that NumPy executes for a softmax."""
    x = np.ones((4, 8), np.float32).view(Traced)
    naive_softmax(x)
    return x.log


def fused_operation() -> Operation:
    """Loads and stores of the tile IR of the kernel, each of which touches the matrix once."""
    x = np.ones((4, 8), np.float32)
    text: str = softmax_kernel[(4,)](np.empty_like(x), x, 8, 8, BLOCK=8).asm["ttir"]
    return Operation("softmax_kernel", text.count("mem.load"), text.count("mem.store"))


def softmax_traffic() -> Picture:
    """Reads and writes of the matrix by NumPy and by the fused kernel."""
    separate, fused = numpy_operations(), fused_operation()
    total = sum(o.reads + o.writes for o in separate)
    picture = Picture(
        760, 408, "Memory traffic of a softmax in NumPy and of a fused kernel",
        "; ".join(f"{o.name}: {o.reads} read, {o.writes} written" for o in [*separate, fused])
        + f". NumPy moves the matrix {total} times, the kernel {fused.reads + fused.writes} times.",
    )  # fmt: skip
    names = {
        "maximum": "max(x)",
        "subtract": "x - max",
        "exp": "exp",
        "add": "sum",
        "divide": "/ sum",
    }
    _panel(picture, 20, "NumPy", [[names.get(o.name, o.name)] for o in separate], separate)
    _panel(
        picture,
        400,
        "Fused kernel",
        [["softmax_kernel", "max, exp, sum,", "/ sum: on chip"]],
        [fused],
    )
    return picture


def _panel(
    picture: Picture, x: int, title: str, labels: list[list[str]], operations: list[Operation]
) -> None:
    """Memory on the left, operations on the right, an arrow for each pass over the matrix."""
    reads, writes = sum(o.reads for o in operations), sum(o.writes for o in operations)
    picture.text(x, 30, title, "head")
    picture.rect(x, 46, 84, 310, "c2 edge", 6)
    picture.text(x + 42, 205, "memory", "middle")
    step = 310 / len(operations)
    for row, (lines, operation) in enumerate(zip(labels, operations, strict=True)):
        middle = 46 + (row + 0.5) * step
        height = min(step - 12, 84)
        picture.rect(x + 190, middle - height / 2, 150, height, "c0 edge", 6)
        for line, text in enumerate(lines):
            y = middle + 4.5 + 20 * (line - (len(lines) - 1) / 2)
            picture.text(x + 265, y, text, "middle code")
        shift = 7 if operation.writes else 0
        picture.arrow(x + 88, middle - shift, x + 186, middle - shift)
        picture.text(
            x + 137, middle - shift - 4, _count(operation.reads, "read"), "middle small soft"
        )
        if operation.writes:
            picture.arrow(x + 186, middle + 9, x + 88, middle + 9)
            label = _count(operation.writes, "write")
            picture.text(x + 137, middle + 21, label, "middle small soft")
    picture.text(
        x,
        386,
        f"{_count(reads, 'read')} + {_count(writes, 'write')} = {reads + writes} passes",
        "head",
    )


def _count(number: int, noun: str) -> str:
    plural = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{plural * (number != 1)}"


# ---- order of programs ---------------------------------------------------------------------------

SIDE, AT_ONCE = 12, 16


@tilewright.jit(interpret=True)
def order_kernel(row_ptr: Any, column_ptr: Any, SIDE: tl.constexpr, GROUP: tl.constexpr):
    """The tile of each program, as in chapter 3."""
    pid = tl.program_id(0)
    row, column = tl.swizzle2d(pid // SIDE, pid % SIDE, SIDE, SIDE, GROUP)
    tl.store(row_ptr + pid, row)
    tl.store(column_ptr + pid, column)


def order(group: int) -> list[tuple[int, int]]:
    """Row and column of the tile of each program."""
    row, column = np.empty((2, SIDE * SIDE), np.int32)
    order_kernel[(SIDE * SIDE,)](row, column, SIDE=SIDE, GROUP=group)
    return [(int(r), int(c)) for r, c in zip(row, column, strict=True)]


def strips(tiles: list[tuple[int, int]]) -> int:
    """Strips of A and B that the programs that run at once read."""
    first = tiles[:AT_ONCE]
    return len({r for r, _ in first}) + len({c for _, c in first})


def program_order() -> Picture:
    """Row by row, and in groups of rows."""
    orders = {group: order(group) for group in (1, 4)}
    picture = Picture(
        760, 416, "Order of the programs of a matrix multiplication, row by row and grouped",
        f"The first {AT_ONCE} programs of {SIDE} x {SIDE} tiles of C read "
        + ", ".join(f"{strips(t)} strips with groups of {group}" for group, t in orders.items())
        + ".",
    )  # fmt: skip
    titles = {1: "GROUP = 1: row by row", 4: "GROUP = 4: groups of 4 rows"}
    for place, (group, tiles) in enumerate(orders.items()):
        _tiles(picture, 16 + place * 380, titles[group], tiles)
    return picture


def _tiles(picture: Picture, x: int, title: str, tiles: list[tuple[int, int]]) -> None:
    """The tiles of C with the programs' indices, and the strips that the first of them read."""
    size, left, top = 25, x + 50, 84
    picture.text(x, 28, title, "head code")
    first = tiles[:AT_ONCE]
    picture.text(left + SIDE * size / 2, 56, "strips of B", "middle small soft")
    picture.text(x, 56, "strips", "small soft")
    picture.text(x, 70, "of A", "small soft")
    for i in range(SIDE):
        used = "c1" if i in {c for _, c in first} else "none"
        picture.rect(left + i * size + 2, top - 20, size - 4, 14, f"{used} edge")
        used = "c1" if i in {r for r, _ in first} else "none"
        picture.rect(left - 20, top + i * size + 2, 14, size - 4, f"{used} edge")
    for pid, (row, column) in enumerate(tiles):
        fill = "c0" if pid < AT_ONCE else "none"
        picture.cell(left + column * size, top + row * size, size, size, str(pid), fill, "tiny")
    text = f"Programs 0 to {AT_ONCE - 1} read {strips(tiles)} strips"
    picture.text(left, top + SIDE * size + 22, text, "head")


# ---- layouts -------------------------------------------------------------------------------------


def owners(layout: LinearLayout) -> dict[tuple[int, ...], list[dict[str, int]]]:
    """The places (register, lane, warp) of each element, by its coordinates."""
    sizes = {name: layout.in_size(name) for name in layout.in_names}
    found: dict[tuple[int, ...], list[dict[str, int]]] = {}
    names = list(sizes)
    for index in np.ndindex(*sizes.values()):
        place = {name: int(i) for name, i in zip(names, index, strict=True)}
        found.setdefault(tuple(layout.apply(**place)), []).append(place)
    return found


SHOWN_LANE = 5
ROW, TOP = 22, 84
"""Height of a row of a layout's picture, and where the first one starts."""


def _layout_picture(
    size: tuple[int, int], title: str, description: str, head: str, layout: LinearLayout
) -> Picture:
    """A picture of a layout, so far with its head and the layout as text."""
    picture = Picture(*size, title, f"{layout}. {description}")
    picture.text(14, 28, head, "head")
    picture.text(14, 48, str(layout), "code small soft")
    return picture


def _axes(picture: Picture, left: int, width: int, columns: Sequence[str], indent: int) -> None:
    """Labels above columns of a width, and indices of 16 rows that end before them."""
    for column, label in enumerate(columns):
        picture.text(left + column * width + width / 2, TOP - 8, label, "middle small soft")
    for row in range(16):
        picture.text(left - indent, TOP + row * ROW + 15, str(row), "end small soft")


def layout_mma() -> Picture:
    """The result of a tensor-core instruction: lane and register of each element."""
    layout = FRAGMENTS["m16n8k16.b16"].c
    places = owners(layout)
    held = sorted(c for c, found in places.items() if found[0]["lane"] == SHOWN_LANE)
    picture = _layout_picture(
        (566, 470),
        "Lane and register of each element of the result of mma.sync.m16n8k16",
        f"Lane {SHOWN_LANE} holds the elements {held}.",
        "Result of mma.sync.m16n8k16, 16 x 8 fp32",
        layout,
    )
    width, left = 62, 54
    _axes(picture, left, width, [str(column) for column in range(8)], 10)
    for (row, column), (place, *_) in sorted(places.items()):
        x, y = left + column * width, TOP + row * ROW
        lane, register = place["lane"], place["register"]
        picture.cell(x, y, width, ROW, f"{lane} : r{register}", f"c{lane % 4}", "small")
    for row, column in held:
        x, y = left + column * width, TOP + row * ROW
        picture.rect(x + 1, y + 1, width - 2, ROW - 2, "none bold")
    picture.text(
        14,
        458,
        f"5 : r0 is register 0 of lane 5. Framed: the {len(held)} elements of lane {SHOWN_LANE}.",
        "small",
    )
    return picture


def layout_blocked() -> Picture:
    """The lane and warp of each vector of a tile that is accessed by 16 bytes."""
    layout = blocked((16, 64), (1, 8), (4, 8), (4, 1), order=(1, 0))
    places = owners(layout)
    picture = _layout_picture(
        (760, 470),
        "Lanes and warps of a blocked layout of 16 x 64 elements",
        "Each lane holds 8 adjacent elements; 8 lanes hold a row, a warp 4 rows.",
        "A tile of 16 x 64 fp16, laid out for accesses of 16 bytes",
        layout,
    )
    width, left = 83, 80
    _axes(picture, left, width, [f"{column}–{column + 7}" for column in range(0, 64, 8)], 14)
    for row in range(16):
        (first, *_) = places[row, 0]
        if row % 4 == 0:
            picture.text(8, TOP + row * ROW + 15, f"warp {first['warp']}", "small")
        for column in range(0, 64, 8):
            held = [places[row, column + i][0] for i in range(8)]
            registers = [p["register"] for p in held]
            assert {p["lane"] for p in held} == {held[0]["lane"]}
            label = f"{held[0]['lane']} : r{registers[0]}–r{registers[-1]}"
            x = left + column // 8 * width
            fill = f"c{held[0]['warp']}"
            picture.cell(x, TOP + row * ROW, width, ROW, label, fill, "small")
    picture.text(left, 456, "5 : r0–r7: registers 0 to 7 of lane 5 of the warp", "small")
    return picture


BANKS = 32


def banks_of(shared: LinearLayout, coordinates: list[tuple[int, ...]]) -> list[int]:
    """Banks of elements of 4 bytes in a shared-memory layout."""
    inverse = shared.invert()
    return [inverse.apply(dim0=r, dim1=c)[0] % BANKS for r, c in coordinates]


def layout_banks() -> Picture:
    """A transposition through shared memory: the banks of one load, row-major and swizzled."""
    rows = blocked((32, 32), (1, 4), (4, 8), (4, 1), order=(1, 0))
    columns = blocked((32, 32), (4, 1), (8, 4), (1, 4), order=(0, 1))
    chosen = plan(rows, columns, 32)
    assert isinstance(chosen, SharedMemory)
    swizzled = chosen.shared
    read = [tuple(columns.apply(register=0, lane=lane, warp=0)) for lane in range(32)]
    picture = Picture(
        760, 468, "Bank conflicts of a transposition, row-major and swizzled",
        "; ".join(
            f"{name}: at most {max(Counter(banks_of(shared, read)).values())} lanes in one bank"
            for name, shared in (("row-major", shared_row_major((32, 32))), ("swizzled", swizzled))
        ),
    )  # fmt: skip
    _banks(picture, 16, "Row-major", shared_row_major((32, 32)), read)
    _banks(picture, 396, "Swizzled by the compiler", swizzled, read)
    return picture


def _banks(
    picture: Picture, x: int, title: str, shared: LinearLayout, read: list[tuple[int, ...]]
) -> None:
    """A tile with the elements of one load filled, and the words of each bank."""
    size, top = 10.5, 66
    used = Counter(banks_of(shared, read))
    degree = max(used.values())
    picture.text(x, 28, title, "head")
    picture.text(x, 50, "Tile of 32 x 32 fp32. Filled: read by a warp at once", "small soft")
    side = 32 * size
    for i in range(33):
        picture.line(x + i * size, top, x + i * size, top + side, "edge")
        picture.line(x, top + i * size, x + side, top + i * size, "edge")
    for row, column in read:
        fill = f"c{banks_of(shared, [(row, column)])[0] // 4 % HUES}"
        picture.rect(x + column * size, top + row * size, size, size, f"{fill} bold")
    picture.text(x, 424, f"Words in each of the 32 banks: {_count(degree, 'pass')}", "small")
    for bank in range(BANKS):
        picture.rect(x + bank * size, 432, size, 24, "none edge")
        if used[bank]:
            picture.rect(x + bank * size, 432, size, 24, f"c{bank // 4 % HUES} edge")
            picture.text(x + bank * size + size / 2, 448, str(used[bank]), "middle tiny")


# ---- all pictures --------------------------------------------------------------------------------

PICTURES: dict[str, Callable[[], Picture]] = {
    "grid": grid,
    "softmax-traffic": softmax_traffic,
    "program-order": program_order,
    "layout-mma": layout_mma,
    "layout-blocked": layout_blocked,
    "layout-banks": layout_banks,
}


def main(arguments: list[str]) -> int:
    """Write the pictures, or report those that differ."""
    stale = 0
    for name, draw in PICTURES.items():
        path, text = FOLDER / f"{name}.svg", draw().svg()
        if "--check" not in arguments:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            print(f"{path.relative_to(ROOT)} differs from what scripts/draw_pictures.py draws")
            stale += 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
