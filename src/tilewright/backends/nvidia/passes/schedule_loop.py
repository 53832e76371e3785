"""Which loads of a loop are made iterations ahead, by how many, and what must be computed for them.

    cf.for %k = ... {                          ahead by 3    address of iteration k + 3, copy
      %j = mem.load %table + %k                ahead by 4    load of %j for iteration k + 4
      %a = mem.load %x + %j * 64        ->     ahead by 3    %x + %j * 64, copy
      %c = tile.dot %a, ...                    now           the product of iteration k
    }

A load runs ahead if

* its address follows from the index, from invariants, from carried scalars and from other such
  loads, by pure ops, in branches or not;
* no dependence in memory (`memory_dependences`) binds it to this iteration or the one before;
* it can be an asynchronous copy that products use: 4, 8 or 16 bytes of a thread, aligned, zeros
  where masked; or it holds few registers, and is loaded into them: small tiles one iteration ahead,
  scalars and tiles that addresses depend on one iteration before what needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign

from tilewright.analysis import Alignment, memory_dependences
from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp
from tilewright.backends.nvidia.layouts.access_vectors import vector_length
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Op, Trait, Value, is_pure
from tilewright.ir.types import TileType, element_of
from tilewright.layout import REGISTER, LinearLayout
from tilewright.ops import ConstantOp, DotOp, ForOp, IfOp, LoadOp, SplatOp, TransposeOp

MIN_COPY_BYTES = 4
"""An asynchronous copy moves 4, 8 or 16 bytes of a thread (PTX ISA, cp.async)."""

SMALL_REGISTERS = 4
"""Registers of a thread that a tile may take which is loaded one iteration ahead."""

_PRODUCTS = (DotOp, WgmmaOp)
_HORIZON = 16
"""Iterations over which dependences are looked for: none runs further ahead."""


@dataclass(frozen=True, slots=True)
class AheadLoad:
    """A load that runs `distance` iterations ahead.

    vector: elements of one asynchronous copy; 0: it is loaded into registers
    """

    load: LoadOp
    distance: int
    vector: int = 0


@dataclass(frozen=True, slots=True)
class LoopSchedule:
    """The loads of a loop that run ahead, those that others depend on first.

    slots: of the buffer of each copy.
    """

    loop: ForOp
    loads: tuple[AheadLoad, ...]
    slots: int

    @property
    def copies(self) -> list[AheadLoad]:
        """Those through shared memory."""
        return [ahead for ahead in self.loads if ahead.vector]

    @property
    def distances(self) -> list[int]:
        """From the furthest."""
        return sorted({ahead.distance for ahead in self.loads}, reverse=True)

    def slice(self, distance: int) -> set[Op]:
        """The ops of the body that the loads of one distance need, with these."""
        loads = [ahead.load for ahead in self.loads if ahead.distance == distance]
        needed: set[Op] = set()
        for load in loads:
            needed |= address_slice(self.loop, load) or set()
        others = set[Op](a.load for a in self.loads if a.distance != distance)
        return needed - others


def schedule_loop(loop: ForOp, facts: dict[Value, Alignment], stages: int) -> list[LoopSchedule]:
    """What loads may run ahead, for `stages` slots or as many as dependences allow, down to two.

    The first is the best; others need less memory. None if no load may.
    """
    scheduler = _Scheduler(loop, facts)
    found = (scheduler.run(slots) for slots in range(stages, 1, -1))
    return [schedule for schedule in found if schedule is not None]


class _Scheduler:
    """limits: how far ahead dependences in memory allow each load; vectors: elements of a copy of
    each load that can be one."""

    def __init__(self, loop: ForOp, facts: dict[Value, Alignment]) -> None:
        self.loop = loop
        loads = [op for op in loop.body if isinstance(op, LoadOp) and not op.volatile]
        self.limits = dict.fromkeys(loads, _HORIZON)
        self.vectors: dict[LoadOp, int] = {}
        for load in loads:
            vector = _vector(load, facts) if _feeds_products(load) else 0
            if vector:
                self.vectors[load] = vector
        if self.vectors:
            for dependence in memory_dependences(loop, _HORIZON):
                sink = dependence.sink
                if isinstance(sink, LoadOp) and sink in self.limits:
                    # Iteration i - d is done before what iteration i - d + 1 makes ahead.
                    self.limits[sink] = min(self.limits[sink], dependence.distance - 1)

    def run(self, slots: int) -> LoopSchedule | None:
        """With this number of slots; None if no load runs ahead by as much."""
        copies = [load for load in self.vectors if self._closure([load], slots - 1) is not None]
        distances = self._closure(copies, slots - 1)
        if not copies or distances is None:
            return None
        for load in self.limits:
            if load not in distances and _is_small(load):
                distances = {**(self._closure([load], 1) or {}), **distances}
        order = sorted(distances, key=lambda load: -distances[load])
        vectors = {load: self.vectors[load] for load in copies}
        loads = tuple(AheadLoad(load, distances[load], vectors.get(load, 0)) for load in order)
        return LoopSchedule(self.loop, loads, slots)

    def _closure(self, loads: Sequence[LoadOp], distance: int) -> dict[LoadOp, int] | None:
        """How far ahead loads run, and those that their addresses depend on; None if they cannot.

        In turn, as addresses may depend on loads in several steps.
        """
        distances = dict.fromkeys(loads, distance)
        stack = list(loads)
        while stack:
            load = stack.pop()
            needed = address_slice(self.loop, load)
            # Ends also where an address depends on itself: the distance grows to the limit.
            if needed is None or distances[load] > self.limits[load]:
                return None
            sources = [op for op in needed if isinstance(op, LoadOp) and op is not load]
            if any(source in loads or not _is_small(source) for source in sources):
                return None
            late = [s for s in sources if distances.get(s, 0) <= distances[load]]
            distances.update(dict.fromkeys(late, distances[load] + 1))
            stack += late
        return distances


def address_slice(loop: ForOp, load: LoadOp) -> set[Op] | None:
    """The ops of the body that the address and the mask of a load need, down to other loads.

    None if they need what only an iteration computes.
    """
    block = loop.body
    needed = set[Op]((load,))
    stack: list[Value] = list(load.operands)
    seen: set[Value] = set()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.op
        if op is None and value.owner is block and value is not loop.index:
            # It would be carried twice, once for the iteration ahead: tiles take many registers.
            if isinstance(value.type, TileType):
                return None
            # Its value in the iteration ahead follows from what this one yields. Argument 0 is the
            # index, which is not yielded.
            stack.append(block.terminator.operands[value.index - 1])
        if op is None or op.parent is not block:
            continue
        needed.add(op)
        if isinstance(op, LoadOp):
            if op is load:
                return None
            continue
        if not _is_repeatable(op):
            return None
        stack += inputs(op)
    return needed


def _is_repeatable(op: Op) -> bool:
    """Whether addresses may need an op, which is computed again for the iteration ahead.

    Pure ops only, also in branches, and no products.
    """
    return all(
        isinstance(inner, IfOp) or (is_pure(inner) and not isinstance(inner, DotOp))
        for inner in op.walk()
    )


def inputs(op: Op) -> list[Value]:
    """The operands of an op, and of those in its regions."""
    return [value for inner in op.walk() for value in inner.operands] if op.regions else op.operands


def _is_small(load: LoadOp) -> bool:
    """Whether a load takes few registers of a thread."""
    layout = getattr(load.type, "layout", None)
    if not isinstance(load.type, TileType):
        return True
    if not isinstance(layout, LinearLayout):
        return False
    return layout.in_size(REGISTER) * element_of(load.type).bytes <= 4 * SMALL_REGISTERS


def _feeds_products(op: Op) -> bool:
    """Whether products use a tile behind conversions and what computes their operands."""
    return any(
        isinstance(user, _PRODUCTS) or (_is_between(user) and _feeds_products(user))
        for user in op.results[0].uses
    )


def _is_between(op: Op) -> bool:
    between = isinstance(op, ConvertOp | ShareOp | TransposeOp)
    return between or Trait.ELEMENTWISE in op.traits


def _vector(load: LoadOp, facts: dict[Value, Alignment]) -> int:
    """Elements of one copy; 0 if the load cannot be an asynchronous copy."""
    # cp.async has .ca and .cg only.
    if not isinstance(load.type, TileType) or load.cache not in ("", ".cg", ".ca"):
        return 0
    if load.other is not None and not _is_zero(load.other):
        return 0
    # Without `most`: cp.async moves 16 bytes at most, even where loads move 32.
    length = vector_length(facts, load.pointer, load.mask)
    return length if length * element_of(load.type).bytes >= MIN_COPY_BYTES else 0


def _is_zero(value: Value) -> bool:
    """Whether all bits are 0: those of -0.0 are not."""
    op = value.op
    if isinstance(op, SplatOp):
        op = op.x.op
    return isinstance(op, ConstantOp) and op.value == 0 and copysign(1, op.value) > 0
