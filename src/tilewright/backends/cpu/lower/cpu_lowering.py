"""The state of the lowering of one function: code, values, scratch memory, the target.

Lowering rules are functions registered with `@lowering(OpClass)`; they take the state and the op,
or the nest whose only sink it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod

from tilewright.analysis import Alignment
from tilewright.backends.cpu.lower.evaluate_lanes import Environment, Evaluator
from tilewright.backends.cpu.lower.fusion import FusionPlan, Prefetch
from tilewright.backends.cpu.lower.lane_values import Lanes
from tilewright.backends.cpu.lower.lowering_record import LoweringRecord
from tilewright.backends.cpu.lower.scratch_memory import Scratch, ScratchBlock
from tilewright.backends.cpu.lower.vector_access import Buffer, Element
from tilewright.backends.cpu.microkernel import DotSpec, VectorUnit
from tilewright.backends.lowering_table import LoweringTable
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import element_of, shape_of
from tilewright.llvm import Code, ModuleText, Val
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class GemmGroup:
    """Adjacent programs that are batched into one GEMM; see gemm_groups.py.

    rows, columns: of each program; most_rows, most_columns: programs of a group
    by_tiles: whether AMX computes it
    operand_bytes: of an element of A and B; a_row_bytes, b_column_bytes: from one row of A, and one
        column of B, to the next; 0: known at run time
    down_bytes, across_bytes: from one program's accumulators to those of the next one below, and to
        the right
    accumulators, kept: scratch memory that lasts from program to program; None: no panels of B are
        cached
    """

    rows: int
    columns: int
    most_rows: int
    most_columns: int
    by_tiles: bool
    operand_bytes: int
    a_row_bytes: int
    b_column_bytes: int
    down_bytes: int
    across_bytes: int
    accumulators: ScratchBlock
    kept: ScratchBlock | None


@dataclass(slots=True)
class CpuLowering:
    """Lowering of one function to the body of one program instance.

    entry: instructions before the body; dots: names of the micro-kernels emitted so far
    streams, streamed_nests: see streaming_stores.py
    fetches, fetching_nests: whether nests may prefetch by how much memory the grid touches, and how
        many do; steps: bytes from program to program, see `program_order.py`
    this_program, next_program: arguments and program ids alone, for the addresses of prefetches
    plans: of blocks that were planned before they are lowered
    assigned_buffers: buffers of values that are materialized later
    group: the group of programs, if there are groups
    done_from_memory: the matmul that runs most iterations of the loop that is being lowered
    waits: the loops that wait for other programs, see `waiting_loops`
    split_section, split_line, split_count, loops_emitted: see split_blocks.py
    record: of the choices, for `explain`; None without it
    """

    module: ModuleText
    code: Code
    unit: VectorUnit
    lower_block: Callable[[CpuLowering, Block], None]
    alignments: dict[Value, Alignment]
    env: Environment = field(init=False)
    entry: list[str] = field(default_factory=list[str])
    scratch: Scratch = field(default_factory=Scratch)
    streams: bool = False
    streamed_nests: int = 0
    fetches: bool = False
    fetching_nests: int = 0
    steps: Mapping[Value, int] = field(default_factory=dict[Value, int])
    this_program: Environment = field(init=False)
    next_program: Environment = field(init=False)
    prefetches: Sequence[Prefetch] = ()
    plans: dict[Block, FusionPlan] = field(default_factory=dict[Block, FusionPlan])
    assigned_buffers: dict[Value, Buffer] = field(default_factory=dict[Value, Buffer])
    dots: dict[DotSpec, str] = field(default_factory=dict[DotSpec, str])
    done_from_memory: DotSpec | None = None
    program: tuple[Val, ...] = ()
    grid: tuple[Val, ...] = ()
    console: Val = field(default_factory=lambda: Val("%console", "ptr"))
    group: GemmGroup | None = None
    waits: Sequence[Op] = ()
    strings: int = 0
    split_section: list[str] = field(default_factory=list[str])
    split_line: int = 0
    split_count: int = 0
    loops_emitted: int = 0
    record: LoweringRecord | None = None

    def __post_init__(self) -> None:
        self.env = Environment(self.alignments)
        self.this_program = Environment(self.alignments, for_hints=True)
        self.next_program = Environment(self.alignments, for_hints=True)

    @property
    def vector_bits(self) -> int:
        return self.unit.bits

    def allocate(
        self, shape: tuple[int, ...], element: Element, strides: tuple[int, ...] | None = None
    ) -> Buffer:
        """A buffer in scratch memory, row-major unless `strides` (in elements) are given."""
        steps = strides or row_major(shape)
        name = self.code.name("buffer")
        # Padded rows take more memory than the elements of a dense tile.
        last = sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
        block = self.scratch.allocate(name, max(last + 1, prod(shape)) * element.bytes)
        return Buffer(Val(name, "ptr"), shape, steps, element, (block,))

    def buffer_for(self, value: Value, strides: tuple[int, ...] | None = None) -> Buffer:
        """The buffer of a materialized value: the assigned one, or else a new one."""
        buffer = self.assigned_buffers.get(value)
        if buffer is None:
            buffer = self.allocate(shape_of(value.type), element_of(value.type), strides)
            self.assigned_buffers[value] = buffer
        return buffer

    def evaluator(
        self,
        width: int = 1,
        shifts: Mapping[Value, Lanes] | None = None,
    ) -> Evaluator:
        return Evaluator(self.code, self.env, width, shifts, self.record)

    def string(self, text: str) -> Val:
        """A zero-terminated constant."""
        data = text.encode() + b"\0"
        # LLVM text writes any byte as a backslash and two hexadecimal digits.
        body = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
        name = f"@text{self.strings}"
        self.strings += 1
        self.module.globals.append(
            f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{body}"'
        )
        return Val(name, "ptr")


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a dense tile."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))


lowering: LoweringTable[CpuLowering] = LoweringTable("cpu")
"""Handlers of the ops that are lowered one by one; the others are fused into loop nests."""
