"""Rows of `explain`: the lowering of each load, store, dot and conversion of a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.explanation import OpRow, distinct_rows
from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.buffer_ops import (
    AsyncCopyOp,
    PartOp,
    ReadOp,
    ShareOp,
    WgmmaOp,
    WriteOp,
    alloc_of,
    buffer_type,
    users_of,
)
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp
from tilewright.backends.nvidia.exchange_ops import CountOp, SharedFmaDotOp, is_scratch
from tilewright.backends.nvidia.explain.conversion_causes import conversion_cause
from tilewright.backends.nvidia.explain.operand_sources import operand_source, reads_of
from tilewright.backends.nvidia.explain.vector_notes import vector_notes
from tilewright.backends.nvidia.layouts.access_vectors import MAX_VECTOR_BYTES, vector_length
from tilewright.backends.nvidia.layouts.operand_chains import carried_tile
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.buffers import copy_instruction
from tilewright.backends.nvidia.lower.bulk_stores import store_instruction as bulk_instruction
from tilewright.backends.nvidia.lower.global_memory import (
    is_copied,
    load_instruction,
    store_instruction,
    vector_shape,
)
from tilewright.backends.nvidia.lower.layout_conversion import shared_instruction
from tilewright.backends.nvidia.lower.tensor_cores import mma_instruction
from tilewright.backends.nvidia.lower.warpgroup_mma import (
    block_of,
    instruction_operands,
    shared_operands,
)
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.role_ops import RolesOp
from tilewright.backends.nvidia.schedule.schedule_loop import copy_obstacle, feeds_dots
from tilewright.backends.nvidia.shared_memory.shared_accesses import (
    BulkStore,
    conversion,
    copy_access,
    panels_of,
    read_access,
    stored_tile,
    write_access,
)
from tilewright.ir import Function, Op, Value
from tilewright.ir.types import TileType, Type, dtype_of, element_of
from tilewright.layout import WARP, WarpShuffle, WgmmaOperand
from tilewright.ops import (
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
    DotOp,
    ForOp,
    LoadOp,
    ReduceOp,
    StoreOp,
)
from tilewright.support import SourceLoc
from tilewright.support.data_class import dataclass

_COMMON = re.compile(
    r"\.(?:aligned|m8n8|row\.col|shared\.b16|mma_async|shared\.global(?:\.L2::128B)?"
    r"|global\.shared::cta|tile|bulk_group)\b"
)
"""Common parts of the names of instructions of a kind."""

_SWIZZLE_BYTES = 128
"""The widest swizzle of operands in shared memory: rows of fewer bytes conflict when written."""

Obstacles = Mapping[SourceLoc | None, str]
"""By place, why ops are not lowered in a faster way; "" where they are."""


def op_rows(function: Function, arch: Arch, obstacles: Obstacles, no_tma: Obstacles) -> list[OpRow]:
    """The rows of a function in source order. Equal rows, such as copies of a pipelined loop before
    its start, are listed once.

    obstacles: to tensor cores, or wgmma; no_tma: to accesses by TMA.
    """
    explainer = _Explainer(arch, analyze_alignment(function), obstacles, no_tma)
    return distinct_rows(row for op in function.walk() for row in explainer.rows(op))


def _short(instruction: str) -> str:
    """The short name of an instruction: `ldmatrix.x4.trans`, `cp.async.cg`,
    `mma.sync.m16n8k16...`."""
    short = _COMMON.sub("", instruction)
    return short.replace("matrix.sync", "matrix")


def _is_in_roles(op: Op) -> bool:
    """Whether an op is in a role of its own."""
    owner = op.parent.owner if op.parent is not None else None
    return isinstance(owner, Op) and (isinstance(owner, RolesOp) or _is_in_roles(owner))


def _tile(type_: Type) -> str:
    """Shape and element type, without a layout."""
    if isinstance(type_, TileType):
        return f"{'x'.join(map(str, type_.shape))}x{type_.element}"
    return str(type_)


@dataclass(frozen=True, slots=True)
class _Explainer:
    """Makes the rows of one function."""

    arch: Arch
    facts: dict[Value, Alignment]
    obstacles: Obstacles
    no_tma: Obstacles

    def rows(self, op: Op) -> Iterator[OpRow]:
        """The rows of one op."""
        kind = _KINDS.get(type(op))
        if kind is not None:
            yield from kind(self, op)

    # ---- global memory ---------------------------------------------------------------------------

    def load(self, op: LoadOp) -> Iterator[OpRow]:
        """A load into registers; a copied load has the row of its copy."""
        if is_copied(op):
            return
        element = element_of(op.type)
        length = self._vector(op, self.arch.access_bytes)
        notes = [*vector_notes(op, self.facts, self.arch.access_bytes), *self._not_copied(op)]
        notes += self._not_bulk(op)
        instruction = load_instruction(op, vector_shape(element, length))
        size = length * element.bytes
        yield self._row(op, "load", op.type, instruction, size, "global -> registers", notes=notes)

    def _not_copied(self, op: LoadOp) -> list[str]:
        """Why a load for dots of a loop waits for its data."""
        if not (isinstance(_parent(op), ForOp) and feeds_dots(carried_tile(op) or op.result)):
            return []
        if not self.arch.cp_async:
            return [f"not loaded ahead: {self.arch.name} has no cp.async"]
        reason = "volatile" if op.volatile else copy_obstacle(op, self.facts)
        return [f"not loaded ahead: {reason or 'its address, a store or num_stages binds it'}"]

    def copy(self, op: AsyncCopyOp) -> Iterator[OpRow]:
        """An asynchronous copy, with the load that it replaces."""
        load, access = op.x.op, copy_access(op)
        assert isinstance(load, LoadOp)
        size = len(access.groups[0]) * element_of(load.type).bytes
        notes = [*vector_notes(load, self.facts, MAX_VECTOR_BYTES), *self._not_bulk(load)]
        yield self._row(
            load, "load", load.type, copy_instruction(size), size, "global -> shared",
            access.degree, notes,
        )  # fmt: skip

    def _not_bulk(self, op: LoadOp | StoreOp) -> list[str]:
        """The reason of `nvidia-select-tma` why TMA does not issue an access."""
        reason = self.no_tma.get(op.loc, "")
        return [f"not by TMA: {reason}"] if reason else []

    def bulk_copy(self, op: BulkCopyOp) -> Iterator[OpRow]:
        """A TMA load, which one thread issues."""
        load, size = op.x.op, buffer_type(op.target).slot_bytes
        assert isinstance(load, DescriptorLoadOp)
        slots = buffer_type(alloc_of(op.target).results[0]).slots
        issuer = "a producer warp" if _is_in_roles(op) else "a thread of the program"
        how = "cp.async.bulk.tensor"
        through = f"global -> shared ({slots} slots), issued by {issuer}"
        if op.is_shared is not None:
            through += "; one half for both blocks of a cluster of 2 where both copy the same"
        yield self._row(load, "load", load.type, how, size, through)

    def store(self, op: StoreOp) -> Iterator[OpRow]:
        """A store from registers."""
        element = element_of(op.stored.type)
        length = self._vector(op, self.arch.access_bytes)
        notes = [*vector_notes(op, self.facts, self.arch.access_bytes), *self._not_bulk(op)]
        instruction = store_instruction(op, vector_shape(element, length))
        size = length * element.bytes
        through = "registers -> global"
        yield self._row(op, "store", op.stored.type, instruction, size, through, notes=notes)

    def bulk_store(self, op: BulkStore) -> Iterator[OpRow]:
        """A TMA store, through shared memory."""
        panels, kind = panels_of(op, self.arch.stmatrix), "store"
        written = _short(shared_instruction(panels.access, op.element, store=True))
        through = f"registers -> shared by {written} ({panels.bytes} bytes) -> global"
        size, degree = panels.box[-1] * op.element.bytes, panels.access.degree
        type_ = stored_tile(op).type
        yield self._row(op, kind, type_, bulk_instruction(op), size, through, degree)

    def _vector(self, op: LoadOp | StoreOp, most: int) -> int:
        return vector_length(self.facts, op.pointer, op.mask, most)

    # ---- dots --------------------------------------------------------------------------------

    def dot(self, op: DotOp) -> Iterator[OpRow]:
        """A warp's MMA, and the sources of its operands."""
        sides = [self._operand(name, v) for name, v in (("A", op.a), ("B", op.b))]
        degrees = [side.degree for side in sides if side.degree]
        why = self.obstacles.get(op.loc, "")
        yield self._row(
            op, "dot", op.type, mma_instruction(self.arch, op),
            max(side.bytes for side in sides), ", ".join(side.text for side in sides),
            max(degrees, default=None), [why] if why else [],
        )  # fmt: skip

    def _operand(self, name: str, value: Value) -> _Side:
        op = value.op
        if isinstance(op, PartOp):
            return self._operand(name, op.x)
        if isinstance(op, ReadOp):
            instruction, access = reads_of(op)
            start = "registers -> " if is_scratch(alloc_of(op.buffer)) else ""
            text = f"{name}: {start}shared -> registers by {_short(instruction)}"
            return _Side(text, access.bits // 8, access.degree)
        return _in_registers(name, value)

    def wgmma(self, op: WgmmaOp) -> Iterator[OpRow]:
        """A dot by wgmma."""
        names = "BA" if op.swapped else "AB"
        operands = zip(names, instruction_operands(op), shared_operands(op), strict=True)
        sides = sorted((_described(*each) for each in operands), key=lambda side: side.text)
        warps = layout_of(op.result).in_size(WARP)
        instruction = f"wgmma.mma_async.{block_of(op, warps).name}"
        notes = [note for side in sides for note in side.notes]
        degrees = [side.degree for side in sides if side.degree]
        yield self._row(
            op, "dot", op.type, instruction, max(side.bytes for side in sides),
            ", ".join(side.text for side in sides), max(degrees, default=None), notes,
        )  # fmt: skip

    def fma(self, op: SharedFmaDotOp) -> Iterator[OpRow]:
        """A dot without tensor cores."""
        why = self.obstacles.get(op.loc, "")
        through = "A, B: registers -> shared -> registers"
        yield self._row(op, "dot", op.type, "fma", 0, through, notes=[why] if why else [])

    # ---- shared memory ---------------------------------------------------------------------------

    def convert(self, op: ConvertOp) -> Iterator[OpRow]:
        """A conversion by shuffles; those through memory have the rows of their writes."""
        chosen = conversion(op, self.arch.stmatrix)
        if isinstance(chosen, WarpShuffle):
            how = f"{chosen.exchange.shuffles} shfl.sync.idx"
            cause = conversion_cause(op, op.x, op.results)
            yield self._row(
                op, "convert", op.type, how, 4, "registers of other lanes", notes=[cause]
            )

    def write(self, op: ShareOp | WriteOp) -> Iterator[OpRow]:
        """Registers that are written to a buffer: for dots, or for other threads, such as partial
        results of a reduction."""
        buffer = op.result if isinstance(op, ShareOp) else op.buffer
        type_, through = buffer_type(buffer), "registers -> shared"
        read = next((user for user in buffer.uses if isinstance(user, ReadOp)), None)
        scratch = is_scratch(alloc_of(buffer))
        if scratch and (read is None or any(isinstance(u, CountOp) for u in buffer.uses)):
            return  # of a gather, a histogram, a dot
        accesses = [write_access(op.x, type_, self.arch.stmatrix)]
        if scratch and read is not None:
            accesses.append(read_access(type_, layout_of(read.result), read.axis))
            through = f"{through} ({type_.bytes} bytes) -> registers"
        names = [
            shared_instruction(access, type_.element, store=number == 0)
            for number, access in enumerate(accesses)
        ]
        narrow = min(access.bits for access in accesses) // 8
        degree = max(access.degree for access in accesses)
        kind = "reduce" if isinstance(op.x.op, ReduceOp) else "convert"
        notes = list[str]()
        if kind == "convert" and scratch:
            users = users_of(alloc_of(buffer).results[0])
            after = [user.result for user in users if isinstance(user, ReadOp)]
            notes.append(conversion_cause(op, op.x, after))
        yield self._row(op, kind, op.x.type, ", ".join(names), narrow, through, degree, notes)

    @staticmethod
    def _row(
        op: Op,
        kind: str,
        type_: Type,
        how: str,
        size: int,
        through: str,
        conflicts: int | None = None,
        notes: Sequence[str] = (),
    ) -> OpRow:
        return OpRow(
            op.loc, kind, _tile(type_), _short(how), size, through, conflicts, tuple(notes)
        )


@dataclass(frozen=True, slots=True)
class _Side:
    """The source of an operand of a dot. bytes, degree: of the reads of shared memory into
    registers; notes: on possible improvements."""

    text: str
    bytes: int = 0
    degree: int | None = None
    notes: tuple[str, ...] = ()


def _described(name: str, value: Value, operand: WgmmaOperand | None) -> _Side:
    """The source of a wgmma operand, with notes on possible improvements."""
    if operand is None:
        return _in_registers(name, value)
    major = "K" if operand.k_major else "M" if name == "A" else "N"
    text = f"{name}: shared, {major}-major, {operand.swizzle}-byte swizzle"
    if operand.swizzle == _SWIZZLE_BYTES:
        return _Side(text)
    return _Side(text, notes=(f"rows of {name} have fewer than {_SWIZZLE_BYTES} bytes",))


def _in_registers(name: str, value: Value) -> _Side:
    """The source of an operand in registers."""
    source = operand_source(value)
    bits = min((access.bits for access in source.accesses), default=0)
    degree = max((access.degree for access in source.accesses), default=None)
    return _Side(f"{name}: {source.text(dtype_of(value.type))}", bits // 8, degree)


def _parent(op: Op) -> object:
    return None if op.parent is None else op.parent.owner


_KINDS: dict[type[Op], Callable[[_Explainer, Any], Iterator[OpRow]]] = {
    LoadOp: _Explainer.load,
    AsyncCopyOp: _Explainer.copy,
    BulkCopyOp: _Explainer.bulk_copy,
    StoreOp: _Explainer.store,
    DescriptorStoreOp: _Explainer.bulk_store,
    DescriptorReduceOp: _Explainer.bulk_store,
    DotOp: _Explainer.dot,
    WgmmaOp: _Explainer.wgmma,
    SharedFmaDotOp: _Explainer.fma,
    ConvertOp: _Explainer.convert,
    ShareOp: _Explainer.write,
    WriteOp: _Explainer.write,
}
