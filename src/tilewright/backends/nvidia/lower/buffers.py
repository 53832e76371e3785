"""Buffers in shared memory: asynchronous copies into them, writes, and reads into registers.

The value of a buffer is one register: its offset in shared memory, in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast, overload

from tilewright.backends.nvidia.arch import Arch
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
    buffer_type,
    reads_late,
)
from tilewright.backends.nvidia.layouts.layout_propagation import half_along, with_half
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, layout_of, lowering
from tilewright.backends.nvidia.lower.layout_conversion import (
    instruction_address,
    read_group,
    write_shared,
)
from tilewright.backends.nvidia.lower.register_packing import Element
from tilewright.ir import Value
from tilewright.ir.types import BufferType
from tilewright.layout import REGISTER, LinearLayout, SharedAccess, plan_shared_access
from tilewright.llvm import Val
from tilewright.ops import LoadOp

FENCE = "fence.proxy.async.shared::cta;"
"""Orders what a thread wrote before what warpgroup products read, behind a barrier."""


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
    """No instruction: other names for the dims."""
    state.set_registers(op.result, state.registers_of(op.buffer))


def _bits(type_: BufferType) -> int:
    return 8 * type_.element.bytes


# ---- asynchronous copies ------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _copy_access(
    shared: LinearLayout, source: LinearLayout, bits: int, vector: int
) -> SharedAccess:
    return plan_shared_access(shared, source, bits, copy=True, max_elements=vector)


def copy_access(op: AsyncCopyOp) -> SharedAccess:
    """How a copy writes shared memory."""
    type_ = buffer_type(op.buffer)
    shared = cast("LinearLayout", type_.layout)
    return _copy_access(shared, layout_of(op.x), _bits(type_), op.vector)


def copy_instruction(size: int) -> str:
    """What copies 4, 8 or 16 bytes."""
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


@lru_cache(maxsize=256)
def _write_access(
    shared: LinearLayout, source: LinearLayout, bits: int, matrix: bool
) -> SharedAccess:
    return plan_shared_access(shared, source, bits, matrix=matrix, store=True)


@lru_cache(maxsize=256)
def _read_access(shared: LinearLayout, target: LinearLayout, bits: int) -> SharedAccess:
    # All architectures have ldmatrix.
    return plan_shared_access(shared, target, bits, matrix=True)


def write_access(x: Value, type_: BufferType, arch: Arch) -> SharedAccess:
    """How a tile in registers is written to a buffer."""
    shared = cast("LinearLayout", type_.layout)
    return _write_access(shared, layout_of(x), _bits(type_), arch.stmatrix)


def read_access(op: ReadOp) -> SharedAccess:
    """How a slot is read into registers; of a half, too, that of the whole."""
    type_, target = buffer_type(op.buffer), layout_of(op.result)
    if op.axis is not None:
        # Then the highest register bit names the half.
        target = with_half(target, op.axis)
    return _read_access(cast("LinearLayout", type_.layout), target, _bits(type_))


@lowering(WriteOp)
def _write(state: GpuLowering, op: WriteOp) -> None:
    _write_tile(state, op.x, buffer_type(op.buffer), 0, state.scalar(op.buffer))


def _write_tile(
    state: GpuLowering, x: Value, type_: BufferType, offset: int, start: Val | None = None
) -> None:
    """Write a tile where warpgroup products may read it, too."""
    access = write_access(x, type_, state.arch)
    write_shared(state, access, state.registers_of(x), type_.element, offset, start=start)
    if state.arch.wgmma:
        state.asm(FENCE, "~{memory}", "void")


@lowering(ShareOp)
def _share(state: GpuLowering, op: ShareOp) -> None:
    offset = state.offsets[op]
    _write_tile(state, op.x, buffer_type(op.result), offset)
    state.set_registers(op.result, [Val(str(offset), "i32", BODY)])


class LazyRegisters(Sequence[Val]):
    """Registers that are read from shared memory at their first use.

    A product uses them in the order of its inner dimension, so reads stand between its instructions
    instead of all before them.
    """

    def __init__(
        self, state: GpuLowering, access: SharedAccess, element: Element, start: Val, count: int
    ) -> None:
        self._state, self._access, self._element, self._start = state, access, element, start
        self._group_of = {r: i for i, group in enumerate(access.groups) for r in group}
        self._known: dict[int, Val] = {}
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Val]:
        return (self[i] for i in range(self._count))

    @overload
    def __getitem__(self, index: int) -> Val: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Val]: ...
    def __getitem__(self, index: int | slice) -> Val | Sequence[Val]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        if index not in self._known:
            # One instruction reads the whole group: the others of it are kept.
            number = self._group_of[index]
            values = read_group(self._state, self._access, self._element, self._start, number)
            self._known.update(zip(self._access.groups[number], values, strict=True))
        return self._known[index]


@lowering(ReadOp)
def _read(state: GpuLowering, op: ReadOp) -> None:
    type_, count = buffer_type(op.buffer), layout_of(op.result).in_size(REGISTER)
    access = read_access(op)
    start = state.scalar(op.buffer)
    first = 0 if op.axis is None else op.half * count
    lazy = LazyRegisters(state, access, type_.element, start, first + count)
    # Not `set_registers`: its copy of the sequence would read all of them here.
    late = reads_late(op)
    state.registers[op.result] = lazy if late else [lazy[i] for i in range(first, first + count)]


@lowering(PartOp)
def _part(state: GpuLowering, op: PartOp) -> None:
    """No instruction: half of the registers."""
    half = half_along(layout_of(op.x), op.axis)
    assert half is not None, op
    chosen = [v for r, v in enumerate(state.registers_of(op.x)) if r >> half[1] & 1 == op.half]
    state.set_registers(op.result, chosen)
