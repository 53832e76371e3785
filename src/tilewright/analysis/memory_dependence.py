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
* Addresses are compared as sums (access_overlap.py); what is no such sum may be anywhere.
* Barriers, atomic operations and volatile loads are fences: no access crosses them. So is a loop or
  a branch that contains one. Prints and assertions are none, nor are relaxed atomic operations
  whose result nobody uses: they are accesses as stores are.
* Operations in an inner loop or a branch count as one operation, the op of the body they are in.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.analysis.access_forms import MemoryForms
from tilewright.analysis.access_overlap import Relation, apart
from tilewright.analysis.pointer_roots import roots
from tilewright.ir import Effect, Op, Value
from tilewright.ops import AtomicCasOp, AtomicOp, DescriptorStoreOp, ForOp, LoadOp, StoreOp
from tilewright.support.data_class import dataclass

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
    """What one op does to memory; op: that of the body; position: its number there; memory: the
    load or store, in it or itself; None for a fence."""

    op: Op
    position: int
    memory: LoadOp | StoreOp | DescriptorStoreOp | AtomicOp | None
    roots: frozenset[Value] = frozenset()

    @property
    def reads(self) -> bool:
        """It only reads."""
        return isinstance(self.memory, LoadOp)


def memory_dependences(loop: ForOp, horizon: int) -> list[Dependence]:
    """Dependences between the ops of a loop's body, of at most `horizon` iterations.

    Of several between two ops only the shortest is given.
    """
    accesses = list(_accesses(loop))
    # the usual case, decided before any address is made a sum
    if all(access.reads for access in accesses):
        return []
    forms = MemoryForms.around(loop)
    shortest: dict[tuple[Op, Op], Dependence] = {}
    for source in accesses:
        for sink in accesses:
            distance = _distance(forms, loop, source, sink, horizon)
            if distance is None:
                continue
            best = shortest.get((source.op, sink.op))
            if best is None or distance < best.distance:
                fence = source.memory is None or sink.memory is None
                shortest[source.op, sink.op] = Dependence(source.op, sink.op, distance, fence)
    return list(shortest.values())


def _accesses(loop: ForOp) -> Iterator[_Access]:
    for position, op in enumerate(loop.body):
        for inner in op.walk():
            if is_fence(inner):
                yield _Access(op, position, None)
            elif isinstance(inner, LoadOp | StoreOp | DescriptorStoreOp | AtomicOp):
                yield _Access(op, position, inner, roots(inner.pointer))


def is_fence(op: Op) -> bool:
    """Whether no access to memory may move from one side of this op to the other."""
    if isinstance(op, LoadOp):
        return op.volatile or op.cache in _VOLATILE_CACHES
    if isinstance(op, StoreOp | DescriptorStoreOp):
        return False
    if isinstance(op, AtomicOp):
        return not op.is_reduction
    return isinstance(op, AtomicCasOp) or not op.effects.isdisjoint((Effect.WRITE, Effect.BARRIER))


def _distance(
    forms: MemoryForms, loop: ForOp, source: _Access, sink: _Access, horizon: int
) -> int | None:
    """Iterations from `source` to the first `sink` that may depend on it."""
    # An op that stands earlier in the body comes after `source` only in the next iteration.
    first = 0 if source.position < sink.position else 1
    if first > horizon:
        return None
    if source.memory is None or sink.memory is None:
        return first
    if (source.reads and sink.reads) or not source.roots & sink.roots:
        return None
    if isinstance(source.memory, DescriptorStoreOp) or isinstance(sink.memory, DescriptorStoreOp):
        return first  # their addresses are no sums
    before, after = forms.access(source.memory), forms.access(sink.memory)
    # the shortest distance is the one that binds, so the first that cannot be ruled out ends this
    for distance in range(first, horizon + 1):
        if not apart(before, after, Relation.at(before, after, loop, distance)):
            return distance
    return None
