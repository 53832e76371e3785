"""wgmma: the text of its assembly, and its operands.

A k-block is one asm statement: a fence, every instruction of the block, the end of the group, and
the wait if there is one. The accumulators are operands tied to its results, so LLVM can neither
use them before the wait inside nor move them in between. Operands in shared memory are low words
of descriptors, one for each operand; the instructions add constants to it, the high word is a
constant:

    { .reg .b64 da, db; .reg .b32 ta, tb, ha, hb;
      mov.b32 hb, 1073741888; ...
      wgmma.fence.sync.aligned;
      add.u32 tb, $b, 128; mov.b64 db, {tb, hb}; ...
      wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {$0, ...}, da, db, 1, 1, 1, 0, 1;
      ...
      wgmma.commit_group.sync.aligned;
      wgmma.wait_group.sync.aligned 1; }

It is assembly since LLVM has no intrinsic for wgmma.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from tilewright.backends.nvidia.buffer_ops import WgmmaOp, WgmmaWaitOp, buffer_type
from tilewright.backends.nvidia.layouts.select_wgmma import instruction_result
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.lower.register_packing import pack, unpack
from tilewright.backends.nvidia.lower.tensor_cores import PTX_TYPES
from tilewright.ir import Value
from tilewright.ir.types import BufferType, DType, dtype_of, f16, f32, shape_of
from tilewright.layout import (
    REGISTER,
    WARP,
    Fragment,
    LinearLayout,
    WgmmaOperand,
    operand_layout,
    wgmma_fragment,
    wgmma_operand,
)
from tilewright.llvm import Val, integer_literal
from tilewright.ops import ConstantOp
from tilewright.support.data_class import dataclass

_ADDRESS_MASK = 0x3FFFF
"""Bits of a shared address: those above number the block in its cluster."""

_CHUNK_BITS = 4
"""Descriptors count in units of 16 bytes."""

_WARPGROUP_BITS = 2
"""Bits of a warp's number that number it in its warpgroup."""

_A_REGISTERS = 4
"""Words of A in registers, for one instruction."""


@dataclass(frozen=True, slots=True)
class DescriptorSteps:
    """An operand in shared memory: the constant high word of its descriptors, and what is added to
    the low word for each block of rows or columns (first index) and each step along K (second)."""

    high: int
    mn_major: bool
    steps: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class WgmmaBlock:
    """The instructions of one dot: all steps along K of all blocks of one warpgroup.

    name: shape and types, as in m64n256k16.f32.f16.f16; a: None if it is in registers;
    parts: for each block of the result, in the order of its registers, the blocks of A and B that
    are multiplied; accumulators: 32-bit registers of one part; steps: along K
    """

    name: str
    operand_bits: int
    is_float: bool
    accumulator_type: DType
    a: DescriptorSteps | None
    b: DescriptorSteps
    parts: tuple[tuple[int, int], ...]
    accumulators: int
    steps: int

    @property
    def registers(self) -> int:
        """32-bit accumulator registers per thread."""
        return self.accumulators * len(self.parts)

    @property
    def kind(self) -> str:
        """The constraint of an accumulator register."""
        return _sum_register(self.accumulator_type)[1]

    @property
    def a_registers(self) -> int:
        """32-bit registers of A; 0 if it is in shared memory."""
        blocks = len({a for a, _ in self.parts})
        return 0 if self.a is not None else _A_REGISTERS * self.steps * blocks

    @property
    def modifiers(self) -> str:
        """Immediates after the predicate: signs 1 or -1 and, of 16-bit operands in shared memory,
        whether they are contiguous along M or N."""
        if not self.is_float:
            return ""
        transposed = [self.b] if self.a is None else [self.a, self.b]
        flags = [int(x.mn_major) for x in transposed] if self.operand_bits == 16 else []
        return "".join(f", {value}" for value in (1, 1, *flags))


def wgmma_block(
    fragment: Fragment,
    result: LinearLayout,
    types: tuple[DType, DType, DType],
    a: WgmmaOperand | None,
    b: WgmmaOperand,
) -> WgmmaBlock:
    """The instructions for a result in a layout of `wgmma_result_layout`.

    types: of A, B and the accumulator; a: None in registers, in the layout `operand_layout`
    """
    count = fragment.c.in_size(REGISTER)
    origins = [result.apply(register=i) for i in range(0, result.in_size(REGISTER), count)]
    rows, columns = (list(dict.fromkeys(origin[dim] for origin in origins)) for dim in (0, 1))
    assert b.mn_extent >= fragment.n and (a is None or a.mn_extent >= fragment.m)
    assert a is None or len(a.k_steps) == len(b.k_steps)
    of_a, of_b, of_accumulators = (PTX_TYPES[t.name] for t in types)
    # f32 names tf32 as an operand, but itself as a sum.
    accumulators = types[2].name if types[2].is_float else of_accumulators
    return WgmmaBlock(
        f"m64n{fragment.n}k{fragment.k}.{accumulators}.{of_a}.{of_b}",
        fragment.element_bits,
        types[0].is_float,
        types[2],
        None if a is None else _steps(a, rows),
        _steps(b, columns),
        tuple((rows.index(row), columns.index(column)) for row, column in origins),
        count * types[2].bits // 32,
        len(b.k_steps),
    )


def _steps(operand: WgmmaOperand, starts: Sequence[int]) -> DescriptorSteps:
    steps = tuple(
        tuple((operand.mn_offset(start) + step) >> _CHUNK_BITS for step in operand.k_steps)
        for start in starts
    )
    return DescriptorSteps(operand.high, not operand.k_major, steps)


# ---- text ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AsmText:
    """Inline assembly: its template and its constraints."""

    text: str
    constraints: str


def wgmma_block_text(
    block: WgmmaBlock, accumulate: bool | None, wait: int | None, may_skip: bool = False
) -> AsmText:
    """The statement for one k-block.

    accumulate: whether it adds to the accumulator, None: by a predicate; wait: groups that may be
    pending after it, None: all; may_skip: a predicate guards it. Operands: the accumulators unless
    they are new, A (a low word, or for each block and step four registers), the low word of B, the
    predicates.
    """
    assert not (may_skip and accumulate is False), "a skipped wgmma has accumulators before"
    tied = 0 if accumulate is False else block.registers
    first = block.registers + tied
    second = first + (block.a_registers or 1)
    predicate = f"${second + 1}" if accumulate is None else str(int(accumulate))
    lines = [".reg .b64 da, db;", ".reg .b32 ta, tb, ha, hb;"]
    if block.a is not None:
        lines.append(f"mov.b32 ha, {block.a.high};")
    predicates = (accumulate is None) + may_skip
    lines.append(f"mov.b32 hb, {block.b.high};")
    group = ["wgmma.fence.sync.aligned;", *_instructions(block, first, second, predicate), _COMMIT]
    lines += _skipped(group, f"${second + predicates}") if may_skip else group
    if wait is not None:
        lines.append(f"wgmma.wait_group.sync.aligned {wait};")
    inputs = ["r"] * (second - first + 1) + ["b"] * predicates
    # New accumulators are written before the last input is read: no register is shared.
    outputs = [f"={'' if tied else '&'}{block.kind}"] * block.registers
    ties = map(str, range(tied))
    return AsmText(_braced(lines), ",".join([*outputs, *ties, *inputs, "~{memory}"]))


_COMMIT = "wgmma.commit_group.sync.aligned;"


def _skipped(group: Sequence[str], predicate: str) -> list[str]:
    """A group of instructions, or an empty one.

    Each way commits a group of its own: after a common commit, ptxas counts two.
    """
    skip = ["SKIP:", "wgmma.fence.sync.aligned;", _COMMIT, "DONE:"]
    return [f"@!{predicate} bra SKIP;", *group, "bra DONE;", *skip]


def _instructions(block: WgmmaBlock, first: int, second: int, predicate: str) -> Iterator[str]:
    """Each step along K of each part; first, second: numbers of the operands A and B."""
    words: dict[str, int] = {}
    for step in range(block.steps):
        for part, (row, column) in enumerate(block.parts):
            left = "da"
            if block.a is None:
                start = first + _A_REGISTERS * (block.steps * row + step)
                left = _registers(start, _A_REGISTERS)
            else:
                yield from _descriptor("a", first, block.a.steps[row][step], words)
            yield from _descriptor("b", second, block.b.steps[column][step], words)
            accumulators = _registers(part * block.accumulators, block.accumulators)
            scale = "1" if step else predicate
            yield (
                f"wgmma.mma_async.sync.aligned.{block.name} {accumulators}, {left}, db, "
                f"{scale}{block.modifiers};"
            )


def _descriptor(name: str, operand: int, step: int, words: dict[str, int]) -> Iterator[str]:
    """Make the descriptor of an operand; words: the steps of those that are made."""
    if words.get(name) != step:
        words[name] = step
        yield f"add.u32 t{name}, ${operand}, {step};"
        yield f"mov.b64 d{name}, {{t{name}, h{name}}};"


def wgmma_wait_text(count: int, registers: int, kind: str) -> AsmText:
    """The statement that waits until at most `count` groups are pending; accumulators are tied.

    registers: 32-bit accumulator registers; kind: their constraint
    """
    outputs, ties = [f"={kind}"] * registers, map(str, range(registers))
    text = f"wgmma.wait_group.sync.aligned {count};"
    return AsmText(text, ",".join([*outputs, *ties, "~{memory}"]))


def _registers(start: int, count: int) -> str:
    return "{" + ", ".join(f"${i}" for i in range(start, start + count)) + "}"


def _braced(lines: Sequence[str]) -> str:
    # "\0A" is how LLVM's strings write the end of a line.
    return "\\0A".join(["{", *lines, "}"])


# ---- code ---------------------------------------------------------------------------------------


def emit_wgmma(
    state: GpuLowering,
    block: WgmmaBlock,
    accumulators: Sequence[Val],
    a: Sequence[Val],
    b: Val,
    accumulate: bool | Val = True,
    wait: int | None = 0,
    runs: Val | None = None,
) -> list[Val]:
    """One k-block; the new accumulators, one for each element of a thread.

    a: the low word of its descriptor, or its registers (`a_in_registers`); b: the low word of its
    descriptor; accumulate: i1, or known; wait: as in `wgmma_block_text`; runs: i1, if it may not
    """
    known = accumulate if isinstance(accumulate, bool) else None
    text = wgmma_block_text(block, known, wait, runs is not None)
    assert len(a) == (block.a_registers or 1), (len(a), block)
    old = [] if known is False else _packed(state, accumulators, block.accumulator_type)
    predicates = [accumulate] if isinstance(accumulate, Val) else []
    predicates += [runs] if runs is not None else []
    return _run(state, text, block.registers, [*old, *a, b, *predicates], block.accumulator_type)


def emit_wgmma_wait(
    state: GpuLowering, accumulators: Sequence[Val], accumulator_type: DType, count: int = 0
) -> list[Val]:
    """The accumulators, once all but the latest `count` groups are complete."""
    old = _packed(state, accumulators, accumulator_type)
    text = wgmma_wait_text(count, len(old), _sum_register(accumulator_type)[1])
    return _run(state, text, len(old), old, accumulator_type)


def _sum_register(accumulator_type: DType) -> tuple[str, str]:
    """LLVM type and constraint of an accumulator register."""
    return ("float", "f") if accumulator_type is f32 else ("i32", "r")


def _packed(state: GpuLowering, accumulators: Sequence[Val], accumulator_type: DType) -> list[Val]:
    """Accumulators as the instruction has them: of 16 bits two to a register."""
    return (
        pack(state, accumulators, accumulator_type)
        if accumulator_type is f16
        else list(accumulators)
    )


def _run(
    state: GpuLowering, asm: AsmText, count: int, operands: Sequence[Val], accumulator_type: DType
) -> list[Val]:
    type_ = _sum_register(accumulator_type)[0]
    # A thread has at least two accumulators: results are a struct.
    struct = state.module.registers(type_, count)
    got = state.asm(asm.text, asm.constraints, struct, *operands)
    new = [state.code.let_here(f"extractvalue {struct} {got}, {i}", type_) for i in range(count)]
    return unpack(state, new, 2 * count, accumulator_type) if accumulator_type is f16 else new


def descriptor_word(
    state: GpuLowering, operand: WgmmaOperand, address: Val, result: LinearLayout, dim: int
) -> Val:
    """The low word of an operand's descriptor for this thread's warpgroup.

    address: i32, of the tile in shared memory, a multiple of `operand.alignment`; result: the
    layout of the dot; dim: of the result that the operand has, 0 for A and 1 for B
    """
    code = state.code
    local = code.let_here(f"and i32 {address}, {_ADDRESS_MASK}", "i32")
    word = code.let_here(f"lshr exact i32 {local}, {_CHUNK_BITS}", "i32")
    own = _warpgroup_part(state, operand, result, dim)
    # No carry reaches the next field: the sum is still an address in shared memory.
    for part in (own, integer_literal(operand.low)):
        if part.text != "0":
            word = code.let_here(f"add i32 {word}, {part}", "i32")
    return word


def warpgroup_steps(operand: WgmmaOperand, result: LinearLayout, dim: int) -> list[int]:
    """Amount that each bit of a warpgroup's number adds to the low word."""
    starts = [basis[dim] for basis in result.bases(WARP)[_WARPGROUP_BITS:]]
    return [operand.mn_offset(start) >> _CHUNK_BITS for start in starts]


def _warpgroup_part(
    state: GpuLowering, operand: WgmmaOperand, result: LinearLayout, dim: int
) -> Val:
    """Amount that the blocks of this thread's warpgroup add to the low word."""
    columns = warpgroup_steps(operand, result, dim)
    if not any(columns):
        return integer_literal(0)
    key = (result, f"warpgroup {columns}")
    cached = state.coordinate_cache.get(key)
    if cached is None:
        index = warpgroup(state)
        # At entry, as in `GpuLowering.thread_coords`.
        sections, state.code.sections = state.code.sections, [state.code.sections[0]]
        part = state.linear(columns, index)
        state.code.sections = sections
        cached = state.coordinate_cache[key] = [Val(part.text, "i32", BODY)]
    return cached[0]


def warpgroup(state: GpuLowering) -> Val:
    """The number of this thread's warpgroup, uniform to ptxas as well.

    Values computed from it are in uniform registers then, as descriptors need.
    """
    name = "llvm.nvvm.shfl.sync.idx.i32"
    if "%warpgroup" not in state.entry:
        state.module.declare(name, f"declare i32 @{name}(i32, i32, i32, i32)")
        state.entry["%warpgroup"] = [
            f"%warpgroup.own = lshr i32 {state.warp}, {_WARPGROUP_BITS}",
            f"%warpgroup = call i32 @{name}(i32 -1, i32 %warpgroup.own, i32 0, i32 31)",
        ]
    return Val("%warpgroup", "i32", BODY)


def a_in_registers(
    state: GpuLowering,
    fragment: Fragment,
    result: LinearLayout,
    registers: Sequence[Val],
    element: DType,
) -> list[Val]:
    """Operand A as `emit_wgmma` takes it: for each block of rows and step along K four registers.

    registers: one for each element, in the layout `operand_layout`
    """
    size = fragment.a.in_size(REGISTER)
    blocks = result.in_size(REGISTER) // fragment.c.in_size(REGISTER)
    origins = (result.apply(register=i * fragment.c.in_size(REGISTER)) for i in range(blocks))
    rows = list(dict.fromkeys(origin[0] for origin in origins))
    k = len(registers) // (size * len(rows)) * fragment.k
    layout = operand_layout(fragment, result, "a", k)
    start = {layout.apply(register=i): i for i in range(0, len(registers), size)}
    packed: list[Val] = []
    for row in rows:
        for at in range(0, k, fragment.k):
            first = start[row, at]
            # f32 is truncated, as operands in shared memory are.
            packed += pack(state, registers[first : first + size], element)
    return packed


# ---- ops ----------------------------------------------------------------------------------------


def shared_operands(op: WgmmaOp) -> tuple[WgmmaOperand | None, WgmmaOperand]:
    """Descriptors by which instructions read A and B from shared memory; None: A in registers."""
    left, right = instruction_operands(op)
    b = _shared_operand(right, 0, op.swapped)
    if isinstance(left.type, BufferType):
        return _shared_operand(left, 1, op.swapped), b
    # Registers may hold a part along K.
    step = wgmma_fragment(op.columns, 8 * dtype_of(left.type).bytes).k
    first, count = op.k_start // step, shape_of(left.type)[0 if op.swapped else 1] // step
    return None, replace(b, k_steps=b.k_steps[first : first + count])


def instruction_operands(op: WgmmaOp) -> tuple[Value, Value]:
    """Words that instructions have as their A and B."""
    return (op.b, op.a) if op.swapped else (op.a, op.b)


def block_of(op: WgmmaOp, warps: int) -> WgmmaBlock:
    """The instructions of a dot; warps: of a program instance."""
    left, right = instruction_operands(op)
    types = (dtype_of(left.type), dtype_of(right.type), dtype_of(op.type))
    fragment = wgmma_fragment(op.columns, 8 * types[0].bytes)
    return wgmma_block(fragment, instruction_result(op, warps), types, *shared_operands(op))


@lowering(WgmmaOp)
def _wgmma(state: GpuLowering, op: WgmmaOp) -> None:
    warps = layout_of(op.result).in_size(WARP)
    (a, b), block = shared_operands(op), block_of(op, warps)
    left, right = instruction_operands(op)
    result = instruction_result(op, warps)
    if a is None:
        element = dtype_of(left.type)
        fragment = wgmma_fragment(op.columns, 8 * element.bytes)
        words = a_in_registers(state, fragment, result, state.registers_of(left), element)
    else:
        words = [_start(state, left, a, result, 0)]
    start = _start(state, right, b, result, 1)
    accumulators = state.registers_of(op.acc)
    keeps: bool | Val = not _is_zero(op.acc)
    if keeps and op.keep is not None and not _is_true(op.keep):
        keeps = state.scalar(op.keep)
    runs = None if op.runs is None else state.scalar(op.runs)
    # A skipped wgmma leaves its accumulators, also if they are zeros.
    new = emit_wgmma(
        state, block, accumulators, words, start, keeps or runs is not None, op.pending, runs
    )
    state.set_registers(op.result, new)


def _shared_operand(value: Value, k_dim: int, swapped: bool) -> WgmmaOperand:
    type_ = buffer_type(value)
    layout, bits = cast("LinearLayout", type_.layout), 8 * type_.element.bytes
    layout = layout.transpose((1, 0)) if swapped else layout
    operand = wgmma_operand(layout, k_dim=k_dim, element_bits=bits)
    assert operand is not None, value
    return operand


def _start(
    state: GpuLowering, value: Value, operand: WgmmaOperand, result: LinearLayout, dim: int
) -> Val:
    """The low word of the descriptor by which this thread's warpgroup reads a buffer."""
    offset = state.scalar(value)
    address = state.code.let_here(f"add i32 {state.shared}, {offset}", "i32")
    return descriptor_word(state, operand, address, result, dim)


def _is_zero(value: Value) -> bool:
    return isinstance(value.op, ConstantOp) and value.op.value == 0


def _is_true(value: Value) -> bool:
    return isinstance(value.op, ConstantOp) and value.op.value == 1


@lowering(WgmmaWaitOp)
def _wait(state: GpuLowering, op: WgmmaWaitOp) -> None:
    new = emit_wgmma_wait(state, state.registers_of(op.x), dtype_of(op.type), op.pending)
    state.set_registers(op.result, new)
