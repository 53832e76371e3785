"""State of the lowering of a kernel: its code, the registers of each value, the thread's position.

A tile is a list of operands, one for each register of its layout; every thread runs the same code
with its own lane and warp numbers. Rules are functions registered with `@lowering(OpClass)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache, reduce
from typing import Any

from tilewright.analysis import Alignment, MemoryForms
from tilewright.backends.lowering_table import LoweringTable
from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.message_records import PrintedText
from tilewright.backends.nvidia.role_ops import RolesOp
from tilewright.backends.nvidia.tensor_maps import TensorMapSource
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import DType, PointerType, TileType, element_of, i1
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout
from tilewright.llvm import Code, ModuleText, Val, integer_literal, llvm_type
from tilewright.support.data_class import dataclass

BODY = 1
"""Level of everything in the body, arguments included: code stays where it is written."""

Registers = Sequence[Val]


def in_body(value: Val) -> Val:
    """The value at the level of the body, so that code that uses it stays where it is written."""
    return Val(value.text, value.type, BODY) if value.text.startswith("%") else value


@dataclass(slots=True)
class VectorGroup:
    """Element-wise ops that are lowered one vector after the other.

    inputs: all registers of the values that they use; emitted: as `emitted_of`, in all vectors;
    start: the first register of the vector
    """

    inputs: Mapping[Value, Registers]
    start: int = 0
    emitted: dict[Op, dict[Any, Any]] = field(default_factory=dict[Op, dict[Any, Any]])


@dataclass(slots=True)
class GpuLowering:
    """Lowering of one kernel."""

    module: ModuleText
    code: Code
    arch: Arch
    warps: int
    alignments: dict[Value, Alignment]
    memory: MemoryForms
    lower_block: Callable[[GpuLowering, Block], None]
    parameters: Sequence[Value] = ()
    """Parameters of the kernel."""
    is_producer: bool = False
    """Whether the code is that of the producer (warp_roles.py), a thread alone."""
    roles: RolesOp | None = None
    group: Val | None = None
    """Group of consumers that runs the code; None: all threads do."""
    is_persistent: bool = False
    """Whether blocks run several programs: parameters tell their grid."""
    warps_meet: bool = True
    """Whether warps wait for each other, or exchange data."""
    num_ctas: int = 1
    """Blocks of a cluster; each cluster runs one program, in its first block."""
    tensor_maps: dict[TensorMapSource, int] = field(default_factory=dict[TensorMapSource, int])
    """Numbers of the parameters `%map0` and so on, which follow the kernel's own."""
    registers: dict[Value, Registers] = field(default_factory=dict[Value, Registers])
    lane: Val = field(default_factory=lambda: Val("%lane", "i32", BODY))
    warp: Val = field(default_factory=lambda: Val("%warp", "i32", BODY))
    shared: Val = field(default_factory=lambda: Val("%shared", "i32", BODY))
    offsets: dict[Op, int] = field(default_factory=dict[Op, int])
    asserts: list[str] = field(default_factory=list[str])
    """Messages of the assertions, by number; see device_records.py."""
    prints: list[PrintedText] = field(default_factory=list[PrintedText])
    entry: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Lines at the start of the function, by what they define."""
    coordinate_cache: dict[tuple[LinearLayout, str], list[Val]] = field(
        default_factory=dict[tuple[LinearLayout, str], list[Val]]
    )

    quotients: dict[Block | None, dict[tuple[str, str], Val]] = field(
        default_factory=dict[Block | None, dict[tuple[str, str], Val]]
    )
    """Quotients of integers in a block, by the names of the operands."""
    natural: dict[Value, bool] = field(default_factory=dict[Value, bool])
    """Whether a divisor is known not to be negative."""
    vectors: VectorGroup | None = None
    """The ops that are being lowered one vector after the other (element_groups.py)."""

    # -- values ---------------------------------------------------------------------------------

    def emitted_of(self, op: Op) -> dict[Any, Any]:
        """The results of an op so far by their operands, of which equal ones compute once."""
        return {} if self.vectors is None else self.vectors.emitted.setdefault(op, {})

    def all_registers_of(self, value: Value) -> Registers:
        """All registers of an input of the open group, of which `registers_of` has a vector."""
        return (self.vectors and self.vectors.inputs.get(value)) or self.registers[value]

    def registers_of(self, value: Value) -> Registers:
        return self.registers[value]

    def scalar(self, value: Value) -> Val:
        (register,) = self.registers[value]
        return register

    def set_registers(self, value: Value, registers: Sequence[Val]) -> None:
        self.registers[value] = list(registers)

    def equal_registers(self, value: Value) -> Sequence[int] | None:
        """The first equal register for each of a boolean tile, by the constancy of its elements;
        None where no two are known to be equal. In a group, numbers count from its first vector.

        A mask `i < n` with aligned n has one value for each vector: one comparison, one predicate.
        """
        if not isinstance(value.type, TileType) or element_of(value.type) is not i1:
            return None
        constancy = self.alignments[value].constancy
        runs = first_of_runs(layout_of(value), constancy) if max(constancy) > 1 else None
        if runs is None or self.vectors is None:
            return runs
        return runs[self.vectors.start :]

    # -- code that must not move ----------------------------------------------------------------

    def asm(self, text: str, constraints: str, type_: str, *operands: Val) -> Val:
        """Inline assembly with a result; stays in order with other such code."""
        arguments = ", ".join(v.typed for v in operands)
        # `sideeffect` keeps it in order with others and alive without users; #1: it is convergent.
        call = f'call {type_} asm sideeffect "{text}", "{constraints}"({arguments}) #1'
        if type_ == "void":
            self.code.line(call)
            return Val("", "void", BODY)
        return self.code.let_here(call, type_)

    def pure_asm(self, text: str, constraints: str, type_: str, *operands: Val) -> Val:
        """Inline assembly that only computes."""
        # No `sideeffect`: LLVM may merge equal ones, move them, and drop those without users.
        arguments = ", ".join(v.typed for v in operands)
        return self.code.let_here(f'call {type_} asm "{text}", "{constraints}"({arguments})', type_)

    # -- where a thread is ----------------------------------------------------------------------

    def program(self, axis: int) -> Val:
        """This program's position in the grid of programs."""
        return self.grid_register("ctaid" if self._counts_blocks(axis) else "clusterid", axis)

    def programs(self, axis: int) -> Val:
        """Extent of the grid of programs."""
        if self.is_persistent:
            return Val(f"%grid{axis}", "i32", BODY)
        return self.grid_register("nctaid" if self._counts_blocks(axis) else "nclusterid", axis)

    def _counts_blocks(self, axis: int) -> bool:
        """Whether blocks along an axis are programs: clusters lie along x."""
        return self.num_ctas == 1 or axis > 0

    def grid_register(self, name: str, axis: int) -> Val:
        """A special register along an axis."""
        return self.register(f"{name}.{'xyz'[axis]}")

    def register(self, name: str) -> Val:
        """A special register of a thread."""
        function = f"llvm.nvvm.read.ptx.sreg.{name}"
        self.module.declare(function, f"declare i32 @{function}()")
        return self.code.let_here(f"call i32 @{function}()", "i32")

    def thread_coords(self, layout: LinearLayout) -> list[Val]:
        """Coordinates of register 0 of this thread, one for each dim; computed once, at entry."""
        key = (layout, "coords")
        cached = self.coordinate_cache.get(key)
        if cached is None:
            # Emitted at entry, which dominates all uses: the first use may be in a branch.
            sections, self.code.sections = self.code.sections, [self.code.sections[0]]
            cached = [self._thread_coordinate(layout, dim) for dim in range(len(layout.outs))]
            self.code.sections = sections
            self.coordinate_cache[key] = cached
        return cached

    def _thread_coordinate(self, layout: LinearLayout, dim: int) -> Val:
        total = integer_literal(0)
        for name, index in ((LANE, self.lane), (WARP, self.warp)):
            column = [basis[dim] for basis in layout.bases(name)]
            total = self._combine("xor", total, self.linear(column, index))
        return Val(total.text, total.type, BODY)

    def linear(self, columns: Sequence[int], index: Val) -> Val:
        """XOR of the columns chosen by the bits of `index`."""
        total = integer_literal(0)
        bit = 0
        while bit < len(columns):
            if columns[bit] == 0:
                bit += 1
                continue
            run = doubling_run(columns, bit)
            total = self._combine("xor", total, self._bits(index, bit, run, columns[bit]))
            bit += run
        return total

    def _bits(self, index: Val, bit: int, count: int, column: int) -> Val:
        """Bits [bit, bit + count) of index, moved so that the lowest becomes `column`."""
        masked = self._op("and", index, ((1 << count) - 1) << bit)
        if column & (column - 1) == 0:
            shift = column.bit_length() - 1 - bit
            if shift == 0:
                return masked
            return self._op("shl" if shift > 0 else "lshr", masked, abs(shift))
        # Shifted copies of `column` are added: `doubling_run` sees to it that they share no bits.
        return self._op("mul", self._op("lshr", masked, bit) if bit else masked, column)

    def _op(self, instruction: str, x: Val, constant: int) -> Val:
        return self.code.let_here(f"{instruction} {x.typed}, {constant}", x.type)

    def _combine(self, instruction: str, x: Val, y: Val) -> Val:
        if x.text == "0":
            return y
        if y.text == "0":
            return x
        return self.code.let_here(f"{instruction} {x.typed}, {y}", x.type)

    def coordinate(self, layout: LinearLayout, dim: int, register: int) -> Val:
        """Coordinate along `dim` of one register of this thread."""
        base, step = self.thread_coords(layout)[dim], layout.apply(register=register)[dim]
        if step == 0:
            return base
        if base.text == "0":
            return integer_literal(step)
        # Bits in which no thread differs are added last: they fold into immediate offsets, and all
        # instructions that share the rest share its register.
        moving = moving_bits(layout, dim)
        for instruction, bits in (("xor", step & moving), ("add nuw nsw", step & ~moving)):
            if bits:
                base = self.code.let_here(f"{instruction} i32 {base}, {bits}", "i32")
        return base

    def owner(self, layout: LinearLayout | None) -> Val | None:
        """Whether this thread is the one that writes its elements; None if all are."""
        # The threads whose free bits are all 0 hold each element once (`free_masks`).
        masks = {LANE: 31, WARP: self.warps - 1} if layout is None else layout.free_masks()
        condition: Val | None = None
        for name, index in ((LANE, self.lane), (WARP, self.warp)):
            mask = masks.get(name, 0)
            if not mask:
                continue
            test = self._op("icmp eq", self._op("and", index, mask), 0)
            test = Val(test.text, "i1", BODY)
            condition = test if condition is None else self.code.binary("and", condition, test)
        return condition


@lru_cache(maxsize=256)
def moving_bits(layout: LinearLayout, dim: int = 0) -> int:
    """The bits of a coordinate in which threads differ."""
    bases = (*layout.bases(LANE), *layout.bases(WARP))
    return reduce(lambda bits, basis: bits | basis[dim], bases, 0)


@lru_cache(maxsize=256)
def first_of_runs(layout: LinearLayout, constancy: tuple[int, ...]) -> list[int] | None:
    """The first register that is equal to each one, if aligned groups of so many elements along
    each dim are equal; None if each register has a group of its own."""
    # A coordinate is the XOR of what thread and register add to it, so its high bits are, too.
    first: dict[tuple[int, ...], int] = {}
    runs = [
        first.setdefault(
            tuple(p // k for p, k in zip(layout.apply(register=r), constancy, strict=True)), r
        )
        for r in range(layout.in_size(REGISTER))
    ]
    return runs if len(first) < len(runs) else None


def doubling_run(columns: Sequence[int], bit: int) -> int:
    """How many columns from `bit` on are one field, which one mask and one shift or mul move.

    Each is twice the one before, and no two share a bit, since a mul adds and does not XOR:
    of (3, 6) the second is left for a run of its own.
    """
    run, seen = 1, columns[bit]
    while bit + run < len(columns) and columns[bit + run] == columns[bit] << run:
        if seen & columns[bit + run]:
            break
        seen |= columns[bit + run]
        run += 1
    return run


def register_type(value: Value) -> str:
    """LLVM type of one register of a value."""
    return llvm_type(element_of(value.type))


def memory_bits(element: DType | PointerType) -> int:
    """Bits of an element in memory; a bool is a byte."""
    return 8 * element.bytes


lowering: LoweringTable[GpuLowering] = LoweringTable("cuda")
"""Handlers by op class; element-wise ops without one are lowered register by register."""
