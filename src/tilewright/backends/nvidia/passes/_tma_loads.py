"""Conditions under which TMA issues a descriptor load: it feeds only wgmma, in a loop.

The operands of the loop fit into shared memory twice, and nothing orders the load within its
iteration. In nested loops a producer warp issues the loads.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import ShareOp, buffer_type, transposed_buffer
from tilewright.backends.nvidia.layouts.operand_chains import carried_tile, makes_register_operands
from tilewright.backends.nvidia.layouts.store_panels import PASS_BYTES, SLOTS
from tilewright.backends.nvidia.schedule.producer_slice import has_producer, is_nested
from tilewright.backends.nvidia.schedule.schedule_loop import (
    AheadLoad,
    Load,
    bulk_load_runs_ahead,
    feeds_dots,
    readers,
)
from tilewright.backends.nvidia.shared_memory.shared_accesses import MOST_BYTES
from tilewright.backends.nvidia.tensor_map_sources import load_map, panelled_buffers
from tilewright.ir import Function, Op
from tilewright.ir.types import BufferType, TileType, element_of
from tilewright.ops import (
    DescriptorLoadOp,
    DescriptorStoreOp,
    ForOp,
    StoreOp,
)
from tilewright.support.data_class import dataclass

_LEAST_SLOTS = 2

_OTHER_BYTES = 16 * 1024
"""Shared memory for exchanges in the loop and for the alignment of buffers."""


@dataclass(frozen=True)
class TmaLoads:
    """The decision which marked loads TMA issues.

    stages: slots of a buffer in loops without a number of their own; capability: of the
    architecture; roles: whether a producer warp may issue loads, as nested loops need it
    """

    stages: int = 3
    capability: int = 90
    roles: bool = True

    def obstacles(self, function: Function) -> dict[DescriptorLoadOp, str]:
        """For each marked load the reason why TMA does not issue it, "" if TMA does."""
        loads = [op for op in function.walk() if isinstance(op, DescriptorLoadOp) and op.bulk]
        found = {op: self._obstacle(op, function) for op in loads}
        made = [op for op in loads if not found[op]]
        nested = [op for op in made if is_nested(function, [op])]
        if nested and self._has_producer(function, made):
            return found
        # Without a producer, barriers are allocated once, right before the loop.
        found |= dict.fromkeys(nested, "its loop is nested, and no producer warp can issue it")
        around = [op for op in made if op not in nested and _has_copies_inside(parent_op(op))]
        return found | dict.fromkeys(around, "a loop nested in its loop has copies of its own")

    def _has_producer(self, function: Function, loads: Sequence[DescriptorLoadOp]) -> bool:
        arch = row_for(self.capability)
        if not (self.roles and arch.setmaxnreg and has_producer(function, loads)):
            return False
        # Its buffers share no bytes with the exchanges of stores.
        exchanged = max(map(_exchanged_bytes, function.walk()), default=0)
        loops = {
            tuple(bulk_buffer(op) for op in loads if parent_op(op) is loop): loop
            for loop in map(parent_op, loads)
        }
        buffers = (buffer for of_loop in loops for buffer in of_loop if buffer is not None)
        copied = _LEAST_SLOTS * sum(buffer.bytes for buffer in buffers)
        return copied + max(exchanged, _OTHER_BYTES) <= arch.shared_optin

    def _obstacle(self, op: DescriptorLoadOp, function: Function) -> str:
        """The reason that is independent of other loads."""
        loop, buffer = parent_op(op), bulk_buffer(op)
        assert isinstance(loop, ForOp)
        if (self.stages if loop.stages is None else loop.stages) < _LEAST_SLOTS:
            return "num_stages is less than 2"
        if buffer is None:
            return "not only wgmma reads it"
        if load_map(op, buffer, function.args) is None:
            return "its box has more than 256 rows, or its buffer no TMA swizzle"
        if not bulk_load_runs_ahead(loop, op):
            return "a store, a barrier or a load orders it within its iteration"
        return "" if self._has_room(loop) else "the operands of the loop do not fit twice"

    def _has_room(self, loop: ForOp) -> bool:
        """Whether all operands of a loop's dots fit twice, with other uses of shared memory."""
        buffers = (buffer_type(op.result) for op in loop.walk() if isinstance(op, ShareOp))
        room = row_for(self.capability).shared_optin - _OTHER_BYTES
        return _LEAST_SLOTS * sum(buffer.bytes for buffer in buffers) <= room


def _has_copies_inside(loop: object) -> bool:
    """Whether a nested loop may copy ahead: then the outer one does not."""
    assert isinstance(loop, ForOp)
    loads = (op for op in loop.walk() if isinstance(op, Load) and parent_op(op) is not loop)
    return any(feeds_dots(carried_tile(op) or op.result) for op in loads)


def _exchanged_bytes(op: Op) -> int:
    """Upper bound of the shared memory through which an op stores: a tile, or panels of it."""
    if not isinstance(op, StoreOp | DescriptorStoreOp) or not isinstance(op.stored.type, TileType):
        return 0
    size = op.stored.type.numel * element_of(op.stored.type).bytes
    return min(size, SLOTS * PASS_BYTES if op.attrs.get("bulk") else MOST_BYTES)


def parent_op(op: Op) -> object:
    """The op or function that contains an op."""
    return op.parent.owner if op.parent is not None else None


def bulk_buffer(op: Load) -> BufferType | None:
    """The buffer from which wgmma reads a load, or threads that compute register operands; None if
    other ops use the load as well."""
    if isinstance(op.type, TileType) and makes_register_operands(op):
        is_matrix = len(op.type.shape) == 2
        return next(panelled_buffers(op.type), None) if is_matrix else None
    found = readers(AheadLoad(op, 0))
    users = set[Op](reader.op for reader in found)
    through = [u for u in op.result.uses if u not in users]
    if not found or not all(_is_read_by(u, users) for u in through):
        return None
    types: set[BufferType] = set()
    for reader in found:
        if not isinstance(reader.op, ShareOp):
            return None
        type_ = buffer_type(reader.op.result)
        if reader.order is not None:
            inverse = [reader.order.index(dim) for dim in range(len(reader.order))]
            type_ = transposed_buffer(type_, inverse)
        types.add(type_)
    return types.pop() if len(types) == 1 else None


def _is_read_by(op: Op, users: set[Op]) -> bool:
    """Whether an op only passes a load on to its readers: a loop that carries it does not."""
    return len(op.results) == 1 and all(user in users for user in op.results[0].uses)
