"""The text of an explanation: each line of the source, and below it what became of its ops.

    elementwise.py:15  x = tl.load(x_ptr + offsets, mask=mask)
      load 1024xf32     ld.global.v4.b32  16
        global -> registers

Columns without an entry are left out; reasons have lines of their own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tilewright.backends.explanation import (
    Bound,
    CpuResources,
    Explanation,
    OpRow,
    Resources,
)
from tilewright.support import SourceLoc
from tilewright.support.diagnostics import source_line

_UNLIMITED = 10_000
"""Width of lines in a pipe, where nothing is folded, for `grep`."""

_HEADINGS = ("op", "lowered to", "bytes", "bank conflicts")
_FOLDED = 1
"""The column that is folded where the lines are too long."""

_GAP = 2  # blanks between columns


def text_of(explanation: Explanation, columns: int | None) -> str:
    """See `Explanation.text`."""
    width = columns or _UNLIMITED
    lines = [*_op_lines(explanation.rows, width)]
    for paragraph in summary_of(explanation):
        lines += _wrapped(paragraph, width, "", "  ")
    for row in explanation.loops:
        lines += _wrapped(str(row), width, "  ", "    ")
    for paragraph in () if explanation.bound is None else _bound_lines(explanation.bound):
        lines += _wrapped(paragraph, width, "", "  ")
    for note in explanation.notes:
        lines += _wrapped(f"note: {note}", width, "", "  ")
    return "\n".join(lines)


# ---- ops -----------------------------------------------------------------------------------------


def _op_lines(rows: Sequence[OpRow], width: int) -> Iterator[str]:
    """The lines of all ops, under the lines of the source that they are from."""
    cells = [_cells(row) for row in rows]
    shown = [n for n in range(len(_HEADINGS)) if any(row[n] for row in cells)]
    entries = [_HEADINGS, *cells]
    widths = [max(len(row[n]) for row in entries) for n in shown]
    spare = width - 2 - sum(widths) - _GAP * (len(widths) - 1)
    if spare < 0 and _FOLDED in shown:
        place = shown.index(_FOLDED)
        widths[place] = max(len(_HEADINGS[_FOLDED]), widths[place] + spare)
    if rows:
        yield from _table_row([_HEADINGS[n] for n in shown], widths, width)
    for places, group in groupby(zip(rows, cells, strict=True), lambda pair: _places(pair[0])):
        yield from (_cut(place, width) for place in places)
        for row, texts in group:
            yield from _table_row([texts[n] for n in shown], widths, width)
            if row.through:
                yield from _wrapped(row.through, width, " " * 4, " " * 4)
            for note in row.notes:
                yield from _wrapped(f"why not better: {note}", width, " " * 4, " " * 6)


def _cells(row: OpRow) -> tuple[str, ...]:
    conflicts = f"{row.conflicts}-way" if (row.conflicts or 1) > 1 else ""
    return f"{row.op} {row.tile}".strip(), row.how, str(row.bytes or ""), conflicts


def _places(row: OpRow) -> list[str]:
    """The line of the kernel with its text, and that of the function called there."""
    if row.loc is None:
        return ["(no line)"]
    *helpers, line = row.loc.frames()
    return [_text_of_line(line), *(f"  in {_text_of_line(frame)}" for frame in helpers[:1])]


def _text_of_line(loc: SourceLoc) -> str:
    return f"{Path(loc.file).name}:{loc.line}  {(source_line(loc) or '').strip()}"


def _table_row(cells: Sequence[str], widths: Sequence[int], width: int) -> Iterator[str]:
    """One row, folded in its cells."""
    table = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0), pad_edge=False)
    for number in widths:
        table.add_column(width=number, overflow="fold")
    table.add_row(*cells)
    out = StringIO()
    console = Console(file=out, width=width - 2, highlight=False, markup=False, color_system=None)
    console.print(table)
    for line in out.getvalue().splitlines():
        yield f"  {line}".rstrip()


# ---- the whole kernel ----------------------------------------------------------------------------


def summary_of(explanation: Explanation) -> list[str]:
    """See `Explanation.summary`."""
    name = f"{explanation.kernel} on {explanation.target}"
    resources = explanation.resources
    if isinstance(resources, Resources):
        return _gpu_lines(name, resources)
    return _cpu_lines(name, resources, len(explanation.loops))


def _gpu_lines(name: str, r: Resources) -> list[str]:
    return [
        f"{name}: {r.warps} warps, {r.registers} registers, {r.spills} spilled, "
        f"{r.shared} bytes of shared memory",
        f"{r.programs} programs per multiprocessor ({r.occupancy:.0%} of its warps), "
        f"limited by {r.limit}",
    ]


def _cpu_lines(name: str, r: CpuResources, loops: int) -> list[str]:
    features = f", {', '.join(r.features)}" if r.features else ""
    lines = [f"{name}: {r.registers} vector registers of {r.vector_bits} bits{features}"]
    threads = f"{r.threads} threads" if r.threads != 1 else "1 thread"
    if r.per_thread is not None:
        threads += f", {r.per_thread} programs on the busiest"
    if r.alone:
        threads += f"; a launch of up to {r.alone} programs runs on the calling thread"
    lines.append(threads)
    nests = f"{loops} loop nests" if loops != 1 else "1 loop nest"
    return [*lines, f"{nests}, {_count(r.scratch, 'B')} of scratch memory per thread"]


def _bound_lines(bound: Bound) -> list[str]:
    flops = bound.product_flops + bound.other_flops
    return [
        f"{_count(flops, 'FLOP')}, {_count(bound.requested, 'B')} requested, "
        f"{_count(bound.distinct, 'B')} distinct: {bound.intensity:.1f} FLOP per byte",
        f"at least {max(bound.flop_seconds, bound.byte_seconds) * 1e6:.1f} us on {bound.device}, "
        f"limited by {bound.limit} (arithmetic {bound.flop_seconds * 1e6:.1f} us, "
        f"memory {bound.byte_seconds * 1e6:.1f} us)",
    ]


def _count(value: float, unit: str) -> str:
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.2f} {prefix}{unit}"
    return f"{value:.0f} {unit}"


# ---- lines ---------------------------------------------------------------------------------------


def _wrapped(text: str, width: int, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=others,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 3]}..."
