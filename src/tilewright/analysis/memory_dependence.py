"""Memory dependences of a loop, with their distances in iterations.

    cf.for %s = %lo, %hi, %one {
      %x = mem.load %a + 32 s      // L         S -> L, distance 2: iteration s + 2 loads what
      mem.store %a + 32 s + 64, …  // S           iteration s stores
    }                              //           L -> S, none: no earlier load reads what S writes

A dependence `source -> sink` of distance d means that `sink` of iteration i + d must follow
`source` of iteration i, for every i. Its distance is the smallest that is not excluded: 0 for ops
in this order in one iteration that may access the same bytes, 1 for ops that may do so in the next
iteration, and so on up to a horizon. Moving `sink` ahead by fewer than d iterations is valid.

* Accesses with different root pointers (`roots`) do not overlap, and two loads are independent.
* Addresses are compared as forms (access_overlap.py); any other address may overlap.
* Barriers, atomic operations and volatile loads are fences: no access crosses them. So is a loop or
  a branch that contains one. Prints and assertions are not fences. A relaxed atomic operation whose
  result is unused is an access, as a store.
* Operations in an inner loop or a branch are one operation, the op of the body that contains them.
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
"""Cache modifiers of loads that fetch again, as volatile loads do (PTX ISA, ld)."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """source, sink: ops of the body of one loop; distance: in iterations; fence: whether one of
    the two is a fence; otherwise both may access the same bytes."""

    source: Op
    sink: Op
    distance: int
    fence: bool


@dataclass(frozen=True, slots=True)
class _Access:
    """A memory operation of the body; op: the op of the body; position: its number there; memory:
    the load or store, which is the op or in it; None for a fence."""

    op: Op
    position: int
    memory: LoadOp | StoreOp | DescriptorStoreOp | AtomicOp | None
    roots: frozenset[Value] = frozenset()

    @property
    def reads(self) -> bool:
        """Whether it only reads."""
        return isinstance(self.memory, LoadOp)


def memory_dependences(loop: ForOp, horizon: int) -> list[Dependence]:
    """Dependences between the ops of a loop's body, of at most `horizon` iterations.

    Of several dependences between two ops only the shortest is returned.
    """
    accesses = list(_accesses(loop))
    # the usual case, decided without forms of addresses
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
    """The iterations from `source` to the first `sink` that may depend on it."""
    # An op that is earlier in the body follows `source` in the next iteration.
    first = 0 if source.position < sink.position else 1
    if first > horizon:
        return None
    if source.memory is None or sink.memory is None:
        return first
    if (source.reads and sink.reads) or not source.roots & sink.roots:
        return None
    if isinstance(source.memory, DescriptorStoreOp) or isinstance(sink.memory, DescriptorStoreOp):
        return first  # their addresses have no forms
    before, after = forms.access(source.memory), forms.access(sink.memory)
    # the shortest distance decides, so the first that is not excluded is the result
    for distance in range(first, horizon + 1):
        if not apart(before, after, Relation.at(before, after, loop, distance)):
            return distance
    return None
