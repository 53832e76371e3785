"""Ops of the Tensor Memory Accelerator (TMA), with their NumPy rules: copies of whole blocks.

    %m = nvidia.mbarriers : buffer<4 * 1xu64, ...>               one for each slot of a buffer
    %x = mem.descriptor_load %p, ... {bulk = true}               the block: emits nothing
    nvidia.bulk_copy %x, %slot, %barrier, %runs                  one thread issues the load
    nvidia.mbarrier_wait %barrier, %parity                       all threads see the block
    nvidia.mbarrier_arrive %barrier, %runs                       each warp releases the slot

    nvidia.write_panel %x {number = 0}                           part of a tile is in shared memory
    nvidia.store_panel %p, %x, ... {number = 0}                  one thread issues the store
    nvidia.write_panel %x {number = 1}
    mem.descriptor_store %p, %x, ... {bulk = true}               the last part: of the whole tile
    nvidia.bulk_store_wait                                       TMA has read shared memory
    nvidia.bulk_store_wait {complete = true}                     and written global memory

A phase of a barrier completes when all its arrivals, and all announced bytes, have come; phases
count from 0, and `parity` is the lowest bit of the number of the phase to wait for.
"""

from __future__ import annotations

from threading import Condition
from typing import Any

from tilewright.backends.nvidia.buffer_ops import BufferMemory, buffer_type
from tilewright.backends.nvidia.operand_checks import buffer_problem, other_tile
from tilewright.ir import (
    Effect,
    Op,
    Value,
    attr,
    boolean,
    buffer,
    operand,
    optional_operand,
    reference,
    scalar_integer,
    tile,
    variadic,
)
from tilewright.ir.types import Type
from tilewright.ops import DescriptorAccess
from tilewright.support import errors


class MbarriersOp(Op, opcode="nvidia.mbarriers", effects=(Effect.SHARED,)):
    """result = new mbarriers, one in each slot: phase 0 is current, and waits for `arrivals`

    in_cluster: for that number from each block of the cluster.
    """

    result_type: Type = attr()
    arrivals: int = attr(default=1)
    in_cluster: bool = attr(default=False)

    def verify(self) -> str | None:
        if self.arrivals < 1:
            return f"a phase waits for one arrival or more, not {self.arrivals}"
        return buffer_problem(self.result_type)


class BulkCopyOp(Op, opcode="nvidia.bulk_copy", effects=(Effect.SHARED,)):
    """If it runs: target = x, a block of an array; its arrival completes the barrier's phase.

    is_shared: whether the other block of the cluster issues the same load: then each multicasts one
    half to both.
    """

    x: Value = operand(tile)
    target: Value = operand(buffer)
    barrier: Value = operand(buffer)
    runs: Value = operand(boolean)
    is_shared: Value | None = optional_operand(boolean, default=None)

    def verify(self) -> str | None:
        return other_tile(self.target.type, self.x.type)


class MbarrierWaitOp(Op, opcode="nvidia.mbarrier_wait", effects=(Effect.SHARED,)):
    """The phase of this parity is complete; the phase before the first one is."""

    barrier: Value = operand(buffer)
    parity: Value = operand(scalar_integer)


class MbarrierArriveOp(Op, opcode="nvidia.mbarrier_arrive", effects=(Effect.SHARED,)):
    """If it runs: each warp of the role arrives; the barrier waits for as many.

    Shared memory that the warps have read before, also by completed dots, may be overwritten once
    the phase is complete. in_both: the warps arrive at this barrier of both blocks of a cluster;
    where the condition does not hold, twice at their own.
    """

    barrier: Value = operand(buffer)
    runs: Value = operand(boolean)
    in_both: Value | None = optional_operand(boolean, default=None)


class WritePanelOp(Op, opcode="nvidia.write_panel", effects=(Effect.SHARED,)):
    """Shared memory = panel `number` of the tile, from which TMA stores it

    block_shape: of the store; see store_panels.py.
    """

    stored: Value = operand(tile)
    block_shape: tuple[int, ...] = attr()
    number: int = attr()


class StorePanelOp(
    DescriptorAccess, opcode="nvidia.store_panel", effects=(Effect.SHARED, Effect.WRITE)
):
    """TMA stores panel `number` of the tile, which is in shared memory

    The last panel is that of the `mem.descriptor_store` or `mem.descriptor_reduce` (of this kind).
    """

    stored: Value = operand(tile)
    numbers: tuple[Value, ...] = variadic(scalar_integer)
    block_shape: tuple[int, ...] = attr()
    number: int = attr()
    kind: str = attr(default="")


class BulkStoreWaitOp(Op, opcode="nvidia.bulk_store_wait", effects=(Effect.SHARED,)):
    """TMA has read shared memory for all stores of a thread, and if `complete`, written global
    memory: other threads see that after a barrier."""

    complete: bool = attr(default=False)


class ProxyFenceOp(Op, opcode="nvidia.proxy_fence", effects=(Effect.SHARED,)):
    """A thread's writes to global memory, or if `shared` to shared memory, come before TMA accesses
    that are issued after the next barrier."""

    shared: bool = attr(default=False)


PATIENCE = 10.0
"""Seconds after which NumPy rules report a phase as one that never completes."""


class Phases:
    """The phases of a barrier in NumPy rules. needed: arrivals of a phase."""

    def __init__(self, needed: int) -> None:
        self._needed, self._arrived = needed, 0
        self._changed = Condition()

    def arrive(self, count: int | None = None) -> None:
        """Arrive. count: of arrivals; None: all of a phase."""
        with self._changed:
            self._arrived += self._needed if count is None else count
            self._changed.notify_all()

    def wait(self, parity: int) -> None:
        """Wait until the phase of this parity is complete, and another one is current."""
        with self._changed:
            over = self._changed.wait_for(
                lambda: self._arrived // self._needed & 1 != parity, PATIENCE
            )
        if not over:
            raise errors.InterpreterError("a barrier waits for a phase that does not end")


@reference(MbarriersOp)
def mbarriers(op: MbarriersOp) -> Any:
    """The phases of each barrier."""
    return BufferMemory([Phases(op.arrivals) for _ in range(buffer_type(op.result).slots)])


@reference(BulkCopyOp)
def bulk_copy(
    op: BulkCopyOp, x: Any, memory: Any, barrier: Any, runs: Any, is_shared: Any = None
) -> tuple[()]:
    """Copied immediately, by each block for itself."""
    if runs:
        memory.item().write(x)
        barrier.item().read().arrive(1)
    return ()


@reference(MbarrierWaitOp)
def mbarrier_wait(op: MbarrierWaitOp, barrier: Any, parity: Any) -> tuple[()]:
    """Another role may have to arrive first."""
    barrier.item().read().wait(int(parity))
    return ()


@reference(MbarrierArriveOp)
def mbarrier_arrive(
    op: MbarrierArriveOp, barrier: Any, runs: Any, in_both: Any = None
) -> tuple[()]:
    """All warps arrive together."""
    if runs:
        barrier.item().read().arrive()
    return ()


@reference(WritePanelOp, StorePanelOp, BulkStoreWaitOp, ProxyFenceOp)
def store_in_parts(op: Op, *inputs: Any) -> tuple[()]:
    """Nothing: the op of the last panel stores the whole tile, immediately."""
    return ()
