"""Barriers where threads of a program may meet in global memory.

    mem.store %p, %v                        mem.store %p, %v
    %r = arith ...                   ->     mem.barrier
    %w = mem.load %q                        %w = mem.load %q

A program reads and writes in order; its threads do not wait for each other. So a barrier stands
before an access if one since the last barrier starts from the same pointer (`analysis.roots`), one
of the two writes, and another thread may have made it: the tiles of addresses differ, or are those
of another iteration, or several threads hold an element. Atomic operations need no order among
themselves, and stores through one tile of addresses are taken to write elsewhere in each iteration:
a barrier in every loop that fills an array would cost more than it is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import cast

from tilewright.analysis import roots
from tilewright.ir import Block, Builder, Function, Op, Value
from tilewright.ir.types import TileType, shape_of
from tilewright.layout import LinearLayout
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    BarrierOp,
    ForOp,
    IfOp,
    LoadOp,
    StoreOp,
    WhileOp,
)

_ATOMIC = AtomicOp | AtomicCasOp


@dataclass(frozen=True)
class _Access:
    """pointer: scalar or tile of addresses; earlier: of another iteration of a loop."""

    pointer: Value
    starts: frozenset[Value]
    writes: bool
    atomic: bool
    earlier: bool = False

    @property
    def stores(self) -> bool:
        """It writes without reading."""
        return self.writes and not self.atomic

    def meets(self, other: _Access) -> bool:
        """Whether an access of one thread may need to come after one of another thread."""
        if not (self.writes or other.writes) or (self.atomic and other.atomic):
            return False
        if not self.starts & other.starts:
            return False
        one = self.pointer is other.pointer
        if one and (self.earlier or other.earlier):
            return not (self.stores and other.stores)
        return not (one and _each_has_its_thread(self.pointer))


Pending = frozenset[_Access]


def order_memory(function: Function) -> bool:
    """Insert the barriers; whether there are any new ones."""
    before = sum(isinstance(op, BarrierOp) for op in function.walk())
    _order(function.body, frozenset())
    return sum(isinstance(op, BarrierOp) for op in function.walk()) > before


def _order(block: Block, pending: Pending) -> Pending:
    """Insert barriers; pending: accesses since the last barrier, before the block; those after."""
    for item in list(block):
        op = cast("Op", item)
        access = _access_of(op)
        if isinstance(op, BarrierOp):
            pending = frozenset()
        elif access is not None:
            if any(access.meets(other) for other in pending):
                Builder.at(op).emit(BarrierOp())
                pending = frozenset()
            pending |= {access}
        elif isinstance(op, IfOp):
            ends = [_order(inner, pending) for inner in op.regions]
            pending = pending.union(*ends) if len(ends) < 2 else ends[0] | ends[1]
        elif isinstance(op, ForOp | WhileOp):
            pending = _order_loop(op, pending)
    return pending


def _order_loop(loop: ForOp | WhileOp, pending: Pending) -> Pending:
    """A body comes after itself: what it did in an earlier iteration is pending at its start."""
    before = pending
    for block in loop.regions:
        pending |= _of_earlier_iterations(block)
    for block in loop.regions:
        pending = _order(block, pending)
    return before | pending


def _of_earlier_iterations(block: Block) -> Pending:
    found: set[_Access] = set()
    for item in block:
        op = cast("Op", item)
        if isinstance(op, BarrierOp):
            found.clear()
        for inner in op.walk():
            access = _access_of(cast("Op", inner))
            if access is not None:
                found.add(replace(access, earlier=True))
    return frozenset(found)


def _access_of(op: Op) -> _Access | None:
    if not isinstance(op, LoadOp | StoreOp | _ATOMIC):
        return None
    writes, atomic = not isinstance(op, LoadOp), isinstance(op, _ATOMIC)
    return _Access(op.pointer, roots(op.pointer), writes, atomic)


def _each_has_its_thread(pointer: Value) -> bool:
    """Whether one thread alone holds each address."""
    layout = pointer.type.layout if isinstance(pointer.type, TileType) else None
    if not isinstance(layout, LinearLayout):
        return False
    return prod(layout.in_size(name) for name in layout.in_names) == prod(shape_of(pointer.type))
