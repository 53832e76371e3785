"""Report of how a kernel was compiled: `kernel.explain()`.

A backend records the decisions of its lowering here; this module makes none.
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
"""Width of the source column, in characters."""


@dataclass(frozen=True, slots=True)
class LaunchSizes:
    """Sizes of one launch: values of integer arguments by name, and the grid."""

    values: Mapping[str, int]
    grid: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class OpRow:
    """How one op was lowered.

    loc: its source location; op: load, store, dot or convert (between register layouts); tile:
    shape and type; how: the instruction; bytes: bytes per thread and instruction, 0 for a dot from
    registers; through: the memory used on the way; conflicts: degree of bank conflicts in shared
    memory, 1 without conflicts, None without such an access; notes: reasons against a faster
    lowering.
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
    """Resources of a program, and how many programs a multiprocessor holds.

    registers: per thread; spills: 32-bit words per thread; shared: bytes; warps: per program;
    programs: resident programs per multiprocessor; limit: the resource that bounds them; occupancy:
    resident warps as a fraction of the maximum
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
    """Roofline of a launch: its work, and a lower bound of its time.

    device: the device whose rates are used; product_flops, other_flops: floating-point operations
    of dots and of other ops; requested: bytes that programs load and store; distinct: the same
    without repeated loads; flop_seconds, byte_seconds: the work at the device's peak rates
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
        """FLOPs per byte."""
        return (self.product_flops + self.other_flops) / max(1.0, self.distinct)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Report on one kernel and target; as text, a table and the resources.

    rows: in the order of the source; bound: only if the sizes of a launch are given; notes: on the
    whole kernel, as on clusters.
    """

    kernel: str
    target: str
    rows: Sequence[OpRow]
    resources: Resources
    bound: Bound | None = None
    notes: tuple[str, ...] = ()

    def table(self) -> Any:
        """The rows as a table of rich."""
        from rich.table import Table  # imported by the first table

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
