"""Ops of the copy engine (TMA), with their NumPy rules: whole blocks of arrays to shared memory.

    %m = nvidia.mbarriers : buffer<4 * 1xu64, ...>               one for each slot of a buffer
    %x = mem.descriptor_load %p, ... {bulk = true}               what is copied: emits nothing
    nvidia.bulk_copy %x, %slot, %barrier, %runs                  one thread asks for it
    nvidia.mbarrier_wait %barrier, %parity                       it is there, for all threads

A barrier's phase ends when all bytes that were announced have arrived; phases count from 0, and
`parity` is the lowest bit of the number of the one that is waited for.
"""

from __future__ import annotations

from typing import Any

from tilewright.backends.nvidia.buffer_ops import BufferMemory, buffer_type
from tilewright.ir import (
    Effect,
    Op,
    Value,
    attr,
    boolean,
    buffer,
    operand,
    reference,
    scalar_integer,
    tile,
)
from tilewright.ir.types import Type


class MbarriersOp(Op, opcode="nvidia.mbarriers", effects=(Effect.SHARED,)):
    """result = new mbarriers, one in each slot: phase 0 has begun, and waits for one arrival"""

    result_type: Type = attr()

    def infer(self) -> Type:
        return self.result_type


class BulkCopyOp(Op, opcode="nvidia.bulk_copy", effects=(Effect.SHARED,)):
    """If it runs: target = x, a block of an array; the barrier's phase ends when it is there."""

    x: Value = operand(tile)
    target: Value = operand(buffer)
    barrier: Value = operand(buffer)
    runs: Value = operand(boolean)

    def infer(self) -> None:
        return None


class MbarrierWaitOp(Op, opcode="nvidia.mbarrier_wait", effects=(Effect.SHARED,)):
    """The phase of this parity has ended."""

    barrier: Value = operand(buffer)
    parity: Value = operand(scalar_integer)

    def infer(self) -> None:
        return None


@reference(MbarriersOp)
def mbarriers(op: MbarriersOp) -> Any:
    """Of each barrier the phases that have ended."""
    return BufferMemory([0] * buffer_type(op.result).slots)


@reference(BulkCopyOp)
def bulk_copy(op: BulkCopyOp, x: Any, memory: Any, barrier: Any, runs: Any) -> tuple[()]:
    """Copied at once."""
    if runs:
        memory.item().write(x)
        barrier.item().write(barrier.item().read() + 1)
    return ()


@reference(MbarrierWaitOp)
def mbarrier_wait(op: MbarrierWaitOp, barrier: Any, parity: Any) -> tuple[()]:
    """Nothing to wait for: the phase must have been the last one."""
    ended = barrier.item().read()
    assert ended and (ended - 1) & 1 == int(parity), "waits for another phase than the last one"
    return ()
