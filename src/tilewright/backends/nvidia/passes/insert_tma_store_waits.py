"""Insert waits for TMA stores, as late as possible.

    mem.descriptor_store %p, %x, ... {bulk}        mem.descriptor_store %p, %x, ... {bulk}
                                                   nvidia.bulk_store_wait
                                                   mem.barrier
    mem.descriptor_store %q, %y, ... {bulk}   ->   mem.descriptor_store %q, %y, ... {bulk}
                                                   nvidia.bulk_store_wait {complete = true}
                                                   mem.barrier
    %z = mem.load (%p + ...)                       %z = mem.load (%p + ...)
    cf.return                                      cf.return

All TMA stores of a kernel share a buffer, so TMA must have read it before the next store, and
before the program exits. Global memory must have been written before another access through the
same pointer, except stores of disjoint blocks, before a release, and before the next store of the
same block in a loop. Stores of threads through a pointer need a fence before a TMA store. Accesses
through different pointers are taken to be disjoint, as elsewhere (insert_global_barriers.py).
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.analysis import affine, roots
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp, BulkStoreWaitOp, ProxyFenceOp
from tilewright.backends.nvidia.role_ops import RolesOp
from tilewright.ir import Block, Builder, Function, Op, Pass, Value
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    BarrierOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
    ForOp,
    IfOp,
    LoadOp,
    StoreOp,
    WhileOp,
)
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

_BulkStore = DescriptorStoreOp | DescriptorReduceOp
_Atomic = AtomicOp | AtomicCasOp
_Memory = LoadOp | StoreOp | _Atomic


@dataclass(frozen=True)
class _Pending:
    """A store that may not be complete. earlier: in an earlier iteration."""

    op: _BulkStore
    earlier: bool = False


@dataclass(frozen=True)
class _State:
    """The state of TMA stores. pending: those that may not be complete; reads: whether TMA may
    still read shared memory; stored: pointers through which threads have stored since the last
    fence."""

    pending: frozenset[_Pending] = frozenset()
    reads: bool = False
    stored: frozenset[Value] = frozenset()

    def joined(self, other: _State) -> _State:
        """The union with another state."""
        return _State(
            self.pending | other.pending, self.reads or other.reads, self.stored | other.stored
        )

    def of_earlier_iteration(self) -> _State:
        """The state in a later iteration."""
        return replace(self, pending=frozenset(replace(p, earlier=True) for p in self.pending))


class InsertTmaStoreWaits(Pass, name="nvidia-insert-tma-store-waits"):
    """Wait for TMA stores where later ops need them."""

    def run(self, function: Function) -> bool:
        if not any(isinstance(op, _BulkStore) for op in function.walk()):
            return False
        order = _WaitInsertion()
        end = order.block(function.body, _State())
        for op, complete in order.waits.items():
            builder = Builder.at(op)
            builder.emit(BulkStoreWaitOp(complete))
            builder.emit(BarrierOp())
        for op in order.fences:
            Builder.at(op).emit(ProxyFenceOp())
        if end.reads:
            Builder.at(function.body.terminator).emit(BulkStoreWaitOp())
        return True


class _WaitInsertion:
    """The walk. waits: ops that need a wait before them, and whether for complete stores; fences:
    ops that need a fence before them. Both only grow."""

    def __init__(self) -> None:
        self.waits: dict[Op, bool] = {}
        self.fences: dict[Op, None] = {}

    @nested
    def block(self, block: Block, state: _State) -> _State:
        """The state after a block."""
        for op in block:
            if isinstance(op, RolesOp):
                # The producer loads no array that its loops store (producer_slice.py).
                state = self.block(op.consumers, state)
            elif isinstance(op, ForOp | WhileOp):
                state = self._loop(op, state)
            elif isinstance(op, IfOp):
                one, other = (self.block(region, state) for region in op.regions)
                state = one.joined(other)
            else:
                state = self._op(op, state)
        return state

    def _loop(self, loop: ForOp | WhileOp, state: _State) -> _State:
        while True:
            found, end = len(self.waits) + sum(self.waits.values()), state
            for region in loop.regions:
                end = end.joined(self.block(region, end))
            following = state.joined(end.of_earlier_iteration())
            if following == state and found == len(self.waits) + sum(self.waits.values()):
                return end
            state = following

    def _op(self, op: Op, state: _State) -> _State:
        if isinstance(op, _BulkStore):
            return self._store(op, state)
        pointer = _accessed(op)
        if pointer is None:
            return state
        starts = roots(pointer)
        releases = isinstance(op, _Atomic) and op.order in ("release", "acq_rel")
        if state.pending and (releases or any(roots(p.op.pointer) & starts for p in state.pending)):
            state = self._wait(op, state, True)
        is_store = isinstance(op, StoreOp | _Atomic)
        return replace(state, stored=state.stored | starts) if is_store else state

    def _store(self, op: _BulkStore, state: _State) -> _State:
        complete = any(_must_be_ordered(pending, op) for pending in state.pending)
        if state.reads or complete or op in self.waits:
            state = self._wait(op, state, complete)
        if roots(op.pointer) & state.stored:
            self.fences[op] = None
            state = replace(state, stored=frozenset())
        return _State(state.pending | {_Pending(op)}, True, state.stored)

    def _wait(self, op: Op, state: _State, complete: bool) -> _State:
        self.waits[op] = complete = complete or self.waits.get(op, False)
        return _State(frozenset() if complete else state.pending, False, state.stored)


def _accessed(op: Op) -> Value | None:
    """The pointer through which an op accesses global memory."""
    if isinstance(op, BulkCopyOp):
        load = op.x.op
        assert isinstance(load, DescriptorLoadOp)
        return load.pointer
    return op.pointer if isinstance(op, _Memory) else None


def _must_be_ordered(pending: _Pending, op: _BulkStore) -> bool:
    """Whether the order of two stores matters."""
    if not roots(pending.op.pointer) & roots(op.pointer):
        return False
    if isinstance(pending.op, DescriptorReduceOp) and isinstance(op, DescriptorReduceOp):
        return pending.op.kind != op.kind
    return pending.earlier or not _are_apart(pending.op, op)


def _are_apart(one: _BulkStore, other: _BulkStore) -> bool:
    """Whether two blocks of one array are disjoint, by a constant distance between them."""
    if one.pointer is not other.pointer or one.block != other.block:
        return False
    described = zip((*one.shape, *one.strides), (*other.shape, *other.strides), strict=True)
    if not all(x is y for x, y in described):
        return False
    for first, second, extent in zip(one.offsets, other.offsets, one.block, strict=True):
        start, end = (affine.of(v).quotient(through_casts=False) for v in (first, second))
        is_whole = start.divisor == end.divisor == 1
        if is_whole and start.base is end.base and abs(start.constant - end.constant) >= extent:
            return True
    return False
