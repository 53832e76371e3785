"""Rewrite a loop by its schedule: buffers, copies before the loop, and copies ahead in its body.

Copies of iteration i fill slot i mod S of a buffer, S - 1 iterations ahead. An iteration waits for
its copies, issues those ahead, and reads:

    cf.for %k = %lo, %hi, %s (%p) {          copy iterations 0 .. S-2 to slots 0 .. S-2
      %a = mem.load (address of %k, %p)      cf.for %k = %lo, %hi, %s (%p, %slot ...) {
      %x = nvidia.convert %a           ->      nvidia.wait {pending = S - 2}
      %c = tile.dot %x, ...                    %a = mem.load (address of %k + (S-1) %s) if %k < %e
      cf.yield %p + step                       nvidia.async_copy %a, %free
    }                                          nvidia.commit
                                               %x = nvidia.read %view
                                               %c = tile.dot %x, ...
                                             }
                                             nvidia.wait {pending = 0}

A tile that the source itself loads for the next iteration is no longer a carried value: the slot of
that iteration holds it, and its initial value fills the first slot:

    %x = mem.load ...                        nvidia.async_copy ..., slot 0
    cf.for %k = ... (%a = %x) {       ->     cf.for %k = ... (%slot ...) {
      %c = tile.dot %a, ...                    %a = nvidia.read %view
      %b = mem.load (address of %k)            %b = mem.load (address of %k + (S-2) %s) if ...
      cf.yield %b                              nvidia.async_copy %b, %free
    }                                        }

Waits of wgmma dots that only accumulate are deferred to the next iteration. The dot is then first
in the body and completes the previous one, and the wait that follows is for copies of the *next*
iteration. The barrier after that wait, which the copies need before they overwrite the operands of
the previous dot, then overlaps with the dot. With three slots the copies are first, and have their
own barrier.

%e is the index of the first iteration without one S - 1 later, computed from the trip count: a copy
is issued only for an iteration that exists, however close an index is to the limits of its type.
Masked elements become zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import cast

from tilewright.backends.nvidia.buffer_ops import (
    AllocOp,
    AsyncCopyOp,
    CommitOp,
    ReadOp,
    ShareOp,
    TransposeViewOp,
    ViewOp,
    WaitOp,
    WgmmaWaitOp,
    WriteOp,
)
from tilewright.backends.nvidia.schedule.deferred_waits import (
    carried_accumulator,
    computed_operands,
    last_of_chains,
    wait_in_branches,
)
from tilewright.backends.nvidia.schedule.loop_buffers import (
    buffer_of,
    deferred_in,
    doubled_buffer,
    share_after,
)
from tilewright.backends.nvidia.schedule.register_operands import (
    DotPart,
    Half,
    dot_parts,
    emit_part,
    part_read,
    replaced_ops,
)
from tilewright.backends.nvidia.schedule.schedule_loop import (
    AheadLoad,
    Load,
    LoopSchedule,
    inputs,
    readers,
)
from tilewright.backends.nvidia.schedule.slot_barriers import SlotBarriers
from tilewright.ir import Block, Builder, Op, Rewriter, Value
from tilewright.ir.types import TileType, i1, i32
from tilewright.ops import (
    DescriptorLoadOp,
    ForOp,
    LoadOp,
    SplatOp,
    TransposeOp,
    YieldOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms import trip_count

_FEW_SLOTS = 3
"""A dot reads one slot while another one is filled. Copies that are issued after the wait have one
iteration to arrive, those issued before it two, at the price of a second barrier."""


@dataclass(slots=True)
class _Stage:
    """The part of the body that is computed `distance` iterations ahead: `ops`, among them `loads`.

    carried: positions of the carried values that it computes as well; index, values: of its next
    iteration, the values in the order of `carried`
    """

    distance: int
    ops: set[Op]
    loads: Sequence[AheadLoad]
    carried: list[int]
    index: Value
    values: list[Value]

    @property
    def needed(self) -> list[int]:
        """Distances of the iterations that need the loads (`AheadLoad.needed`)."""
        return sorted({ahead.needed for ahead in self.loads})


class LoopExpansion:
    """The rewrite of one loop.

    loaded: by load into registers, its values for iterations that are loaded but not yet used, the
    oldest first
    """

    def __init__(self, schedule: LoopSchedule) -> None:
        self.schedule, self.loop, self.slots = schedule, schedule.loop, schedule.slots
        self.stages = [self._stage(distance) for distance in schedule.distances]
        self.buffers: dict[AheadLoad, Value] = {}
        self.loaded: dict[Load, list[Value]] = {
            ahead.load: [] for ahead in schedule.loads if not ahead.is_copied
        }
        self.barriers = SlotBarriers(schedule.copies, self.slots)
        # Waits count groups of copies that threads issue.
        self.has_groups = any(ahead.vector for ahead in schedule.copies)
        self.in_slots = {a.carried: a for a in schedule.copies if a.carried is not None}
        self.distance = {ahead.load: ahead.distance for ahead in schedule.loads}
        self.deferred = deferred_in(schedule)
        self.parts = (dot_parts(schedule, self.deferred) or []) if self.deferred else []
        # Accumulators are read from the last dot of each chain.
        self.chain_ends = last_of_chains(self.deferred)
        for dot in self.chain_ends:
            wait_in_branches(dot, self.loop)
        self.computed: dict[Op, Value] = {}
        is_plain = self.has_groups and bool(self.deferred) and not self.parts
        self.copies_first = is_plain and self.slots == _FEW_SLOTS

    def _stage(self, distance: int) -> _Stage:
        ops = self.schedule.slice(distance)
        loads = [ahead for ahead in self.schedule.loads if ahead.distance == distance]
        carried = _carried_by(self.loop, ops)
        values = [self.loop.inits[i] for i in carried]
        return _Stage(distance, ops, loads, carried, self.loop.lower, values)

    def run(self) -> None:
        before = Builder.at(self.loop)
        trips = trip_count(before, self.loop)
        for ahead in self.schedule.copies:
            self.buffers[ahead] = before.value(AllocOp(buffer_of(ahead, self.slots)))
        for op in computed_operands(self.deferred, self.schedule):
            self.computed[op] = before.value(AllocOp(doubled_buffer(op)))
        phase = self.barriers.make(before)
        for step in range(-max(self.slots - 1, self.stages[0].distance), 0):
            self._before(before, trips, step)
        needed = dict.fromkeys(n for stage in self.stages for n in stage.needed)
        self._rebuild(before, {n: self._end(before, trips, n) for n in needed}, phase)

    # ---- before the loop ----------------------------------------------------------------------

    def _before(self, before: Builder, trips: Value, step: int) -> None:
        """Issue the loads that iteration `step`, which is negative, would issue ahead."""
        group = step + self.slots - 1
        # The nearest first: it uses earlier loads of further stages, not those of this step.
        for stage in reversed(self.stages):
            if step + stage.distance < 0:
                continue
            runs: dict[int, Value] = {}
            for needed in stage.needed:
                # The loop may have fewer iterations.
                runs[needed] = before.lt(step + needed, trips)
            slot = before.constant(max(group, 0), i32)
            self._make(before, stage, slot, runs)
        if not group:
            self._initialize(before)
        if group >= 0 and self.has_groups:
            before.emit(CommitOp())

    def _initialize(self, before: Builder) -> None:
        """Fill the first slots with the tiles that the source itself loads before the loop."""
        for ahead, buffer in self.buffers.items():
            if ahead.carried is None:
                continue
            init, slot = self.loop.inits[ahead.carried.index - 1], before.constant(0, i32)
            view = before.value(ViewOp(buffer, slot))
            vector = self.schedule.initial.get(ahead.load, 0)
            # The source loads it even if the loop has no iterations: no address is new.
            if ahead.is_bulk:
                self.barriers.fill_with_zeros(before, ahead, view, slot)
            elif vector:
                before.emit(AsyncCopyOp(init, view, vector=vector))
            else:
                before.emit(WriteOp(init, view))

    def _make(
        self, builder: Builder, stage: _Stage, slot: Value, runs: Mapping[int, Value]
    ) -> None:
        """Issue the loads of a stage for its next iteration.

        slot: of its copies; runs: by distance, whether the iteration that needs the load exists
        """
        mapping: dict[Value, Value] = {self.loop.index: stage.index}
        for i, value in zip(stage.carried, stage.values, strict=True):
            mapping[self.loop.carried[i]] = value
        for load in self.loaded:
            lead = self.distance[load] - stage.distance
            if lead > 0:
                mapping[load.result] = self.loaded[load][-lead]
        loads = {ahead.load: ahead for ahead in stage.loads}
        new: dict[Load, Value] = {}
        for op in self.loop.body:
            if op not in stage.ops:
                continue
            copy = builder.emit(op.clone(mapping))
            if not isinstance(op, LoadOp | DescriptorLoadOp):
                continue
            ahead = loads[op]
            runs_now = runs[ahead.needed]
            if ahead.is_bulk:
                view = builder.value(ViewOp(self.buffers[ahead], slot))
                self.barriers.copy(builder, ahead, copy.results[0], view, slot, runs_now)
                continue
            load = _guarded(cast("LoadOp", copy), runs_now)
            mapping[op.result] = load.result
            if ahead.vector:
                view = builder.value(ViewOp(self.buffers[ahead], slot))
                builder.emit(AsyncCopyOp(load.result, view, vector=ahead.vector)).loc = op.loc
            else:
                new[op] = load.result
        for load, value in new.items():
            self.loaded[load].append(value)
        yielded = self.loop.body.terminator.operands
        stage.values = [mapping.get(yielded[i], yielded[i]) for i in stage.carried]
        stage.index = builder.add(stage.index, self.loop.step)

    # ---- the loop -----------------------------------------------------------------------------

    def _end(self, builder: Builder, trips: Value, distance: int) -> Value:
        """The index of the first iteration without another one `distance` later."""
        made = builder.sub(trips, builder.min(trips, distance))
        number = builder.cast(made, self.loop.step.type)
        return builder.add(self.loop.lower, builder.mul(number, self.loop.step))

    def _steps(self, builder: Builder, count: int) -> Value:
        """The difference of the index over some iterations."""
        return builder.mul(self.loop.step, count)

    def _rebuild(self, before: Builder, ends: Mapping[int, Value], phase: Sequence[Value]) -> None:
        """Build the loop that carries the slot to read, and the values of barriers and stages."""
        old, far = self.loop, self.slots - 1
        # Loop-invariant.
        steps = {stage.distance: self._steps(before, stage.distance) for stage in self.stages}
        if self.deferred and self.has_groups:
            before.emit(WaitOp(pending=far - 1, proxy=True))
        carried = [value for stage in self.stages for value in stage.values]
        loaded = [value for values in self.loaded.values() for value in values]
        zero = before.constant(0, i32)
        extra = [zero, *([zero] if self.computed else []), *phase, *carried, *loaded]
        body = Block()
        args = [arg for arg in old.body.args if arg not in self.in_slots]
        inits = [old.inits[arg.index - 1] for arg in args[1:]]
        mapping = {arg: body.add_arg(arg.type, arg.name) for arg in args}
        added = iter([body.add_arg(value.type) for value in extra])
        new = ForOp(old.lower, old.upper, old.step, (*inits, *extra), body, **old.attrs)
        before.emit(new)
        builder = Builder(body, loc=old.loc)
        slot = next(added)
        parity = next(added) if self.computed else slot
        phase = list(islice(added, len(phase)))
        for stage in self.stages:
            stage.values = list(islice(added, len(stage.values)))
        self.loaded = {load: list(islice(added, len(v))) for load, v in self.loaded.items()}
        for load, values in self.loaded.items():
            mapping[load.result] = values[0]
        index, body_ops = body.args[0], [op for op in old.body if op is not old.body.last]
        first = 0 if self.parts or not self.deferred else body_ops.index(self.deferred[-1]) + 1
        copier = _MainOps(self, builder, mapping, slot, parity)
        copier.read_carried()
        if self.deferred:
            self.barriers.wait(builder, slot, phase)
        if self.parts:
            copier.start(self.parts[0])
        copier.copy(body_ops[:first])
        self._copy_ahead(builder, slot, index, ends, steps)
        if not self.deferred:
            self.barriers.wait(builder, slot, phase)
        copier.copy(body_ops[first:])
        ends_with = [old.body.terminator.operands[arg.index - 1] for arg in args[1:]]
        yielded = [mapping.get(v, v) for v in ends_with]
        moved = [value for stage in self.stages for value in stage.values]
        newest = [value for values in self.loaded.values() for value in values[1:]]
        slots = [self._next_slot(builder, slot, 1), *self._next_parity(builder, parity)]
        slots += self.barriers.following(builder, slot, phase)
        builder.emit(YieldOp((*yielded, *slots, *moved, *newest)))
        self._finish(before, args[1:], new)

    def _copy_ahead(
        self,
        builder: Builder,
        slot: Value,
        index: Value,
        ends: Mapping[int, Value],
        steps: Mapping[int, Value],
    ) -> None:
        """Wait for the copies that are read next, and issue those of later iterations."""
        if not self.copies_first:
            self._wait_for_next(builder)
        # The slot that the previous iteration read.
        free = self._next_slot(builder, slot, self.slots - 1)
        for stage in reversed(self.stages):
            stage.index = builder.add(index, steps[stage.distance])
            runs = {n: builder.lt(index, ends[n]) for n in stage.needed}
            self._make(builder, stage, free, runs)
        if self.has_groups:
            # Also for iterations that do not exist: waits count groups.
            builder.emit(CommitOp())
        if self.copies_first:
            self._wait_for_next(builder)

    def _wait_for_next(self, builder: Builder) -> None:
        """Wait for the copies to the slot that is read next."""
        if self.has_groups:
            # S - 1 groups are in flight before the next ones; deferred dots have read the first.
            read = 1 if self.deferred and not self.copies_first else 0
            pending = self.slots - 2 - read
            builder.emit(WaitOp(pending=pending, proxy=self._feeds_warpgroups()))

    def _next_parity(self, builder: Builder, parity: Value) -> list[Value]:
        """The slot of the computed operands of the next iteration, which have two slots."""
        if not self.computed:
            return []
        return [builder.bit_xor(parity, 1)]

    def _finish(self, before: Builder, kept: Sequence[Value], new: ForOp) -> None:
        """Emit the code after the loop. kept: arguments of the old loop that the new one keeps."""
        # Copies of iterations that do not exist write zeros: they must complete before other ops
        # use the bytes of the buffers (allocate_shared.py).
        last = [self.loop.results[arg.index - 1] for arg in self.in_slots]
        if self.schedule.copies:
            before.emit(WaitOp(pending=0, proxy=any(map(_is_shared, last))))
        results = list(self.loop.inits)
        for arg, result in zip(kept, new.results, strict=False):
            results[arg.index - 1] = result
        for arg, ahead in self.in_slots.items():
            tile = self.loop.results[arg.index - 1]
            if not tile.uses:
                continue
            slot, *others = new.results[len(kept) :]
            if ahead.is_bulk:
                self.barriers.wait_for(before, ahead, slot, others[bool(self.computed) :])
            view = before.value(ViewOp(self.buffers[ahead], slot))
            share_after(before, tile, view)
            if tile.uses:
                results[tile.index] = before.value(ReadOp(view, result_type=tile.type))
        for dot in self.chain_ends:
            number = carried_accumulator(dot).index - 1
            results[number] = before.value(WgmmaWaitOp(results[number]))
        Rewriter.replace(self.loop, results)

    def _feeds_warpgroups(self) -> bool:
        """Whether wgmma reads tiles that threads copy."""
        copied = (ahead for ahead in self.schedule.copies if ahead.vector)
        found = (reader.op for ahead in copied for reader in readers(ahead))
        return any(isinstance(op, ShareOp) for op in found)

    def _next_slot(self, builder: Builder, slot: Value, step: int) -> Value:
        """(slot + step) mod slots."""
        moved = builder.add(slot, step)
        # S need not be a power of two, and a remainder is slow.
        past = builder.ge(moved, self.slots)
        return builder.select(past, builder.add(moved, -self.slots), moved)


def _carried_by(loop: ForOp, ops: set[Op]) -> list[int]:
    """Positions of the carried values that ops of the body use, in this iteration or, through the
    values that it yields, in a later one."""
    yielded = dict(zip(loop.carried, loop.body.terminator.operands, strict=True))
    needed, new = set[Value](), {value for op in ops for value in inputs(op)}
    while new := (new & yielded.keys()) - needed:
        needed |= new
        new = {yielded[value] for value in new}
    return [i for i, arg in enumerate(loop.carried) if arg in needed]


def _is_shared(tile: Value) -> bool:
    """Whether wgmma reads a tile, transposed or not."""
    return any(
        isinstance(user, ShareOp) or (isinstance(user, TransposeOp) and _is_shared(user.result))
        for user in tile.uses
    )


class _MainOps:
    """The copy of the ops of an iteration that are not issued ahead."""

    def __init__(
        self,
        expansion: LoopExpansion,
        builder: Builder,
        mapping: dict[Value, Value],
        slot: Value,
        parity: Value,
    ) -> None:
        self.builder, self.mapping, self.slot, self.parity = builder, mapping, slot, parity
        self.computed = expansion.computed
        self.parts: dict[Op, list[DotPart]] = {part.dot: [] for part in expansion.parts}
        for part in expansion.parts:
            self.parts[part.dot].append(part)
        self.left_out = replaced_ops(expansion.parts)
        self.loads = set(expansion.loaded)
        self.buffers, self.deferred = expansion.buffers, expansion.deferred
        self.copies = {ahead.load: ahead for ahead in self.buffers}
        self.read_by: dict[Op, tuple[AheadLoad, tuple[int, ...] | None]] = {
            r.op: (ahead, r.order) for ahead in self.buffers for r in readers(ahead)
        }

    def read_carried(self) -> None:
        """Read the tiles that the source itself loaded one iteration before."""
        for ahead in self.buffers:
            if ahead.carried is not None:
                self._read(ahead)

    def _read(self, ahead: AheadLoad) -> None:
        """Read a tile into registers in the layout of its load, for users in that layout."""
        if not all(self._replaces(user) for user in ahead.tile.uses):
            read = ReadOp(self._view(ahead), result_type=ahead.tile.type)
            self.mapping[ahead.tile] = self.builder.value(read)

    def start(self, part: DotPart) -> None:
        """Emit the first part of the dots."""
        del self.parts[part.dot][0]
        for value in (part.dot.a, part.dot.b):
            if value.op in self.read_by and value.op not in self.left_out:
                self.mapping[value] = self._reading(value.op)
        emit_part(part, self.builder, self.mapping, self.read)

    def read(self, op: Op, half: Half | None) -> Value:
        """A read of a tile, or half of it, from its slot, in place of a conversion."""
        return self.builder.value(part_read(self._view_of(op), op, half))

    def copy(self, ops: Sequence[Op]) -> None:
        """Copy ops of the body."""
        for op in ops:
            if op in self.parts:
                for part in self.parts[op]:
                    emit_part(part, self.builder, self.mapping, self.read)
            elif isinstance(op, LoadOp | DescriptorLoadOp) and op in self.copies:
                if self.copies[op].carried is None:
                    self._read(self.copies[op])
            elif op not in self.left_out:
                self._copy(op)

    def _copy(self, op: Op) -> None:
        if op in self.computed:
            view = self.builder.value(ViewOp(self.computed[op], self.parity))
            self.builder.emit(WriteOp(self.mapping[op.operands[0]], view))
            self.mapping[op.results[0]] = view
        elif op in self.read_by:
            self.mapping[op.results[0]] = self._reading(op)
        elif op not in self.loads and not self._replaces(op):
            new = self.builder.emit(op.clone(self.mapping))
            if op in self.deferred:
                is_last = op is self.deferred[-1]
                new.attrs["pending"] = len(self.deferred) if is_last else None

    def _replaces(self, op: Op) -> bool:
        """Whether reads from a buffer take the place of an op."""
        if isinstance(op, TransposeOp):
            return bool(op.result.uses) and all(user in self.read_by for user in op.result.uses)
        return op in self.read_by

    def _view(self, ahead: AheadLoad) -> Value:
        return self.builder.value(ViewOp(self.buffers[ahead], self.slot))

    def _reading(self, op: Op) -> Value:
        """The value of a conversion of a load: registers, or the buffer itself."""
        view = self._view_of(op)
        if isinstance(op, ShareOp):
            return view
        return self.builder.value(ReadOp(view, result_type=op.results[0].type))

    def _view_of(self, op: Op) -> Value:
        ahead, order = self.read_by[op]
        view = self._view(ahead)
        return view if order is None else self.builder.value(TransposeViewOp(view, order=order))


def _guarded(load: LoadOp, runs: Value) -> LoadOp:
    """Mask a load by whether its iteration exists."""
    builder = Builder.at(load)
    pointer, mask = load.pointer.type, runs
    if isinstance(pointer, TileType):
        spread = SplatOp(runs, shape=pointer.shape)
        spread.results[0].type = TileType(pointer.shape, i1, pointer.layout)
        mask = builder.value(spread)
    if load.mask is not None:
        load.set_operand(1, builder.bit_and(load.mask, mask))
        return load
    # A load without a mask has no `other`: masked elements become zero.
    replacement = LoadOp(load.pointer, mask, None, **load.attrs)
    replacement.results[0].type = load.result.type
    builder.emit(replacement)
    Rewriter.replace(load, replacement.result)
    return replacement
