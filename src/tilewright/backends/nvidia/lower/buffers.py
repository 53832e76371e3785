"""Buffers in shared memory: asynchronous copies into them, writes, and reads into registers.

The value of a buffer is one register: its offset in shared memory, in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tilewright.backends.nvidia.buffer_ops import (
    AllocOp,
    AsyncCopyOp,
    CommitOp,
    PartOp,
    ReadOp,
    ShareOp,
    TransposeViewOp,
    ViewOp,
    WaitOp,
    WriteOp,
    alloc_of,
    buffer_type,
    is_read_by_wgmma,
)
from tilewright.backends.nvidia.layouts.layout_propagation import part_along
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.global_memory import shared_store
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.lower.layout_conversion import (
    instruction_address,
    read_group,
    write_shared,
)
from tilewright.backends.nvidia.lower.register_packing import pack
from tilewright.backends.nvidia.shared_memory.shared_accesses import (
    copy_access,
    read_access,
    write_access,
)
from tilewright.ir import Value
from tilewright.ir.types import BufferType, shape_of
from tilewright.layout import REGISTER
from tilewright.llvm import Val
from tilewright.ops import LoadOp

FENCE = "fence.proxy.async.shared::cta;"
"""Order a thread's writes before the reads of wgmma, after a barrier."""


@lowering(AllocOp)
def _alloc(state: GpuLowering, op: AllocOp) -> None:
    """No instruction: a constant offset."""
    state.set_registers(op.result, [Val(str(state.offsets[op]), "i32", BODY)])


@lowering(ViewOp)
def _view(state: GpuLowering, op: ViewOp) -> None:
    base, slot = state.scalar(op.buffer), state.scalar(op.slot)
    moved = state.code.let_here(f"mul i32 {slot}, {buffer_type(op.buffer).slot_bytes}", "i32")
    state.set_registers(op.result, [state.code.let_here(f"add i32 {moved}, {base}", "i32")])


@lowering(TransposeViewOp)
def _transpose_view(state: GpuLowering, op: TransposeViewOp) -> None:
    """No instruction: the dims are renumbered."""
    state.set_registers(op.result, state.registers_of(op.buffer))


# ---- asynchronous copies ------------------------------------------------------------------------


def copy_instruction(size: int) -> str:
    """The instruction that copies 4, 8 or 16 bytes."""
    # PTX permits .cg, which goes past the L1 cache, for 16 bytes only.
    return f"cp.async.{'cg.shared.global.L2::128B' if size == 16 else 'ca.shared.global'}"


@lowering(AsyncCopyOp)
def _async_copy(state: GpuLowering, op: AsyncCopyOp) -> None:
    # The load emits nothing itself (`is_copied`): the copy takes its addresses and masks.
    load, type_ = cast("LoadOp", op.x.op), buffer_type(op.buffer)
    access = copy_access(op)
    start = state.scalar(op.buffer)
    pointers = state.registers_of(load.pointer)
    masks = None if load.mask is None else state.registers_of(load.mask)
    # Each instruction moves one run of registers that is a run in memory, too.
    for index, group in enumerate(access.groups):
        address = instruction_address(state, access, type_.element, 0, index)
        target = state.code.let_here(f"add i32 {address}, {start}", "i32")
        # One mask for all: `vector` is no longer than runs of equal masks (`vector_length`).
        mask = None if masks is None else masks[group[0]]
        _copy(state, target, pointers[group[0]], len(group) * type_.element.bytes, mask)


def _copy(state: GpuLowering, target: Val, pointer: Val, size: int, mask: Val | None) -> None:
    """cp.async of 4, 8 or 16 bytes; zeros where the mask is false."""
    text, constraints = f"{copy_instruction(size)} [$0], [$1], {size}", "r,l"
    operands = [target, pointer]
    if mask is not None:
        # A source size of 0 reads nothing and fills with zeros: no branch is needed.
        taken = state.code.let_here(f"select i1 {mask}, i32 {size}, i32 0", "i32")
        text, constraints, operands = f"{text}, $2", "r,l,r", [*operands, taken]
    state.asm(f"{text};", f"{constraints},~{{memory}}", "void", *operands)


@lowering(CommitOp)
def _commit(state: GpuLowering, op: CommitOp) -> None:
    state.asm("cp.async.commit_group;", "~{memory}", "void")


@lowering(WaitOp)
def _wait(state: GpuLowering, op: WaitOp) -> None:
    state.asm(f"cp.async.wait_group {op.pending};", "~{memory}", "void")
    if op.proxy:
        state.asm(FENCE, "~{memory}", "void")


# ---- registers ----------------------------------------------------------------------------------


@lowering(WriteOp)
def _write(state: GpuLowering, op: WriteOp) -> None:
    type_ = buffer_type(op.buffer)
    if type_.layout is None:
        _write_elements(state, op, type_)
    elif op.owners:
        access = write_access(op.x, type_, matrix_stores=False)
        owner, start = state.owner(layout_of(op.x)), state.scalar(op.buffer)
        registers = state.registers_of(op.x)
        write_shared(state, access, registers, type_.element, 0, start, owner)
    else:
        _write_tile(state, op.x, alloc_of(op.buffer).results[0], 0, state.scalar(op.buffer))


def _write_elements(state: GpuLowering, op: WriteOp, type_: BufferType) -> None:
    """Write elements one by one, to rows of any length."""
    layout, element = layout_of(op.x), type_.element
    for r, register in enumerate(state.registers_of(op.x)):
        coords = [state.coordinate(layout, dim, r) for dim in range(len(type_.shape))]
        (packed,) = pack(state, [register], element)
        address = element_address(state, state.scalar(op.buffer), coords, type_)
        shared_store(state, address, packed, None)


def element_address(
    state: GpuLowering, start: Val, coords: Sequence[Val], type_: BufferType
) -> Val:
    """Address of one element of a buffer at offset `start` with consecutive rows."""
    total, step = start, type_.element.bytes
    for coordinate, extent in zip(reversed(coords), reversed(type_.shape), strict=True):
        scaled = state.code.let_here(f"mul i32 {coordinate}, {step}", "i32")
        total = state.code.let_here(f"add i32 {total}, {scaled}", "i32")
        step *= extent
    return state.code.let_here(f"add i32 {state.shared}, {total}", "i32")


def _write_tile(
    state: GpuLowering, x: Value, buffer: Value, offset: int, start: Val | None = None
) -> None:
    """Write a tile to a buffer or a slot of it, where wgmma may read it, too."""
    type_ = buffer_type(buffer)
    access = write_access(x, type_, state.arch.stmatrix)
    write_shared(state, access, state.registers_of(x), type_.element, offset, start)
    if is_read_by_wgmma(buffer):
        state.asm(FENCE, "~{memory}", "void")


@lowering(ShareOp)
def _share(state: GpuLowering, op: ShareOp) -> None:
    offset = state.offsets[op]
    _write_tile(state, op.x, op.result, offset)
    state.set_registers(op.result, [Val(str(offset), "i32", BODY)])


@lowering(ReadOp)
def _read(state: GpuLowering, op: ReadOp) -> None:
    type_, layout = buffer_type(op.buffer), layout_of(op.result)
    access, count = read_access(type_, layout, op.axis), layout.in_size(REGISTER)
    first = 0 if op.axis is None else op.start // layout.shape[op.axis] * count
    needed, values = range(first, first + count), dict[int, Val]()
    for number, group in enumerate(access.groups):
        if any(register in needed for register in group):
            read = read_group(state, access, type_.element, state.scalar(op.buffer), number)
            values.update(zip(group, read, strict=True))
    state.set_registers(op.result, [values[register] for register in needed])


@lowering(PartOp)
def _part(state: GpuLowering, op: PartOp) -> None:
    """No instruction: some of the registers."""
    extent = shape_of(op.type)[op.axis]
    found = part_along(layout_of(op.x), op.axis, extent)
    assert found is not None, op
    registers = list(enumerate(state.registers_of(op.x)))
    for position, bit in enumerate(found[1]):
        wanted = op.start // extent >> position & 1
        registers = [(number, v) for number, v in registers if number >> bit & 1 == wanted]
    state.set_registers(op.result, [value for _, value in registers])
