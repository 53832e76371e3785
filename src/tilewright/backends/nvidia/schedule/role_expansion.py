"""Split a function into a producer, which issues TMA loads, and consumers, which do the rest.

The producer is the slice of the function that the loads need: the same loops and branches, scalar
arithmetic, the loads. The consumers are the function without the loads. Each loop of loads has a
ring of slots; loops of equal tiles share one. A slot has two mbarriers: consumers wait on `full`
for the data, the producer on `empty` for the last read.

    %ring, %full, %empty = ...
    nvidia.roles {
      cf.for %p = ... (%slot, %parity) {               cf.for %p = ... (%slot, %parity) {
        cf.for %k = ... (%slot, %parity, %acc) {         cf.for %k = ... (%slot, %parity) {
          nvidia.mbarrier_wait %full[%slot], %parity       nvidia.mbarrier_wait %empty[%slot], ...
          %acc = nvidia.wgmma ... {pending = 1}            nvidia.bulk_copy ..., %full[%slot]
          nvidia.mbarrier_arrive %empty[%slot - 1]         cf.yield next slot, parity
          cf.yield next slot, parity, %acc               }
        }                                                cf.yield %slot, %parity
        mem.store ...                                  }
      }                                              }
    }

Slot and parity continue through all enclosing loops: the producer already loads for the next item
of an outer loop while the consumers store the last one. A slot is released once the dots that read
it have completed; where waits are deferred, the next iteration releases it, and code after the loop
the last one. The producer's parities start with 1, the phase before the first one: all slots are
empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from tilewright.backends.nvidia.buffer_ops import (
    AllocOp,
    ReadOp,
    ShareOp,
    TransposeViewOp,
    ViewOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilewright.backends.nvidia.bulk_ops import (
    BulkCopyOp,
    MbarrierArriveOp,
    MbarriersOp,
    MbarrierWaitOp,
)
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.role_ops import RolesOp
from tilewright.backends.nvidia.schedule.deferred_waits import (
    carried_accumulator,
    deferred_dots,
    last_of_chains,
    wait_in_branches,
)
from tilewright.backends.nvidia.schedule.loop_buffers import buffer_of, share_after
from tilewright.backends.nvidia.schedule.loop_counters import LoopValues, carry_through
from tilewright.backends.nvidia.schedule.ping_pong import take_turns
from tilewright.backends.nvidia.schedule.producer_slice import enclosing
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
    LoopSchedule,
    Reader,
    is_read_as_loaded,
    readers,
)
from tilewright.backends.nvidia.schedule.slot_barriers import load_of_zeros
from tilewright.ir import Block, Builder, Function, Op, Rewriter, Value
from tilewright.ir.types import BufferType, i1, i32, u32, u64
from tilewright.layout import shared_row_major
from tilewright.ops import (
    DescriptorLoadOp,
    ForOp,
    ReturnOp,
    TransposeOp,
    YieldOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms import keep_slice, remove_dead


def split_roles(
    function: Function,
    schedules: Sequence[LoopSchedule],
    warps: int,
    registers: tuple[int, ...],
    groups: int = 1,
) -> None:
    """Split a function whose TMA loads are those of the schedules.

    warps: of a group of consumers; groups: of the ping-pong schedule of a block's programs
    """
    producer, mapping = Block(), dict[Value, Value]()
    for op in function.body:
        producer.insert(YieldOp(()) if isinstance(op, ReturnOp) else op.clone(mapping))
    before = Builder(function.body, function.body.first)
    rings = [_Ring(before, group, warps) for group in ring_groups(schedules)]
    turns = before.value(_barriers(groups, warps)) if groups > 1 else None
    # Before the roles there are only rings.
    shared = list[Op]()
    op = function.body.first
    while op is not before.before:
        assert op is not None
        shared.append(op)
        op = op.next
    loads = {a: _copy_of(a, mapping) for schedule in schedules for a in schedule.copies}
    keep_slice(producer, loads.values())
    for ring in rings:
        ring.produce(producer, loads)
        ring.consume(function.body)
    remove_dead(function)
    consumers = Block((u32,), ("group",))
    for op in list(function.body):
        if op not in shared and not isinstance(op, ReturnOp):
            function.body.detach(op)
            consumers.insert(op)
    consumers.insert(YieldOp(()))
    if turns is not None:
        take_turns(consumers, schedules[0], turns)
    roles = RolesOp(consumers, producer, registers=registers, groups=groups)
    Builder.at(function.body.terminator).emit(roles)


def ring_groups(schedules: Sequence[LoopSchedule]) -> list[list[LoopSchedule]]:
    """Groups of schedules whose loops copy equal tiles, one loop after the other."""
    groups: list[list[LoopSchedule]] = []
    for schedule in schedules:
        tiles = _tiles(schedule)
        fitting = (g for g in groups if _tiles(g[0]) == tiles and not _is_nested_with(schedule, g))
        group = next(fitting, None)
        if group is None:
            groups.append([schedule])
        else:
            group.append(schedule)
    return groups


def ring_buffers(schedules: Sequence[LoopSchedule]) -> list[BufferType]:
    """The buffers of all rings."""
    return [tile for group in ring_groups(schedules) for _, tile in _tiles(group[0])]


def _tiles(schedule: LoopSchedule) -> list[tuple[bool, BufferType]]:
    """The buffers of all parts of a ring, and whether they hold tiles for the next iteration."""
    return [
        (part[0].carried is not None, buffer_of(ahead, schedule.slots))
        for part in ring_parts(schedule)
        for ahead in part
    ]


def _is_nested_with(schedule: LoopSchedule, group: Sequence[LoopSchedule]) -> bool:
    """Whether a loop is nested in one of a group, or contains one."""
    loops = [(schedule.loop, other.loop) for other in group]
    return any(inner in (one, other) for one, other in loops for inner in _nested(one, other))


def _nested(one: ForOp, other: ForOp) -> list[Op]:
    """The inner of two nested loops."""
    return [op for op in other.walk() if op is one] + [op for op in one.walk() if op is other]


def _copy_of(ahead: AheadLoad, mapping: dict[Value, Value]) -> Op:
    """The load in the producer."""
    load = mapping[ahead.load.result].op
    assert load is not None
    return load


def ring_parts(schedule: LoopSchedule) -> list[list[AheadLoad]]:
    """The copies of a loop that are waited for and released together.

    Where dots complete in their iteration, copies with the same readers form a part. Where waits
    are deferred, or threads read a copy, all copies for the iteration itself form one.
    """
    copies = {ahead: _dots_of(ahead, schedule.loop) for ahead in schedule.copies}
    own = {ahead: dots for ahead, dots in copies.items() if ahead.carried is None}
    if deferred_dots(schedule) or not all(own.values()):
        copies |= dict.fromkeys(own, ())
    parts: dict[tuple[bool, tuple[Op, ...]], list[AheadLoad]] = {}
    for ahead, dots in copies.items():
        parts.setdefault((ahead.carried is not None, dots), []).append(ahead)
    return list(parts.values())


def _read_by(copies: Sequence[AheadLoad], loop: ForOp) -> tuple[Op, ...]:
    """The dots that read some copies, in order; none if other ops read one of them."""
    found = {_dots_of(ahead, loop) for ahead in copies}
    return found.pop() if len(found) == 1 else ()


def _dots_of(ahead: AheadLoad, loop: ForOp) -> tuple[Op, ...]:
    """The dots that read a copy, in order; none if other ops read it as well."""
    found = readers(ahead)
    if is_read_as_loaded(ahead):
        return ()
    users = {user for reader in found for user in reader.op.results[0].uses}
    shared = all(isinstance(reader.op, ShareOp) for reader in found)
    if not shared or not all(isinstance(u, WgmmaOp) and u.parent is loop.body for u in users):
        return ()
    return tuple(op for op in loop.body if op in users)


@dataclass(frozen=True, slots=True)
class _Part:
    """The slots of copies that are waited for and released together, with their mbarriers.

    is_carried: the copies are for the next iteration; the first one gets zeros
    """

    is_carried: bool
    buffers: tuple[Value, ...]
    full: Value
    empty: Value

    def wait(self, builder: Builder, at: Sequence[Value]) -> None:
        """Wait for the copies to a slot. at: slot and parity."""
        slot, parity = at
        builder.emit(MbarrierWaitOp(_slot(builder, self.full, slot), parity))

    def release(self, builder: Builder, slot: Value, runs: Value | None = None) -> None:
        """Release a slot to the producer. runs: whether it is empty; None: it is."""
        runs = builder.constant(1, i1) if runs is None else runs
        builder.emit(MbarrierArriveOp(_slot(builder, self.empty, slot), runs))

    def await_release(self, builder: Builder, at: Sequence[Value]) -> None:
        """Wait until a slot is empty."""
        slot, parity = at
        builder.emit(MbarrierWaitOp(_slot(builder, self.empty, slot), parity))

    def copy(self, load: Op, buffer: Value, slot: Value, builder: Builder) -> None:
        """Issue one copy."""
        target, full = _slot(builder, buffer, slot), _slot(builder, self.full, slot)
        always = builder.constant(1, i1)
        builder.emit(BulkCopyOp(load.results[0], target, full, always)).loc = load.loc


class _Ring:
    """The slots of the copies of some loops, and their mbarriers.

    Copies for the next iteration have one more slot for each loop: the zeros of the first one.
    """

    def __init__(self, before: Builder, schedules: Sequence[LoopSchedule], warps: int) -> None:
        self.schedules, self.slots = schedules, schedules[0].slots
        self.parts = [
            self._part(before, [buffer_of(ahead, self.slots) for ahead in part], part, warps)
            for part in ring_parts(schedules[0])
        ]

    def _part(
        self,
        before: Builder,
        tiles: Sequence[BufferType],
        copies: Sequence[AheadLoad],
        warps: int,
    ) -> _Part:
        buffers = tuple(before.value(AllocOp(tile)) for tile in tiles)
        full = before.value(_barriers(self.slots, len(tiles)))
        empty = before.value(_barriers(self.slots, warps))
        return _Part(copies[0].carried is not None, buffers, full, empty)

    # ---- the producer -------------------------------------------------------------------------

    def produce(self, producer: Block, copies: Mapping[AheadLoad, Op]) -> None:
        """Issue the copies as soon as their slot is empty."""
        loads = [[copies[a] for a in schedule.copies] for schedule in self.schedules]
        loops = [enclosing(found[0], producer)[-1] for found in loads]
        counters = self._count(loops, producer, 1)
        for schedule, found in zip(self.schedules, counters, strict=True):
            for copied, part in zip(ring_parts(schedule), self.parts, strict=True):
                loads_of = [copies[ahead] for ahead in copied]
                if part.is_carried:
                    self._copy_for_next(part, loads_of, found[part.is_carried])
                else:
                    self._copy(part, loads_of, found[part.is_carried].inside)

    def _copy(self, part: _Part, loads: Sequence[Op], at: Sequence[Value]) -> None:
        part.await_release(Builder.at(loads[0]), at)
        for buffer, load in zip(part.buffers, loads, strict=True):
            part.copy(load, buffer, at[0], Builder.after(load))

    def _copy_for_next(self, part: _Part, loads: Sequence[Op], counter: LoopValues) -> None:
        """Issue zeros for the first iteration, and in each iteration the copies of the next one."""
        loop = loads[0].parent.owner if loads[0].parent is not None else None
        assert isinstance(loop, ForOp)
        before, end = Builder.at(loop), Builder.at(loop.body.terminator)
        part.await_release(before, counter.entering)
        part.await_release(end, counter.left)
        for buffer, load in zip(part.buffers, loads, strict=True):
            zeros = load_of_zeros(before, cast("DescriptorLoadOp", load))
            part.copy(zeros, buffer, counter.entering[0], before)
            part.copy(load, buffer, counter.left[0], end)

    # ---- the consumers ------------------------------------------------------------------------

    def consume(self, consumers: Block) -> None:
        """Read the slots in place of loads, and release them."""
        deferred = [deferred_dots(schedule) for schedule in self.schedules]
        for schedule, dots in zip(self.schedules, deferred, strict=True):
            for dot in last_of_chains(dots):
                wait_in_branches(dot, schedule.loop)
        loads = [ring_parts(schedule) for schedule in self.schedules]
        counters = self._count([schedule.loop for schedule in self.schedules], consumers, 0)
        for number, schedule in enumerate(self.schedules):
            for part, copied in zip(self.parts, loads[number], strict=True):
                counter = counters[number][part.is_carried]
                self._consume(schedule, part, copied, deferred[number], counter)

    def _consume(
        self,
        schedule: LoopSchedule,
        part: _Part,
        copied: Sequence[AheadLoad],
        deferred: Sequence[WgmmaOp],
        counter: LoopValues,
    ) -> None:
        loop, slot = schedule.loop, counter.inside[0]
        dots = () if deferred else _read_by(copied, loop)
        first = dots[0] if dots else loop.body.first
        part.wait(Builder(loop.body, first, loop.loc), counter.inside)
        accumulators = [carried_accumulator(dot).index - 1 for dot in last_of_chains(deferred)]
        buffers = dict(zip(copied, part.buffers, strict=True))
        parts = dot_parts(schedule, deferred) if deferred else None
        last = _emit_parts(parts, buffers, slot) if parts else _run_on(deferred)
        for ahead, buffer in buffers.items():
            _read(ahead, buffer, slot)
        if last is not None:
            self._release_later(part, loop, last, counter)
            self._release_after(part, loop, accumulators, counter)
        elif dots:
            part.release(Builder.after(dots[-1]), slot)
        else:
            part.release(Builder.at(loop.body.terminator), counter.inside[0])
        if part.is_carried:
            _read_after(part, copied, counter.after)

    def _release_later(self, part: _Part, loop: ForOp, dot: Op, counter: LoopValues) -> None:
        """Release the previous slot after a dot that completes those of the last iteration."""
        builder = Builder.after(dot)
        runs = builder.ne(loop.index, loop.lower)
        part.release(builder, self._before(builder, counter.inside[0]), runs)

    def _release_after(
        self, part: _Part, loop: ForOp, accumulators: Sequence[int], counter: LoopValues
    ) -> None:
        """Release the last slot of a loop after it, once its accumulators are complete."""
        builder = Builder.after(loop)
        for number in accumulators:
            _wait_after(builder, loop.results[number])
        runs = builder.lt(loop.lower, loop.upper)
        part.release(builder, self._before(builder, counter.after[0]), runs)

    def _before(self, builder: Builder, slot: Value) -> Value:
        """The slot before another one."""
        is_first = builder.eq(slot, 0)
        before = builder.add(slot, -1)
        return builder.select(is_first, self.slots - 1, before)

    def _count(
        self, loops: Sequence[Op], around: Block, parity: int
    ) -> list[dict[bool, LoopValues]]:
        """Slot and parity of each loop, by whether they are those of carried copies."""
        counters: list[dict[bool, LoopValues]] = [{} for _ in loops]
        for is_carried in dict.fromkeys(part.is_carried for part in self.parts):
            start = Builder(around, around.first)
            inits = [start.constant(0, i32), start.constant(parity, i32)]
            found: dict[Op, LoopValues] = {}
            carry_through(loops, around, inits, self._following, found, counts_exit=is_carried)
            for counter, loop in zip(counters, loops, strict=True):
                counter[is_carried] = found[loop]
        return counters

    def _following(self, builder: Builder, values: Sequence[Value]) -> list[Value]:
        """Slot and parity of the next iteration."""
        slot, parity = values
        wraps = builder.eq(slot, self.slots - 1)
        following = builder.select(wraps, 0, builder.add(slot, 1))
        return [following, builder.bit_xor(parity, builder.cast(wraps, i32))]


def _barriers(count: int, arrivals: int) -> MbarriersOp:
    type_ = BufferType((1,), u64, shared_row_major((1,)), count)
    return MbarriersOp(result_type=type_, arrivals=arrivals)


def _slot(builder: Builder, buffer: Value, slot: Value) -> Value:
    return builder.value(ViewOp(buffer, slot))


def _wait_after(builder: Builder, accumulator: Value) -> None:
    """Make all uses of an accumulator wait for it."""
    users = list(accumulator.uses)
    ended = builder.value(WgmmaWaitOp(accumulator))
    for user in users:
        for number, operand in enumerate(user.operands):
            if operand is accumulator:
                user.set_operand(number, ended)


def _run_on(dots: Sequence[WgmmaOp]) -> Op | None:
    """Defer the waits of dots; returns the dot that completes those of the last iteration."""
    for dot in dots:
        dot.attrs["pending"] = len(dots) if dot is dots[-1] else None
    return dots[-1] if dots else None


def _emit_parts(parts: Sequence[DotPart], buffers: Mapping[AheadLoad, Value], slot: Value) -> Op:
    """Replace dots by their parts; returns the first, which completes earlier dots."""
    found: dict[Op, tuple[Value, Reader]] = {
        reader.op: (b, reader) for ahead, b in buffers.items() for reader in readers(ahead)
    }
    mapping: dict[Value, Value] = {}
    builder = Builder.at(parts[0].dot)

    def read(op: Op, half: Half | None) -> Value:
        view = _view(builder, *found[op], slot)
        return builder.value(part_read(view, op, half))

    emitted = list[Op]()
    for part in parts:
        builder.before = part.dot
        emitted.append(emit_part(part, builder, mapping, read))
    for dot in dict.fromkeys(part.dot for part in parts):
        Rewriter.replace(dot, mapping[dot.result])
    left_out = replaced_ops(parts)
    for op in [op for op in reversed(builder.block) if op in left_out]:
        Rewriter.erase(op)
    return emitted[0]


def _view(builder: Builder, buffer: Value, reader: Reader, slot: Value) -> Value:
    """A slot with its dims in the order of a reader."""
    view = _slot(builder, buffer, slot)
    order = reader.order
    return view if order is None else builder.value(TransposeViewOp(view, order=order))


def _read(ahead: AheadLoad, buffer: Value, slot: Value) -> None:
    """Make dots or threads read a slot."""
    for reader in readers(ahead):
        builder = Builder.at(reader.op)
        view = _view(builder, buffer, reader, slot)
        if isinstance(reader.op, ConvertOp):
            view = builder.value(ReadOp(view, result_type=reader.op.result.type))
        Rewriter.replace(reader.op, view)
    if is_read_as_loaded(ahead):
        builder = Builder.after(ahead.load)
        read = ReadOp(_slot(builder, buffer, slot), result_type=ahead.load.type)
        Rewriter.replace_uses(ahead.load.result, builder.value(read))


def _read_after(part: _Part, copied: Sequence[AheadLoad], at: Sequence[Value]) -> None:
    """Make dots after a loop read the tiles that its last iteration loaded."""
    tiles = [_tile_at_exit(ahead) for ahead in copied]
    dots = [op for tile in tiles for op in _dots_after(tile)]
    last = dots[-1]
    builder = Builder.after(last)
    part.release(builder, at[0])
    builder = Builder.at(dots[0])
    part.wait(builder, at)
    for tile, buffer in zip(tiles, part.buffers, strict=True):
        share_after(builder, tile, _slot(builder, buffer, at[0]))


def _tile_at_exit(ahead: AheadLoad) -> Value:
    """The tile for the next iteration at the exit of the loop."""
    assert ahead.carried is not None and isinstance(ahead.carried.owner, Block)
    loop = ahead.carried.owner.owner
    assert isinstance(loop, ForOp)
    return loop.results[ahead.carried.index - 1]


def _dots_after(tile: Value) -> list[Op]:
    """The dots that read a tile, transposed or not."""
    found: list[Op] = []
    for user in tile.uses:
        result = user.results[0]
        found += _dots_after(result) if isinstance(user, TransposeOp) else list(result.uses)
    assert all(isinstance(op, WgmmaOp) for op in found), tile
    return found
