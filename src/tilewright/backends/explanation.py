"""How a kernel was compiled, for people: `kernel.explain()`.

A backend fills these in from the decisions of its own lowering; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from tilewright.support import SourceLoc
from tilewright.support.data_class import dataclass
from tilewright.support.diagnostics import source_line

__all__ = ["Bound", "Explanation", "LaunchSizes", "OpRow", "Resources"]


_SOURCE_WIDTH = 40
"""Characters of a source line in the table."""


@dataclass(frozen=True, slots=True)
class LaunchSizes:
    """A launch to be judged: values of integer arguments by name, and the grid."""

    values: Mapping[str, int]
    grid: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class OpRow:
    """How one op was lowered.

    loc: its place in the source; op: load, store, dot or convert (between layouts of registers);
    tile: shape and type; how: the instruction; bytes: that one instruction moves for a thread, 0
    for a product from registers; through: the memory on the way; conflicts: bank-conflict degree in
    shared memory, 1 is free of conflicts, None where there is no such access; notes: why it was not
    lowered to what is faster.
    """

    loc: SourceLoc | None
    op: str
    tile: str
    how: str
    bytes: int
    through: str
    conflicts: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resources:
    """What a program takes of a multiprocessor.

    registers: of a thread; spills: 32-bit words of a thread; shared: bytes; warps: of a program;
    programs: that run on a multiprocessor at a time; limit: what allows no more of them; occupancy:
    warps that run, as part of the most
    """

    registers: int
    spills: int
    shared: int
    warps: int
    programs: int
    limit: str
    occupancy: float


@dataclass(frozen=True, slots=True)
class Bound:
    """What a launch has to do, and how long that takes at least.

    device: for which; flops, requested: floating-point operations of products and of other ops, and
    bytes that programs load and store; distinct: bytes without those that are loaded again;
    flop_seconds, byte_seconds: the work at the peak rates of the device.
    """

    device: str
    product_flops: float
    other_flops: float
    requested: float
    distinct: float
    flop_seconds: float
    byte_seconds: float

    @property
    def limit(self) -> str:
        """Whether arithmetic or memory takes longer."""
        return "arithmetic" if self.flop_seconds > self.byte_seconds else "memory"

    @property
    def intensity(self) -> float:
        """FLOPs for each byte."""
        return (self.product_flops + self.other_flops) / max(1.0, self.distinct)


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a kernel was compiled for a target; as text a table and the resources.

    rows: in the order of the source; bound: where the sizes of a launch were given; notes: on the
    whole kernel, as on blocks that work together.
    """

    kernel: str
    target: str
    rows: Sequence[OpRow]
    resources: Resources
    bound: Bound | None = None
    notes: tuple[str, ...] = ()

    def table(self) -> Any:
        """The rows as a table of rich."""
        from rich.table import Table  # only who asks for a table pays for its import

        table = Table("line", "source", "op", "lowered to", "bytes", "through", "conflicts")
        table.columns[1].max_width, table.columns[1].no_wrap = _SOURCE_WIDTH, True
        table.add_column("why not better")
        for row in self.rows:
            place = "" if row.loc is None else f"{Path(row.loc.file).name}:{row.loc.line}"
            conflicts = "" if row.conflicts is None else "none" if row.conflicts == 1 else (
                f"{row.conflicts}-way"
            )  # fmt: skip
            table.add_row(
                place,
                self._source_of(row),
                f"{row.op} {row.tile}",
                row.how,
                str(row.bytes or ""),
                row.through,
                conflicts,
                "; ".join(row.notes),
            )
        return table

    @staticmethod
    def _source_of(row: OpRow) -> Any:
        """The text of the line that a row is from; brackets in it are no markup."""
        from rich.text import Text

        return Text("" if row.loc is None else (source_line(row.loc) or "").strip())

    def summary(self) -> list[str]:
        """Lines about the whole kernel."""
        r = self.resources
        lines = [
            f"{self.kernel} on {self.target}: {r.warps} warps, {r.registers} registers, "
            f"{r.spills} spilled, {r.shared} bytes of shared memory",
            f"{r.programs} programs per multiprocessor ({r.occupancy:.0%} of its warps), "
            f"limited by {r.limit}",
            *self.notes,
        ]
        return lines if self.bound is None else [*lines, *_bound_lines(self.bound)]

    def __str__(self) -> str:
        from rich.console import Console

        out = StringIO()
        Console(file=out, width=200, highlight=False).print(self.table())
        return "\n".join([out.getvalue().rstrip(), *self.summary()])


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
