"""Chooses the loads by tensor descriptors that the copy engine makes.

    %x = mem.descriptor_load %p, %m, ...    ->    %x = mem.descriptor_load %p, %m, ... {bulk = true}

In two steps, since expanded loads are simplified like others. `nvidia-select-bulk-loads` comes
before the expansion and keeps the loads whose arrays the launch describes: base, shape and strides
are parameters with the alignment that the copy engine wants. Behind the choice of products
`nvidia-check-bulk-loads` gives up those that do not go to products of warpgroups alone, in a loop
that makes them ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import ShareOp, buffer_type, transposed_buffer
from tilewright.backends.nvidia.layouts.operand_chains import carried_tile, makes_register_operands
from tilewright.backends.nvidia.layouts.store_panels import PASS_BYTES, SLOTS
from tilewright.backends.nvidia.schedule.producer_slice import has_producer, is_nested
from tilewright.backends.nvidia.schedule.schedule_loop import (
    AheadLoad,
    Load,
    bulk_load_runs_ahead,
    feeds_products,
    readers,
)
from tilewright.backends.nvidia.shared_memory.shared_accesses import MOST_BYTES
from tilewright.backends.nvidia.tensor_map_sources import launch_number, load_map, panelled_buffers
from tilewright.ir import Function, Op, Pass, Value
from tilewright.ir.types import BufferType, TileType, element_of
from tilewright.ops import (
    DescriptorAccess,
    DescriptorLoadOp,
    DescriptorStoreOp,
    ForOp,
    StoreOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms import Canonicalize

MAP_ALIGNMENT = 16
"""Bytes: of an array and of its strides (cuTensorMapEncodeTiled)."""

_LEAST_SLOTS = 2

_OTHER_BYTES = 16 * 1024
"""Of shared memory, for exchanges in the loop and for what buffers are aligned to."""


@dataclass(frozen=True)
class SelectBulkLoads(Pass, name="nvidia-select-bulk-loads"):
    """Keep the loads that the copy engine could make. capability: of the architecture."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        if not row_for(self.capability).tma:
            return False
        loads = [op for op in function.walk() if isinstance(op, DescriptorLoadOp)]
        if not loads:
            return False
        # Offsets by 0 and the like hide parameters; only here, as few kernels have descriptors.
        Canonicalize().run(function)
        loads = [op for op in function.walk() if isinstance(op, DescriptorLoadOp)]
        facts = analyze_alignment(function)
        chosen = [op for op in loads if _is_loaded(op, function, facts)]
        for op in chosen:
            op.attrs["bulk"] = True
        return True


def _is_loaded(op: DescriptorLoadOp, function: Function, facts: dict[Value, Alignment]) -> bool:
    """Whether the launch describes a matrix as the copy engine needs it, and a loop loads it."""
    if op.rank != 2 or op.padding != "zero" or not isinstance(_owner(op), ForOp):
        return False
    return is_described(op, function, facts)


def is_described(op: DescriptorAccess, function: Function, facts: dict[Value, Alignment]) -> bool:
    """Whether the launch describes an array as the copy engine needs it."""
    numbers = (op.pointer, *op.shape, *op.strides)
    if any(launch_number(value, function.args) is None for value in numbers):
        return False
    size = op.element.bytes
    is_aligned = facts[op.pointer].divisibility[0] >= MAP_ALIGNMENT
    return is_aligned and all(facts[v].every * size >= MAP_ALIGNMENT for v in op.strides)


def _exchanged_bytes(op: Op) -> int:
    """At most what goes through shared memory to be stored: tiles, or panels of them."""
    if not isinstance(op, StoreOp | DescriptorStoreOp) or not isinstance(op.stored.type, TileType):
        return 0
    size = op.stored.type.numel * element_of(op.stored.type).bytes
    return min(size, SLOTS * PASS_BYTES if op.attrs.get("bulk") else MOST_BYTES)


def _owner(op: Op) -> object:
    """What a load is in: a loop, a branch, or the function."""
    return op.parent.owner if op.parent is not None else None


def _has_copies_inside(loop: object) -> bool:
    """Whether a loop inside of a loop may copy ahead: then the one around it does not."""
    assert isinstance(loop, ForOp)
    loads = (op for op in loop.walk() if isinstance(op, Load) and _owner(op) is not loop)
    return any(feeds_products(carried_tile(op) or op.result) for op in loads)


@dataclass(frozen=True)
class CheckBulkLoads(Pass, name="nvidia-check-bulk-loads"):
    """Give up loads that the copy engine does not make after all.

    stages: slots of a buffer in loops that do not say; capability: of the architecture; roles:
    whether a producer may ask for copies, as those in loops inside of others need it.
    """

    stages: int = 3
    capability: int = 90
    roles: bool = True

    def run(self, function: Function) -> bool:
        given_up = [op for op, obstacle in self.obstacles(function).items() if obstacle]
        for op in given_up:
            op.attrs["bulk"] = False
        return bool(given_up)

    def obstacles(self, function: Function) -> dict[DescriptorLoadOp, str]:
        """Why the copy engine does not make each of the loads that were selected; "" if it does."""
        loads = [op for op in function.walk() if isinstance(op, DescriptorLoadOp) and op.bulk]
        found = {op: self._obstacle(op, function) for op in loads}
        made = [op for op in loads if not found[op]]
        nested = [op for op in made if is_nested(function, [op])]
        if nested and self._has_producer(function, made):
            return found
        # Without a producer barriers are made right before a loop, once.
        found |= dict.fromkeys(nested, "in a loop in a loop no warps can be spared to ask for it")
        around = [op for op in made if op not in nested and _has_copies_inside(_owner(op))]
        return found | dict.fromkeys(around, "a loop inside of its loop has copies of its own")

    def _has_producer(self, function: Function, loads: Sequence[DescriptorLoadOp]) -> bool:
        arch = row_for(self.capability)
        if not (self.roles and arch.setmaxnreg and has_producer(function, loads)):
            return False
        # Its buffers share no bytes with what stores exchange.
        exchanged = max(map(_exchanged_bytes, function.walk()), default=0)
        loops = {
            tuple(bulk_buffer(op) for op in loads if _owner(op) is loop): loop
            for loop in map(_owner, loads)
        }
        buffers = (buffer for of_loop in loops for buffer in of_loop if buffer is not None)
        copied = _LEAST_SLOTS * sum(buffer.bytes for buffer in buffers)
        return copied + max(exchanged, _OTHER_BYTES) <= arch.shared_optin

    def _obstacle(self, op: DescriptorLoadOp, function: Function) -> str:
        """Of a load by itself."""
        loop, buffer = _owner(op), bulk_buffer(op)
        assert isinstance(loop, ForOp)
        if (self.stages if loop.stages is None else loop.stages) < _LEAST_SLOTS:
            return "num_stages is less than 2"
        if buffer is None:
            return "not only products of warpgroups use it"
        if load_map(op, buffer, function.args) is None:
            return "its box has more than 256 rows, or the buffer no swizzle of the copy engine"
        if not bulk_load_runs_ahead(loop, op):
            return "a store, a barrier or a load binds it to its iteration"
        return "" if self._has_room(loop) else "the operands of the loop do not fit twice"

    def _has_room(self, loop: ForOp) -> bool:
        """Whether all operands of a loop's products fit twice, beside what else the loop keeps."""
        buffers = (buffer_type(op.result) for op in loop.walk() if isinstance(op, ShareOp))
        room = row_for(self.capability).shared_optin - _OTHER_BYTES
        return _LEAST_SLOTS * sum(buffer.bytes for buffer in buffers) <= room


def bulk_buffer(op: Load) -> BufferType | None:
    """The buffer that products read a load from, or threads for operands in registers; None if
    others use it, too."""
    if isinstance(op.type, TileType) and makes_register_operands(op):
        is_matrix = len(op.type.shape) == 2
        return next(panelled_buffers(op.type), None) if is_matrix else None
    found = readers(AheadLoad(op, 0))
    users = set[Op](reader.op for reader in found)
    through = [u for u in op.result.uses if u not in users]
    if not found or any(user not in users for op_ in through for user in op_.results[0].uses):
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
