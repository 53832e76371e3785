"""Which memory operations of a loop must stay in order, and over how many iterations.

    cf.for %s = %lo, %hi, %one {
      %x = mem.load %a + 32 s      // L         S -> L, distance 2: what iteration s stores,
      mem.store %a + 32 s + 64, …  // S           iteration s + 2 loads
    }                              //           L -> S, none: no earlier load reads what S writes

A dependence `source -> sink` of distance d says: `sink` of iteration i + d comes after `source` of
iteration i, for every i. Its distance is the smallest that could not be ruled out: 0 for what
stands in this order in one iteration and may touch the same bytes, 1 for what may do so in the next
one only, and so on up to a horizon, from which on nothing is said. Whoever moves `sink` by fewer
than d iterations ahead keeps the meaning.

* Accesses that start from different pointers (`roots`) do not meet, nor do two loads.
* Addresses are compared as affine sums (affine.py); what is no such sum may be anywhere.
* Barriers, atomic operations and volatile loads are fences: no access crosses them. So is a loop or
  a branch that contains one. Prints and assertions are none.
* Operations in an inner loop or a branch count as one operation, the op of the body they are in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from tilewright.analysis.affine import Affine, AffineForms, may_overlap
from tilewright.analysis.pointers import roots
from tilewright.ir import Effect, Op, Value
from tilewright.ir.types import element_of
from tilewright.ops import AtomicCasOp, AtomicOp, ForOp, LoadOp, StoreOp, pointee

_VOLATILE_CACHES = (".cv",)
"""Cache modifiers of loads that look at memory anew, as volatile ones do (PTX ISA, ld)."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """source, sink: ops of the body of one loop; distance: in iterations; fence: whether one of
    the two is a fence, else both may touch the same bytes."""

    source: Op
    sink: Op
    distance: int
    fence: bool


@dataclass(frozen=True, slots=True)
class _Access:
    """What one op does to memory; op: that of the body; position: its number there."""

    op: Op
    position: int
    writes: bool
    fence: bool
    roots: frozenset[Value] = frozenset()
    address: Affine | None = None
    bytes: int = 0


def memory_dependences(loop: ForOp, horizon: int) -> list[Dependence]:
    """Dependences between the ops of a loop's body, of at most `horizon` iterations.

    Of several between two ops only the shortest is given.
    """
    accesses = list(_accesses(loop))
    shortest: dict[tuple[Op, Op], Dependence] = {}
    if not any(access.writes or access.fence for access in accesses):
        return []
    for source in accesses:
        for sink in accesses:
            distance = _distance(source, sink, horizon)
            if distance is None:
                continue
            known = shortest.get((source.op, sink.op))
            if known is None or distance < known.distance:
                fence = source.fence or sink.fence
                shortest[source.op, sink.op] = Dependence(source.op, sink.op, distance, fence)
    return list(shortest.values())


def _accesses(loop: ForOp) -> Iterator[_Access]:
    forms = AffineForms(loop)
    for position, outer in enumerate(loop.body):
        op = cast("Op", outer)
        for inner in op.walk():
            if is_fence(cast("Op", inner)):
                yield _Access(op, position, writes=True, fence=True)
            elif isinstance(inner, LoadOp | StoreOp):
                writes = isinstance(inner, StoreOp)
                yield _Access(
                    op,
                    position,
                    writes,
                    False,
                    roots(inner.pointer),
                    forms.of(inner.pointer),
                    element_of(pointee(inner.pointer.type)).bytes,
                )


def is_fence(op: Op) -> bool:
    """Whether no access to memory may move from one side of this op to the other."""
    if isinstance(op, LoadOp):
        return op.volatile or op.cache in _VOLATILE_CACHES
    if isinstance(op, StoreOp):
        return False
    return isinstance(op, AtomicOp | AtomicCasOp) or not op.effects.isdisjoint(
        (Effect.WRITE, Effect.BARRIER)
    )


def _distance(source: _Access, sink: _Access, horizon: int) -> int | None:
    """Iterations from `source` to the first `sink` that may depend on it."""
    first = 0 if source.position < sink.position else 1
    if first > horizon:
        return None
    if source.fence or sink.fence:
        return first
    if not (source.writes or sink.writes) or not source.roots & sink.roots:
        return None
    if source.address is None or sink.address is None:
        return first
    for distance in range(first, horizon + 1):
        if may_overlap(source.address, source.bytes, sink.address, sink.bytes, distance):
            return distance
    return None
