"""Which loads of a loop are made iterations ahead, by how many, and what must be computed for them.

    cf.for %k = ... {                          ahead by 3    address of iteration k + 3, copy
      %j = mem.load %table + %k                ahead by 4    load of %j for iteration k + 4
      %a = mem.load %x + %j * 64        ->     ahead by 3    %x + %j * 64, copy
      %c = tile.dot %a, ...                    now           the dot of iteration k
    }

A load runs ahead if

* its address follows from the index, from invariants, from carried scalars and from other such
  loads, by pure ops, in branches or not;
* no dependence in memory (`memory_dependences`) binds it to this iteration or the one before;
* it can be an asynchronous copy that dots use: 4, 8 or 16 bytes of a thread, aligned, zeros
  where masked; or it holds few registers, and is loaded into them: small tiles one iteration ahead,
  scalars and tiles that addresses depend on one iteration before what needs them.

Where the source itself loads for the next iteration, in which the tile is a carried value, its
dots come one iteration later: the load runs ahead by one less.
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
from tilewright.backends.nvidia.lower.gpu_lowering import register_count
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
"""What writes memory and is no fence."""

MIN_COPY_BYTES = 4
"""An asynchronous copy moves 4, 8 or 16 bytes of a thread (PTX ISA, cp.async)."""

SMALL_REGISTERS = 8
"""Registers of a thread that a tile may take which is loaded one iteration ahead."""

CARRIED_REGISTERS = 16
"""Registers of a thread that a tile may take which is carried for addresses, once more for those
of the iteration ahead: of indices of 256 rows or columns, 8."""

HINT = 3
"""Stages from which on their number is a hint; two stages ask for little memory."""

MOST_SLOTS = 8
"""Of a buffer, where the number of stages is a hint."""

_PRODUCTS = (DotOp, WgmmaOp)
Load = LoadOp | DescriptorLoadOp

_HORIZON = 16
"""Iterations over which dependences are looked for: none runs further ahead."""


@dataclass(frozen=True, slots=True)
class AheadLoad:
    """A load that runs `distance` iterations ahead.

    vector: elements of one asynchronous copy; 0: it is loaded into registers, or by the copy
    engine; carried: the tile in the next iteration, if that uses it; None: its own does
    """

    load: Load
    distance: int
    vector: int = 0
    carried: Value | None = None

    @property
    def tile(self) -> Value:
        """The tile as ops of the body use it."""
        return self.load.result if self.carried is None else self.carried

    @property
    def needed(self) -> int:
        """How many iterations ahead one must take place that needs the load."""
        if self.carried is None:
            return self.distance
        loop = self.carried.owner
        assert isinstance(loop, Block) and isinstance(loop.owner, ForOp)
        # What the last iteration loads is needed behind the loop, if at all.
        is_used_behind = bool(loop.owner.results[self.carried.index - 1].uses)
        return self.distance + (not is_used_behind)

    @property
    def is_bulk(self) -> bool:
        """Whether the copy engine makes it."""
        return isinstance(self.load, DescriptorLoadOp)

    @property
    def is_copied(self) -> bool:
        """Whether it goes through shared memory."""
        return self.is_bulk or self.vector > 0


@dataclass(frozen=True, slots=True)
class LoopSchedule:
    """The loads of a loop that run ahead, those that others depend on first.

    slots: of the buffer of each copy; initial: elements of one copy of the initial tile of those
    loads for the next iteration whose initial tile can be copied, too; doubles: whether operands of
    dots that are computed may have a second slot.
    """

    loop: ForOp
    loads: tuple[AheadLoad, ...]
    slots: int
    initial: Mapping[Load, int]
    doubles: bool = True

    @property
    def copies(self) -> list[AheadLoad]:
        """Those through shared memory."""
        return [ahead for ahead in self.loads if ahead.is_copied]

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


@dataclass(frozen=True, slots=True)
class Reader:
    """An op that takes a load to dots; order: of the dims behind a transposition between."""

    op: ConvertOp | ShareOp
    order: tuple[int, ...] | None = None


def readers(ahead: AheadLoad) -> list[Reader]:
    """The conversions of what is loaded."""
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
    """Whether ops beside its readers use a tile, in registers and in the layout of its load."""
    found = set[Op](reader.op for reader in readers(ahead))
    turned = (user for user in ahead.tile.uses if isinstance(user, TransposeOp))
    found |= set[Op](op for op in turned if all(user in found for user in op.result.uses))
    return ahead.carried is None and any(user not in found for user in ahead.tile.uses)


def schedule_loop(loop: ForOp, facts: dict[Value, Alignment], stages: int) -> list[LoopSchedule]:
    """What loads may run ahead, for `stages` slots or as many as dependences allow, down to two.

    The first is the best; others need less memory. None if no load may.
    """
    scheduler = _Scheduler(loop, facts)
    found = (scheduler.run(slots) for slots in range(stages, 1, -1))
    return [schedule for schedule in found if schedule is not None]


class _Scheduler:
    """limits: how far ahead dependences in memory allow each load; vectors: elements of a copy of
    each load that can be one; carried: the tiles of those for the next iteration."""

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
                # Iteration i - d is done before what iteration i - d + 1 makes ahead.
                self.limits[sink] = min(self.limits[sink], dependence.distance - 1)
            if isinstance(source, LoadOp) and source in self.carried and not dependence.distance:
                # The copy would arrive in the next iteration, after what this one writes.
                self.limits[source] = -1

    def run(self, slots: int) -> LoopSchedule | None:
        """With this number of slots; None if no load runs ahead by as much."""
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
        """How far ahead loads run, and those that their addresses depend on; None if they cannot.

        loads: with how far ahead they are to run. In turn, as addresses may depend on loads in
        several steps.
        """
        distances = dict(loads)
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


def carried_zeros(load: DescriptorLoadOp) -> Value | None:
    """What a block that the copy engine loads is in the next iteration, if that uses it.

    It begins as zeros, since nvidia-skew-dependent-dots alone makes such loads.
    """
    tile = carried_tile(load)
    if tile is not None:
        loop = load.parent.owner if load.parent is not None else None
        assert isinstance(loop, ForOp) and is_zero(loop.inits[tile.index - 1])
    return tile


def bulk_load_runs_ahead(loop: ForOp, load: DescriptorLoadOp) -> bool:
    """Whether the copy engine can load a block iterations ahead.

    Only scalars that are no loads may say where it is. Nothing in the loop may write what it reads,
    or order it; nor anything before the loop, since other threads' stores are no matter of the copy
    engine without a fence of its own (PTX ISA, "Async proxy").
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
            # It is carried twice then, once for the iteration ahead.
            if register_count(value) > CARRIED_REGISTERS:
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

    Pure ops only, also in branches, and no dots.
    """
    return all(
        isinstance(inner, IfOp) or (is_pure(inner) and not isinstance(inner, DotOp))
        for inner in op.walk()
    )


def inputs(op: Op) -> list[Value]:
    """The operands of an op, and of those in its regions."""
    return [value for inner in op.walk() for value in inner.operands] if op.regions else op.operands


def _is_small(load: Load) -> bool:
    """Whether a load takes few registers of a thread."""
    return register_count(load.result) <= SMALL_REGISTERS


def _is_movable(load: LoadOp, loop: ForOp) -> bool:
    """Whether a load before a loop may as well stand right before it, where alone it is used."""
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
    """Whether dots use a tile behind conversions and what computes their operands."""
    return any(
        isinstance(user, _PRODUCTS) or any(map(feeds_dots, _passed_on(user))) for user in tile.uses
    )


def _passed_on(op: Op) -> Sequence[Value]:
    """What operands of dots are computed as from a tile that an op takes."""
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
    """Why a load cannot be an asynchronous copy, however its elements lie; "" if it can."""
    if not isinstance(load.type, TileType):
        return "a scalar is not copied to shared memory"
    if load.cache not in ("", ".cg", ".ca"):
        return f"cp.async has no cache operator {load.cache}"
    if load.other is not None and not is_zero(load.other):
        return "cp.async fills masked elements with zeros only"
    return ""


def is_zero(value: Value) -> bool:
    """Whether all bits are 0: those of -0.0 are not."""
    op = value.op
    if isinstance(op, SplatOp):
        op = op.x.op
    return isinstance(op, ConstantOp) and op.value == 0 and copysign(1, op.value) > 0
