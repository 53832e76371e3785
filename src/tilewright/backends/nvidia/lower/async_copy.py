"""Rings of slots in shared memory: asynchronous copies into them, and reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast, overload

from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.lower.layout_conversion import instruction_address, read_group
from tilewright.backends.nvidia.lower.register_packing import Element
from tilewright.backends.nvidia.ops import (
    AsyncCopyOp,
    CommitOp,
    LoadSlotOp,
    RingOp,
    WaitOp,
    reads_late,
)
from tilewright.ir import Value
from tilewright.ir.types import TileType
from tilewright.layout import (
    REGISTER,
    LinearLayout,
    SharedAccess,
    SharedConversion,
    plan_shared_conversion,
)
from tilewright.llvm import Val
from tilewright.ops import LoadOp


def slot_conversion(op: AsyncCopyOp | LoadSlotOp, reader: TileType) -> SharedConversion:
    """The buffer of one slot, how it is filled, and how it is read."""
    source, target = cast("TileType", op.writer).layout, reader.layout
    assert isinstance(source, LinearLayout) and isinstance(target, LinearLayout)
    return _plan(source, target, 8 * reader.element.bytes, op.vector)


@lru_cache(maxsize=256)
def _plan(source: LinearLayout, target: LinearLayout, bits: int, vector: int) -> SharedConversion:
    # cp.async fills the slots, so stmatrix cannot; all architectures have ldmatrix.
    return plan_shared_conversion(
        source,
        target,
        bits,
        matrix_loads=True,
        matrix_stores=False,
        copy=True,
        copy_elements=vector,
    )


def slot_bytes(type_: TileType) -> int:
    return type_.numel * type_.element.bytes


@lowering(RingOp)
def _ring(state: GpuLowering, op: RingOp) -> None:
    """No instruction: the value of a ring is its constant offset in shared memory."""
    state.set_registers(op.results[0], [Val(str(state.offsets[op]), "i32", BODY)])


def _slot_address(state: GpuLowering, ring: Value, slot: Value, size: int) -> Val:
    """Offset of a slot in shared memory."""
    base, number = state.scalar(ring), state.scalar(slot)
    moved = state.code.let_here(f"mul i32 {number}, {size}", "i32")
    return state.code.let_here(f"add i32 {moved}, {base}", "i32")


@lowering(AsyncCopyOp)
def _async_copy(state: GpuLowering, op: AsyncCopyOp) -> None:
    # The load emits nothing itself (`is_copied`): the copy takes its addresses and masks.
    load = cast("LoadOp", op.x.op)
    writer = cast("TileType", op.writer)
    access = slot_conversion(op, cast("TileType", op.reader)).store
    start = _slot_address(state, op.ring, op.slot, slot_bytes(writer))
    pointers = state.registers_of(load.pointer)
    masks = None if load.mask is None else state.registers_of(load.mask)
    # Each instruction moves one run of registers that is a run in memory, too.
    for index, group in enumerate(access.groups):
        address = instruction_address(state, access, writer.element, 0, index)
        target = state.code.let_here(f"add i32 {address}, {start}", "i32")
        # One mask for all: `vector` is no longer than runs of equal masks (`vector_length`).
        mask = None if masks is None else masks[group[0]]
        _copy(state, target, pointers[group[0]], len(group) * writer.element.bytes, mask)
    state.set_registers(op.result, state.registers_of(op.ring))


def _copy(state: GpuLowering, target: Val, pointer: Val, size: int, mask: Val | None) -> None:
    """cp.async of 4, 8 or 16 bytes; zeros where the mask is false."""
    # PTX permits .cg, which goes past the L1 cache, for 16 bytes only.
    kind = "cg.shared.global.L2::128B" if size == 16 else "ca.shared.global"
    text, constraints, operands = f"cp.async.{kind} [$0], [$1], {size}", "r,l", [target, pointer]
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
    state.asm(f"cp.async.wait_group {op.attrs['pending']};", "~{memory}", "void")


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
        self._loaded: dict[int, Val] = {}
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
        if index not in self._loaded:
            # One instruction reads the whole group: the others of it are kept.
            number = self._group_of[index]
            values = read_group(self._state, self._access, self._element, self._start, number)
            self._loaded.update(zip(self._access.groups[number], values, strict=True))
        return self._loaded[index]


@lowering(LoadSlotOp)
def _load_slot(state: GpuLowering, op: LoadSlotOp) -> None:
    reader = cast("TileType", op.type)
    layout = reader.layout
    assert isinstance(layout, LinearLayout)
    # The same plan as that of the copies: both derive it from writer, reader and vector.
    access = slot_conversion(op, reader).load
    start = _slot_address(state, op.ring, op.slot, slot_bytes(reader))
    count = layout.in_size(REGISTER)
    lazy = LazyRegisters(state, access, reader.element, start, count)
    # Not `set_registers`: its copy of the sequence would read all of them here.
    state.registers[op.result] = lazy if reads_late(op) else list(lazy)
