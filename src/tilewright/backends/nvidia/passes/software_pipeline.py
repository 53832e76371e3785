"""Overlaps the loads of a loop with its products: asynchronous copies several iterations ahead.

A loop is pipelined if it multiplies tiles whose loads can be made earlier, see pipelined_loads.py.
Each such load goes to a ring of slots in shared memory; iteration i reads slot i mod S while the
copies of iteration i + S - 1 are on their way:

    cf.for %k = %lo, %hi, %s (%p) {          copy iterations 0 .. S-2 to slots 0 .. S-2
      %a = mem.load (address of %k, %p)      cf.for %k = %lo, %hi, %s (%p, %ring, %slot ...) {
      %x = nvidia.convert %a           ->      nvidia.wait {pending = S - 2}
      %c = tile.dot %x, ...                    %a = mem.load (address of %k + (S-1) %s) if %k < %e
      cf.yield %p + step                       %r = nvidia.async_copy %ring, %a, %free
    }                                          nvidia.commit
                                               %x = nvidia.load_slot %r, %slot
                                               %c = tile.dot %x, ...
                                             }
                                             nvidia.wait {pending = 0}

%e is the index of the first iteration that has none S - 1 later, from their number: so a copy is
made only for an iteration that takes place, however near to the ends of its type an index comes.
Elements that are masked off become zeros.

Innermost loops come first, and a loop around a pipelined one stays as it is. S is the number of
stages that the launch or the loop gives, but no more than dependences in memory allow and than fit
into shared memory beside all that the loop needs there otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.lower.allocate_shared import RingRoom
from tilewright.backends.nvidia.lower.shared_usage import Machine, tile_bytes
from tilewright.backends.nvidia.ops import AsyncCopyOp, CommitOp, LoadSlotOp, RingOp, WaitOp
from tilewright.backends.nvidia.passes.pipelined_loads import (
    PipelinedLoad,
    address_slice,
    pipelined_loads,
    slots_by_dependence,
)
from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import TileType, i1, i32
from tilewright.ops import (
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    ConstantOp,
    ForOp,
    LoadOp,
    MinOp,
    MulOp,
    SelectOp,
    SplatOp,
    SubOp,
    YieldOp,
)
from tilewright.transforms import trip_count


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Rings, index and carried values of an iteration that is copied ahead."""

    rings: list[Value]
    index: Value
    carried: list[Value]


class LoopPipeline:
    """Pipelines one loop with a number of slots."""

    def __init__(
        self, loop: ForOp, pipelined: Sequence[PipelinedLoad], slots: int, first: int
    ) -> None:
        self.loop, self.pipelined, self.slots, self.first_ring = loop, pipelined, slots, first
        self.slice = address_slice(loop, [s.load for s in pipelined]) or set()
        args = loop.carried
        self.moving = [i for i, arg in enumerate(args) if self._moves(arg)]

    def _moves(self, arg: Value) -> bool:
        return any(user in self.slice for user in arg.uses)

    def run(self) -> None:
        before = Builder.at(self.loop)
        trips = trip_count(before, self.loop)
        rings = [self._ring(before, n, s) for n, s in enumerate(self.pipelined)]
        ahead = _Ahead(rings, self.loop.lower, [self.loop.inits[i] for i in self.moving])
        for slot in range(self.slots - 1):
            # The loop may have fewer iterations than the ring has slots.
            number = before.value(ConstantOp(slot, trips.type))
            runs = before.value(CompareOp(number, trips, predicate="lt"))
            ahead = self._fill(before, ahead, before.value(ConstantOp(slot, i32)), runs)
        self._rebuild(before, ahead, trips)

    def _ring(self, builder: Builder, number: int, pipelined: PipelinedLoad) -> Value:
        shape = (self.slots, *pipelined.writer.shape)
        type_ = TileType(shape, pipelined.writer.element)
        # The op is pure: its number keeps rings of one type apart.
        return builder.value(RingOp(type_, number=self.first_ring + number))

    def _fill(self, builder: Builder, ahead: _Ahead, slot: Value, runs: Value) -> _Ahead:
        """Copy the tiles of an iteration, if it runs, into a slot; returns what the next needs."""
        mapping: dict[Value, Value] = {self.loop.index: ahead.index}
        for i, value in zip(self.moving, ahead.carried, strict=True):
            mapping[self.loop.carried[i]] = value
        rings = list(ahead.rings)
        loads = {s.load: n for n, s in enumerate(self.pipelined)}
        for op in self.loop.body:
            if op not in self.slice:
                continue
            copy = builder.emit(op.clone(mapping))
            if isinstance(op, LoadOp):
                n = loads[op]
                load = _guarded(cast("LoadOp", copy), runs)
                rings[n] = builder.value(_async_copy(self.pipelined[n], rings[n], load, slot))
        # Also where the iteration does not run: waits count groups.
        builder.emit(CommitOp())
        yielded = self.loop.body.terminator.operands
        moved = [mapping.get(yielded[i], yielded[i]) for i in self.moving]
        return _Ahead(rings, builder.value(AddOp(ahead.index, self.loop.step)), moved)

    def _rebuild(self, before: Builder, ahead: _Ahead, trips: Value) -> None:
        """The loop with rings, the slot to read, and what the iteration ahead needs."""
        old, far = self.loop, self.slots - 1
        end = self._first_without_copies(before, trips)
        # Invariant, so computed before the loop.
        stride = before.value(MulOp(old.step, before.value(ConstantOp(far, old.step.type))))
        extra = [*ahead.rings, before.value(ConstantOp(0, i32)), *ahead.carried]
        body = Block()
        mapping: dict[Value, Value] = {}
        for arg in old.body.args:
            mapping[arg] = body.add_arg(arg.type, arg.name)
        added = [body.add_arg(value.type) for value in extra]
        new = ForOp(old.lower, old.upper, old.step, (*old.inits, *extra), body, **old.attrs)
        before.emit(new)
        builder = Builder(body, loc=old.loc)
        count = len(self.pipelined)
        slot = added[count]
        # S - 1 groups are out; the oldest of them is what this iteration reads.
        builder.emit(WaitOp(pending=far - 1))
        # The slot that the last iteration read.
        free = self._next_slot(builder, slot, far)
        index = builder.value(AddOp(body.args[0], stride))
        runs = builder.value(CompareOp(body.args[0], end, predicate="lt"))
        filled = self._fill(builder, _Ahead(added[:count], index, added[count + 1 :]), free, runs)
        for n, pipelined in enumerate(self.pipelined):
            read = LoadSlotOp(
                filled.rings[n], slot, pipelined.reader.type, pipelined.writer, pipelined.vector
            )
            mapping[pipelined.reader.result] = builder.value(read)
        self._copy_body(builder, mapping)
        yielded = [mapping.get(v, v) for v in old.body.terminator.operands]
        tail = [*filled.rings, self._next_slot(builder, slot, 1), *filled.carried]
        builder.emit(YieldOp((*yielded, *tail)))
        # Copies of iterations that do not run write zeros: they must end before other ops use the
        # bytes of the rings (see allocate_shared.py).
        before.emit(WaitOp(pending=0))
        Rewriter.replace(old, new.results[: len(old.results)])

    def _first_without_copies(self, builder: Builder, trips: Value) -> Value:
        """The index of the first iteration that no other follows S - 1 later."""
        far = builder.value(ConstantOp(self.slots - 1, trips.type))
        copied = builder.value(SubOp(trips, builder.value(MinOp(trips, far))))
        number = builder.value(CastOp(copied, self.loop.step.type))
        return builder.value(AddOp(self.loop.lower, builder.value(MulOp(number, self.loop.step))))

    def _next_slot(self, builder: Builder, slot: Value, step: int) -> Value:
        """(slot + step) mod slots."""
        moved = builder.value(AddOp(slot, builder.value(ConstantOp(step, i32))))
        limit = builder.value(ConstantOp(self.slots, i32))
        # A comparison, as S need not be a power of two, and a remainder is slow.
        past = builder.value(CompareOp(moved, limit, predicate="ge"))
        wrapped = builder.value(AddOp(moved, builder.value(ConstantOp(-self.slots, i32))))
        return builder.value(SelectOp(past, wrapped, moved))

    def _copy_body(self, builder: Builder, mapping: dict[Value, Value]) -> None:
        """An iteration without the pipelined loads and their conversions."""
        gone: set[Op] = set()
        for pipelined in self.pipelined:
            gone.update((pipelined.load, pipelined.reader, *pipelined.between))
        for op in self.loop.body:
            # The terminator is rebuilt, with rings and slot.
            if op in gone or op.next is None:
                continue
            builder.emit(op.clone(mapping))


def _async_copy(pipelined: PipelinedLoad, ring: Value, load: LoadOp, slot: Value) -> AsyncCopyOp:
    reader = pipelined.reader.type
    return AsyncCopyOp(
        ring, load.result, slot, writer=pipelined.writer, reader=reader, vector=pipelined.vector
    )


def _guarded(load: LoadOp, runs: Value) -> LoadOp:
    """Copy only if the iteration runs."""
    builder = Builder.at(load)
    pointer = load.pointer.type
    assert isinstance(pointer, TileType)
    spread = SplatOp(runs, shape=pointer.shape)
    spread.results[0].type = TileType(pointer.shape, i1, pointer.layout)
    mask = builder.value(spread)
    if load.mask is not None:
        mask = builder.value(AndOp(load.mask, mask))
        load.set_operand(1, mask)
        return load
    # A load without a mask has no `other`: what is masked off becomes zero.
    replacement = LoadOp(load.pointer, mask, None, **load.attrs)
    replacement.results[0].type = load.result.type
    builder.emit(replacement)
    Rewriter.replace(load, replacement.result)
    return replacement


# ---- which loops --------------------------------------------------------------------------------


@dataclass(frozen=True)
class SoftwarePipeline(Pass, name="nvidia-software-pipeline"):
    """Copy operands of products several iterations ahead, in every loop that allows it.

    stages: slots of a ring in loops that do not say; warps: of a program instance; capability: of
    the architecture.
    """

    stages: int = 3
    warps: int = 4
    capability: int = 90

    def run(self, function: Function) -> bool:
        arch = row_for(self.capability)
        machine = Machine.of(arch, self.warps)
        facts = analyze_alignment(function)
        rings = 0
        # an inner loop stands behind the one around it: so the innermost come first
        for loop in reversed([op for op in function.walk() if isinstance(op, ForOp)]):
            stages = self.stages if loop.stages is None else loop.stages
            # Rings inside belong to an inner loop that is pipelined.
            if stages < 2 or any(isinstance(op, RingOp) for op in loop.walk()):
                continue
            pipelined, slots = _plan(loop, facts, stages)
            slots = _fitting(function, loop, pipelined, slots, machine, arch.shared_optin)
            if slots >= 2:
                LoopPipeline(loop, pipelined, slots, rings).run()
                rings += len(pipelined)
        return rings > 0


def _plan(
    loop: ForOp, facts: dict[Value, Alignment], stages: int
) -> tuple[list[PipelinedLoad], int]:
    """The loads that may be made earlier, and the slots that all of them allow."""
    candidates = pipelined_loads(loop, facts)
    if not candidates:
        return [], 0
    slots = slots_by_dependence(loop, candidates, stages)
    # One slot would mean a copy in the iteration that reads it: nothing to overlap.
    pipelined = [s for s in candidates if slots[s.load] >= 2]
    # All rings of a loop share one slot number.
    return pipelined, min((slots[s.load] for s in pipelined), default=0)


def _fitting(
    function: Function,
    loop: ForOp,
    pipelined: Sequence[PipelinedLoad],
    most: int,
    machine: Machine,
    shared_limit: int,
) -> int:
    """As many slots, `most` at most, as fit beside all else that is kept in shared memory."""
    if not pipelined:
        return 0
    # Slots are read in the layout of the products: the conversions' own bytes become free.
    room = RingRoom(function, machine, loop, [s.reader for s in pipelined])
    sizes = [tile_bytes(s.writer) for s in pipelined]
    slots = most
    while slots >= 2 and room.bytes_with([slots * size for size in sizes]) > shared_limit:
        slots -= 1
    return slots
