"""Schedule the loads of a loop: which are issued ahead, by how many iterations.

    cf.for %k = ... {                          ahead by 3    address of iteration k + 3, copy
      %j = mem.load %table + %k                ahead by 4    load of %j for iteration k + 4
      %a = mem.load %x + %j * 64        ->     ahead by 3    %x + %j * 64, copy
      %c = tile.dot %a, ...                    now           the dot of iteration k
    }

A load is issued ahead if

* its address derives from the index, invariants, carried scalars and other such loads, by pure ops,
  in branches or not;
* no dependence in memory (`memory_dependences`) binds it to this iteration or the one before;
* it can be an asynchronous copy for dots: 4, 8 or 16 aligned bytes per thread, zeros where masked;
  or it takes few registers: small tiles are loaded one iteration ahead, scalars and tiles for
  addresses one iteration before their use.

Where the source itself loads for the next iteration, the tile is a carried value, and its dots come
one iteration later: the load is issued one iteration less ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign

from tilewright.analysis import Alignment, is_fence, memory_dependences, roots
from tilewright.backends.nvidia.buffer_ops import (
    PartOp,
    ReadOp,
    ShareOp,
    WgmmaOp,
    WriteOp,
    users_of,
)
from tilewright.backends.nvidia.layouts.access_vectors import vector_length
from tilewright.backends.nvidia.layouts.operand_chains import carried_tile
from tilewright.backends.nvidia.layouts.tile_layout import register_count
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Block, Op, Trait, Value, is_pure
from tilewright.ir.types import TileType, element_of
from tilewright.ops import (
    AtomicOp,
    ConstantOp,
    DescriptorLoadOp,
    DescriptorStoreOp,
    DotOp,
    ForOp,
    IfOp,
    JoinOp,
    LoadOp,
    ReshapeOp,
    SplatOp,
    StoreOp,
    TransposeOp,
)
from tilewright.support.data_class import dataclass

STORES = (StoreOp, DescriptorStoreOp, AtomicOp)
"""Ops that write memory and are no fences."""

MIN_COPY_BYTES = 4
"""An asynchronous copy moves 4, 8 or 16 bytes per thread (PTX ISA, cp.async)."""

SMALL_REGISTERS = 8
"""The most registers per thread for a tile that is loaded one iteration ahead."""

CARRIED_REGISTERS = 16
"""The most registers per thread for a tile that is carried for addresses, and once more for the
iteration ahead: indices of 256 rows or columns take 8."""

HINT = 3
"""From so many stages on, the number is a hint; two stages request little memory."""

MOST_SLOTS = 8
"""The most slots of a buffer where the number of stages is a hint."""

_DOTS = (DotOp, WgmmaOp)
Load = LoadOp | DescriptorLoadOp

_HORIZON = 16
"""Iterations over which dependences are analysed: no load is issued further ahead."""


@dataclass(frozen=True, slots=True)
class AheadLoad:
    """A load that is issued `distance` iterations ahead.

    vector: elements of one asynchronous copy, 0 for a load into registers or by TMA; carried: the
    tile in the next iteration, where dots of that iteration read it
    """

    load: Load
    distance: int
    vector: int = 0
    carried: Value | None = None

    @property
    def tile(self) -> Value:
        """The value that ops of the body read."""
        return self.load.result if self.carried is None else self.carried

    @property
    def needed(self) -> int:
        """Distance of the iteration that must exist for the load to be needed."""
        if self.carried is None:
            return self.distance
        loop = self.carried.owner
        assert isinstance(loop, Block) and isinstance(loop.owner, ForOp)
        # The tile of the last iteration is needed after the loop, if at all.
        is_used_after = bool(loop.owner.results[self.carried.index - 1].uses)
        return self.distance + (not is_used_after)

    @property
    def is_bulk(self) -> bool:
        """Whether TMA issues it."""
        return isinstance(self.load, DescriptorLoadOp)

    @property
    def is_copied(self) -> bool:
        """Whether it is copied to shared memory."""
        return self.is_bulk or self.vector > 0


@dataclass(frozen=True, slots=True)
class LoopSchedule:
    """The loads of a loop that are issued ahead, after the loads that they depend on.

    slots: of the buffer of each copy; initial: elements of one copy of the initial tile, by those
    loads for the next iteration whose initial tile can be copied as well; doubles: whether computed
    operands of dots may have a second slot
    """

    loop: ForOp
    loads: tuple[AheadLoad, ...]
    slots: int
    initial: Mapping[Load, int]
    doubles: bool = True

    @property
    def copies(self) -> list[AheadLoad]:
        """The loads that are copied to shared memory."""
        return [ahead for ahead in self.loads if ahead.is_copied]

    @property
    def distances(self) -> list[int]:
        """All distances, the furthest first."""
        return sorted({ahead.distance for ahead in self.loads}, reverse=True)

    def slice(self, distance: int) -> set[Op]:
        """The loads of one distance, with the ops of the body that they need."""
        loads = [ahead.load for ahead in self.loads if ahead.distance == distance]
        needed: set[Op] = set()
        for load in loads:
            needed |= address_slice(self.loop, load) or set()
        others = set[Op](a.load for a in self.loads if a.distance != distance)
        return needed - others


@dataclass(frozen=True, slots=True)
class Reader:
    """An op that passes a loaded tile to dots. order: of the dims, after a transposition."""

    op: ConvertOp | ShareOp
    order: tuple[int, ...] | None = None


def readers(ahead: AheadLoad) -> list[Reader]:
    """The conversions of a loaded tile."""
    found: list[Reader] = []
    block = ahead.load.parent
    for user in ahead.tile.uses:
        if user.parent is not block:
            continue
        if isinstance(user, ConvertOp | ShareOp):
            found.append(Reader(user))
        elif isinstance(user, TransposeOp):
            found += [
                Reader(inner, user.order)
                for inner in user.result.uses
                if isinstance(inner, ConvertOp | ShareOp) and inner.parent is block
            ]
    return found


def is_read_as_loaded(ahead: AheadLoad) -> bool:
    """Whether ops other than its readers use a tile in registers, in the layout of its load."""
    found = set[Op](reader.op for reader in readers(ahead))
    transposed = (user for user in ahead.tile.uses if isinstance(user, TransposeOp))
    found |= set[Op](op for op in transposed if all(user in found for user in op.result.uses))
    return ahead.carried is None and any(user not in found for user in ahead.tile.uses)


def schedule_loop(loop: ForOp, facts: dict[Value, Alignment], stages: int) -> list[LoopSchedule]:
    """Schedules with `stages` slots, or as many as dependences allow, down to two.

    The first is the best; later ones need less memory, the last only that of TMA loads. Empty if no
    load can be issued ahead.
    """
    scheduler = _Scheduler(loop, facts)
    found = [scheduler.run(slots) for slots in range(stages, 1, -1)]
    if scheduler.bulk and scheduler.vectors:
        scheduler.vectors.clear()
        found += [scheduler.run(slots) for slots in range(stages, 1, -1)]
    return [schedule for schedule in found if schedule is not None]


class _Scheduler:
    """The search for the schedule of one loop.

    limits: how far ahead memory dependences allow each load; vectors: elements of a copy, by load
    that can be one; carried: the carried tile, by load for the next iteration
    """

    def __init__(self, loop: ForOp, facts: dict[Value, Alignment]) -> None:
        self.loop = loop
        loads = [op for op in loop.body if isinstance(op, LoadOp) and not op.volatile]
        self.limits: dict[Load, int] = dict.fromkeys(loads, _HORIZON)
        self.vectors: dict[Load, int] = {}
        self.carried: dict[Load, Value] = {}
        self.bulk = [op for op in loop.body if isinstance(op, DescriptorLoadOp) and op.bulk]
        for load in loads:
            tile = carried_tile(load)
            vector = _vector(load, facts) if feeds_dots(tile or load.result) else 0
            if vector:
                self.vectors[load] = vector
                if tile is not None:
                    self.carried[load] = tile
        for load in self.bulk:
            if (tile := carried_zeros(load)) is not None:
                self.carried[load] = tile
        inits = {load: loop.inits[tile.index - 1].op for load, tile in self.carried.items()}
        self.initial: dict[Load, int] = {
            load: _vector(init, facts)
            for load, init in inits.items()
            if isinstance(init, LoadOp) and _is_movable(init, loop)
        }
        if self.vectors or (self.bulk and loads):
            self._respect_memory()
        for load in self.bulk:
            self.limits[load] = _HORIZON if bulk_load_runs_ahead(loop, load) else -1

    def _respect_memory(self) -> None:
        for dependence in memory_dependences(self.loop, _HORIZON):
            source, sink = dependence.source, dependence.sink
            if isinstance(sink, LoadOp) and sink in self.limits:
                # Iteration i - d is complete before the loads that iteration i - d + 1 issues
                # ahead.
                self.limits[sink] = min(self.limits[sink], dependence.distance - 1)
            if isinstance(source, LoadOp) and source in self.carried and not dependence.distance:
                # The copy would arrive in the next iteration, after the writes of this one.
                self.limits[source] = -1

    def run(self, slots: int) -> LoopSchedule | None:
        """The schedule with so many slots; None if no load can be issued as far ahead."""
        loads = (*self.vectors, *self.bulk)
        ahead = {load: slots - 1 - (load in self.carried) for load in loads}
        copies = {
            load: distance
            for load, distance in ahead.items()
            if self._closure(dict.fromkeys([load], distance)) is not None
        }
        distances = self._closure(copies)
        if not copies or distances is None:
            return None
        for load in self.limits:
            if load not in distances and load not in self.bulk and _is_small(load):
                distances = {**(self._closure(dict.fromkeys([load], 1)) or {}), **distances}
        order = sorted(distances, key=lambda load: -distances[load])
        chosen = tuple(
            AheadLoad(load, distances[load], self.vectors.get(load, 0), self.carried.get(load))
            if load in copies
            else AheadLoad(load, distances[load])
            for load in order
        )
        return LoopSchedule(self.loop, chosen, slots, self.initial)

    def _closure(self, loads: Mapping[Load, int]) -> dict[Load, int] | None:
        """Distances of loads, and of the loads that their addresses depend on; None if one is too
        large.

        loads: with their distances. The search is iterative, since addresses may depend on chains
        of loads.
        """
        distances = dict(loads)
        stack = list(loads)
        while stack:
            load = stack.pop()
            needed = address_slice(self.loop, load)
            # Terminates for an address that depends on itself: the distance grows to the limit.
            if needed is None or distances[load] > self.limits[load]:
                return None
            sources = [op for op in needed if isinstance(op, LoadOp) and op is not load]
            if any(source in loads or not _is_small(source) for source in sources):
                return None
            late = [s for s in sources if distances.get(s, 0) <= distances[load]]
            distances.update(dict.fromkeys(late, distances[load] + 1))
            stack += late
        return distances


def carried_zeros(load: DescriptorLoadOp) -> Value | None:
    """The carried tile of a TMA load for the next iteration; None if this iteration reads it.

    Its initial value is zero, since only nvidia-skew-dependent-dots makes such loads.
    """
    tile = carried_tile(load)
    if tile is not None:
        loop = load.parent.owner if load.parent is not None else None
        assert isinstance(loop, ForOp) and is_zero(loop.inits[tile.index - 1])
    return tile


def bulk_load_runs_ahead(loop: ForOp, load: DescriptorLoadOp) -> bool:
    """Whether TMA can load a block iterations ahead.

    Only scalars that are not loaded may determine its place. Nothing in the loop may write the
    array or order the load; nor anything before the loop, since TMA does not see stores of threads
    without a proxy fence (PTX ISA, "Async proxy").
    """
    needed = address_slice(loop, load)
    if needed is None or any(isinstance(op, LoadOp) for op in needed):
        return False
    before, op = list[Op](), loop.prev
    while op is not None:
        before += op.walk()
        op = op.prev
    starts = roots(load.pointer)
    return not any(is_fence(op) or isinstance(op, STORES) for op in before) and not any(
        is_fence(op) or (isinstance(op, STORES) and roots(op.pointer) & starts)
        for op in loop.walk()
    )


def address_slice(loop: ForOp, load: Load) -> set[Op] | None:
    """The ops of the body that the address and the mask of a load need, down to other loads.

    None if they need a value that only its own iteration computes.
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
            # It is then carried twice, once for the iteration ahead.
            if register_count(value) > CARRIED_REGISTERS:
                return None
            # Its value in the iteration ahead derives from the yielded one. Argument 0 is the
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
    """Whether an op may be computed again for the iteration ahead.

    Only pure ops, also in branches, and no dots.
    """
    return all(
        isinstance(inner, IfOp) or (is_pure(inner) and not isinstance(inner, DotOp))
        for inner in op.walk()
    )


def inputs(op: Op) -> list[Value]:
    """The operands of an op and of the ops in its regions."""
    return [value for inner in op.walk() for value in inner.operands] if op.regions else op.operands


def _is_small(load: Load) -> bool:
    """Whether the loaded tile takes few registers per thread."""
    return register_count(load.result) <= SMALL_REGISTERS


def _is_movable(load: LoadOp, loop: ForOp) -> bool:
    """Whether a load before a loop, its only user, may move to right before it."""
    if (
        load.parent is not loop.parent
        or load.volatile
        or list(load.result.uses.items()) != [(loop, 1)]
    ):
        return False
    op = load.next
    while op is not None and op is not loop:
        if any(is_fence(inner) or isinstance(inner, STORES) for inner in op.walk()):
            return False
        op = op.next
    return op is loop


def feeds_dots(tile: Value) -> bool:
    """Whether dots use a tile, also through conversions and element-wise ops."""
    return any(
        isinstance(user, _DOTS) or any(map(feeds_dots, _passed_on(user))) for user in tile.uses
    )


def _passed_on(op: Op) -> Sequence[Value]:
    """The results of an op that may be operands of dots, computed from its operands."""
    if isinstance(op, WriteOp):
        return [user.result for user in users_of(op.buffer) if isinstance(user, ReadOp)]
    between = isinstance(op, ConvertOp | ShareOp | TransposeOp | JoinOp | ReshapeOp | PartOp)
    return op.results[:1] if between or Trait.ELEMENTWISE in op.traits else ()


def _vector(load: LoadOp, facts: dict[Value, Alignment]) -> int:
    """Elements of one copy; 0 if the load cannot be an asynchronous copy."""
    return 0 if copy_obstacle(load, facts) else vector_length(facts, load.pointer, load.mask)


def copy_obstacle(load: LoadOp, facts: dict[Value, Alignment]) -> str:
    """Why a load cannot be an asynchronous copy; "" if it can."""
    if obstacle := form_obstacle(load):
        return obstacle
    # Without `most`: cp.async moves 16 bytes at most, even where loads move 32.
    size = vector_length(facts, load.pointer, load.mask) * element_of(load.type).bytes
    return "" if size >= MIN_COPY_BYTES else f"cp.async moves {MIN_COPY_BYTES} bytes or more"


def form_obstacle(load: LoadOp) -> str:
    """Why a load cannot be an asynchronous copy, whatever the layout of its elements; "" if it
    can."""
    if not isinstance(load.type, TileType):
        return "a scalar is not copied to shared memory"
    if load.cache not in ("", ".cg", ".ca"):
        return f"cp.async has no cache operator {load.cache}"
    if load.other is not None and not is_zero(load.other):
        return "cp.async fills masked elements with zeros only"
    return ""


def is_zero(value: Value) -> bool:
    """Whether all bits are 0, unlike those of -0.0."""
    op = value.op
    if isinstance(op, SplatOp):
        op = op.x.op
    return isinstance(op, ConstantOp) and op.value == 0 and copysign(1, op.value) > 0
