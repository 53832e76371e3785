"""Barriers where threads may meet in shared memory.

    %x = nvidia.convert %a           %x = nvidia.convert %a      writes, barrier, reads bytes 0-8191
                              ->     mem.barrier
    %y = nvidia.convert %b           %y = nvidia.convert %b      writes, barrier, reads bytes 0-8191

Walks the program with the bytes that threads have read or written since the last barrier, and puts
one before an op that would write what others may still read, or read what they have written. An
exchange has its own barrier between its writes and its reads, see shared_usage.py.

A copy into a ring is in flight from `nvidia.async_copy` on. `nvidia.wait` makes those that may have
arrived writes of the thread that waits, which others see after a barrier. In one iteration a ring
is filled and read at different slots, so these do not meet; but a slot is filled again after it was
read in an earlier iteration.

A loop is walked until what is pending at its end adds nothing to what is pending at its start. If
what comes before the loop alone makes a barrier in it necessary, one stands before the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.lower.allocate_shared import allocate_shared
from tilewright.backends.nvidia.lower.shared_usage import (
    Machine,
    exchange_bytes,
    ring_of,
    rings_read,
    tile_bytes,
)
from tilewright.backends.nvidia.ops import AsyncCopyOp, RingOp, WaitOp
from tilewright.ir import Block, Builder, Function, Op, Pass
from tilewright.ops import AssertOp, BarrierOp, ForOp, IfOp, WhileOp
from tilewright.support.fresh_stack import nested


class Kind(Enum):
    """What was done to bytes of shared memory."""

    READ = "read"
    WRITTEN = "written"
    IN_FLIGHT = "being written by a copy"


@dataclass(frozen=True, slots=True)
class Use:
    """Bytes [first, end) that some thread has used since the last barrier.

    ring: whose slots these are; earlier: in an earlier iteration of a loop.
    """

    kind: Kind
    first: int
    end: int
    ring: Op | None = None
    earlier: bool = False

    def overlaps(self, other: Use) -> bool:
        """Whether both have a byte in common."""
        return self.first < other.end and other.first < self.end

    def forbids(self, following: Use) -> bool:
        """Whether a barrier must stand between this use and one that follows."""
        if not self.overlaps(following):
            return False
        same_ring = self.ring is not None and self.ring is following.ring
        if following.kind is Kind.READ:
            return self.kind is Kind.WRITTEN
        if same_ring:
            # In one iteration a ring is filled and read at different slots.
            return self.earlier and self.kind is not Kind.IN_FLIGHT
        assert self.kind is not Kind.IN_FLIGHT, "bytes of a ring are used before its copies arrived"
        return True


Pending = frozenset[Use]


@dataclass(frozen=True)
class InsertSharedBarriers(Pass, name="nvidia-insert-shared-barriers"):
    """Insert barriers where threads may meet in shared memory.

    warps: of a program instance; capability: of the architecture.
    """

    warps: int = 4
    capability: int = 90

    def run(self, function: Function) -> bool:
        machine = Machine.of(row_for(self.capability), self.warps)
        offsets, _ = allocate_shared(function, machine)
        barriers = _Ordering(machine, offsets).block(function.body, frozenset()).barriers
        for op in barriers:
            Builder.at(op).emit(BarrierOp())
        return bool(barriers)


@dataclass(frozen=True, slots=True)
class _Walked:
    """barriers: ops before which one is needed; pending: after the last op."""

    barriers: frozenset[Op]
    pending: Pending


class _Ordering:
    """The walk through a function whose ops have offsets in shared memory."""

    def __init__(self, machine: Machine, offsets: Mapping[Op, int]) -> None:
        self._machine, self._offsets = machine, offsets
        self._relevant: dict[Block, list[Op]] = {}
        self._walked: dict[tuple[Op, Pending], _Walked] = {}

    @nested
    def block(self, block: Block, pending: Pending) -> _Walked:
        """Walk the ops of a block."""
        barriers = frozenset[Op]()
        for op in self._ops(block):
            walked = self._op(op, pending)
            barriers, pending = barriers | walked.barriers, walked.pending
        return _Walked(barriers, pending)

    def _op(self, op: Op, pending: Pending) -> _Walked:
        if isinstance(op, ForOp | WhileOp):
            return self._loop(op, pending)
        if isinstance(op, IfOp):
            ends = [self.block(inner, pending) for inner in op.regions]
            barriers = frozenset[Op]().union(*(end.barriers for end in ends))
            return _Walked(barriers, frozenset[Use]().union(*(end.pending for end in ends)))
        if isinstance(op, BarrierOp | AssertOp):  # threads agree whether an assertion fails
            return _Walked(frozenset(), _after_barrier(pending))
        if isinstance(op, WaitOp):
            return _Walked(frozenset(), _after_wait(op, pending))
        return self._use(op, pending)

    def _use(self, op: Op, pending: Pending) -> _Walked:
        uses = self._uses(op)
        barriers = frozenset[Op]()
        if any(earlier.forbids(use) for earlier in pending for use in uses):
            barriers, pending = frozenset((op,)), _after_barrier(pending)
        if op in self._offsets and not isinstance(op, RingOp):
            reads = (replace(use, kind=Kind.READ) for use in uses)  # after a barrier of its own
            return _Walked(barriers, _after_barrier(pending).union(reads))
        return _Walked(barriers, pending.union(uses))

    def _uses(self, op: Op) -> list[Use]:
        """What an op does first: an exchange writes."""
        if isinstance(op, AsyncCopyOp):
            return [self._ring(Kind.IN_FLIGHT, ring_of(op.ring))]
        size = exchange_bytes(op, self._machine)
        if size:
            first = self._offsets[op]
            return [Use(Kind.WRITTEN, first, first + size)]
        return [self._ring(Kind.READ, ring) for ring in rings_read(op)]

    def _ring(self, kind: Kind, ring: RingOp) -> Use:
        first = self._offsets[ring]
        return Use(kind, first, first + tile_bytes(ring.type), ring)

    # -- loops ----------------------------------------------------------------------------------

    def _loop(self, loop: ForOp | WhileOp, pending: Pending) -> _Walked:
        walked = self._walk_loop(loop, pending)
        # a barrier before the loop is cheaper than one in each iteration
        in_flight = _after_barrier(pending)
        if in_flight != pending:
            alone = self._walk_loop(loop, in_flight)
            if len(alone.barriers) < len(walked.barriers):
                return _Walked(alone.barriers.union((loop,)), alone.pending)
        return walked

    def _walk_loop(self, loop: ForOp | WhileOp, pending: Pending) -> _Walked:
        """Walk the loop with what earlier iterations leave pending, once for each start."""
        # Outer loops walk inner ones in each round: without this, visits multiply with depth.
        walked = self._walked.get((loop, pending))
        if walked is None:
            walked = self._walked[loop, pending] = self._walk_to_fixpoint(loop, pending)
        return walked

    def _walk_to_fixpoint(self, loop: ForOp | WhileOp, pending: Pending) -> _Walked:
        start = pending
        while True:
            barriers, end, exits = frozenset[Op](), start, start
            for region in loop.regions:
                walked = self.block(region, end)
                barriers, end = barriers | walked.barriers, walked.pending
                exits = end if region is loop.regions[0] else exits
            # grows in each round, within the uses of the loop and of what precedes it: so it ends
            following = start | {replace(use, earlier=True) for use in end}
            if following == start:
                # A while loop is left behind its condition, a for loop before or after iterations.
                return _Walked(barriers, exits if isinstance(loop, WhileOp) else start | end)
            start = following

    @nested
    def _ops(self, block: Block) -> list[Op]:
        """Those that use shared memory, or order it, or contain such."""
        ops = self._relevant.get(block)
        if ops is None:
            # Fixpoints walk blocks many times: most ops have nothing to do with shared memory.
            ops = [op for op in block if self._matters(op)]
            self._relevant[block] = ops
        return ops

    def _matters(self, op: Op) -> bool:
        if isinstance(op, ForOp | WhileOp | IfOp):
            return any([self._ops(region) for region in op.regions])
        if isinstance(op, BarrierOp | AssertOp | WaitOp | AsyncCopyOp) or op in self._offsets:
            return True
        return bool(rings_read(op))


def _after_barrier(pending: Pending) -> Pending:
    # A barrier waits for threads, not for their asynchronous copies.
    return frozenset(use for use in pending if use.kind is Kind.IN_FLIGHT)


def _after_wait(wait: WaitOp, pending: Pending) -> Pending:
    """Copies that have arrived are writes; the latest ones may still be in flight."""
    arrived = {replace(use, kind=Kind.WRITTEN) for use in pending if use.kind is Kind.IN_FLIGHT}
    # With `pending` > 0 it is not known which copies are done: they count as both.
    kept = _after_barrier(pending) if wait.pending else frozenset[Use]()
    return frozenset(use for use in pending if use.kind is not Kind.IN_FLIGHT) | arrived | kept
