"""The model of `explain`: how a kernel was compiled, for a CPU or a GPU.

Text (`explanation_text.py`), JSON and the inspector page are made from these classes. A backend
fills them in from the decisions of its passes and its lowering; this module makes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from tilewright.support import SourceLoc, function_late
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class LaunchSizes:
    """Sizes of one launch: values of integer arguments by name, and the grid."""

    values: Mapping[str, int]
    grid: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class OpRow:
    """How one op was lowered.

    loc: its source location; op: load, store, dot, reduce or convert (between register layouts);
    tile: shape and type; how: the instruction; bytes: bytes per thread and instruction, 0 for a dot
    from registers; through: the memory used on the way; conflicts: degree of bank conflicts in
    shared memory, 1 without conflicts, None without such an access; notes: reasons against a faster
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
class LoopRow:
    """A loop nest of a CPU's code, into which ops are fused.

    number: from 1 on, in the order of execution; shape: of the tile that it runs over; lanes:
    elements of one step; along: the dimension of the lanes; lines: of the stores and reductions in
    it; writes: tiles that it leaves in scratch memory, as text; notes: why it is not part of the
    nest before it
    """

    number: int
    shape: tuple[int, ...]
    lanes: int
    along: int
    lines: tuple[int, ...]
    writes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "a scalar"
        text = f"nest {self.number} over {shape}, {self.lanes} lanes"
        if len(self.shape) > 1:
            text += f" along dimension {self.along}"
        text += f": lines {', '.join(map(str, self.lines))}" if self.lines else ""
        text += "".join(f"; writes {tile} to scratch memory" for tile in self.writes)
        return text + "".join(f"; {note}" for note in self.notes)


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """A layout of tiles in registers, as the inspector draws it.

    tile: shape and type; values: tiles that have it, with their lines; shape; register, lane, warp:
    for each bit of these numbers, the coordinates that it adds by XOR
    """

    tile: str
    values: tuple[str, ...]
    shape: tuple[int, ...]
    register: tuple[tuple[int, ...], ...]
    lane: tuple[tuple[int, ...], ...]
    warp: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class SharedAccessRow:
    """One instruction of a warp that reads or writes shared memory.

    line: of the op in the kernel; what: the access; how: the instruction; bytes: per lane; degree:
    of bank conflicts; addresses: the first byte of each lane, relative to the buffer
    """

    line: int | None
    what: str
    how: str
    bytes: int
    degree: int
    addresses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScheduledOp:
    """An op of a pipelined loop. kind: copy, wait, dot; line: in the kernel; text; ahead:
    iterations from a copy to its use; pending: groups of copies that a wait leaves in flight"""

    kind: str
    line: int | None
    text: str
    ahead: int = 0
    pending: int | None = None


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """The modelled schedule of a pipelined loop. line: of the loop; issuer: the threads that issue
    its copies; slots: of each buffer; ops: of an iteration, in order"""

    line: int | None
    issuer: str
    slots: int
    ops: tuple[ScheduledOp, ...]


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of a program on a GPU, and how many programs a multiprocessor holds.

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
class CpuResources:
    """Resources of a program on a CPU, and how a launch runs.

    vector_bits, registers: of the vector unit; features: instructions that dots use, such as FMA;
    scratch: bytes per thread; threads: of the pool; alone: programs up to which a launch runs on
    the calling thread only; per_thread: programs of the busiest thread of the launch, None without
    a grid
    """

    vector_bits: int
    registers: int
    features: tuple[str, ...]
    scratch: int
    threads: int
    alone: int
    per_thread: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """Roofline of a launch: its work, and a lower bound of its time.

    device: the device whose rates are used, and their source; product_flops, other_flops:
    floating-point operations of dots and of other ops; requested: bytes that programs load and
    store; distinct: the same without repeated loads; flop_seconds, byte_seconds: the work at the
    device's peak rates
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
    """Report on one kernel and target.

    backend: `cpu` or `cuda`; rows: in the order of the source; loops: nests of a CPU's code; bound:
    only if the sizes of a launch are given; layouts, accesses, schedules: of a GPU's code; notes:
    on the whole kernel, such as why no producer warp issues its loads.
    """

    kernel: str
    backend: str
    target: str
    rows: Sequence[OpRow]
    resources: Resources | CpuResources
    loops: tuple[LoopRow, ...] = ()
    bound: Bound | None = None
    notes: tuple[str, ...] = ()
    layouts: tuple[LayoutRow, ...] = ()
    accesses: tuple[SharedAccessRow, ...] = ()
    schedules: tuple[ScheduleRow, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The report for programs, as `docs/explanation.schema.json` describes it. loc:
        `file:line`; callers: the calls that lead there, the kernel's last."""
        made: dict[str, Any] = asdict(self)
        for row, entry in zip(self.rows, cast("list[Any]", made["rows"]), strict=True):
            places = [f"{f.file}:{f.line}" for f in (row.loc.frames() if row.loc else ())]
            entry |= {"loc": places[0] if places else None, "callers": places[1:]}
        if self.bound is not None:
            made["bound"] |= {"limit": self.bound.limit, "intensity": self.bound.intensity}
        return made

    def text(self, columns: int | None = None) -> str:
        """The report for people, in lines of so many columns; None: each text on one line."""
        return _text_of(self, columns)

    def summary(self) -> list[str]:
        """Lines about the whole kernel: its resources, and how many programs run at a time."""
        return _summary_of(self)

    def __str__(self) -> str:
        return self.text(100)


_text_of = function_late("tilewright.backends.explanation_text:text_of")
_summary_of = function_late("tilewright.backends.explanation_text:summary_of")


def distinct_rows(rows: Iterable[OpRow]) -> list[OpRow]:
    """Rows in the order of the kernel's lines, equal ones once: copies of a pipelined loop before
    its start are those of the loop."""
    return sorted(dict.fromkeys(rows), key=_line_in_kernel)


def _line_in_kernel(row: OpRow) -> int:
    return 0 if row.loc is None else row.loc.outermost.line
