"""Splits a function into a producer, which asks for copies, and consumers, which do all else.

The producer is the slice of the function that the copies need: the same loops and branches, scalar
arithmetic, the copies. The consumers are the function without the copies. Loops of copies have
rings of slots, those of equal tiles the same one. A slot has two mbarriers: `full` tells the
consumers that the data is there, `empty` the producer that they are done with it.

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

Slot and parity go on through all loops around: so the producer is already at the next item of an
outer loop while the consumers store the last one. A slot is released once the dots that read it
have ended; those that go on while the next iteration starts, by the next iteration, and the last
ones behind the loop. The producer's parities begin with 1, the phase before the first one: all
slots are empty.
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
from tilewright.backends.nvidia.schedule.loop_buffers import buffer_of, share_behind
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
from tilewright.transforms import Dce, keep_slice


def split_roles(
    function: Function,
    schedules: Sequence[LoopSchedule],
    warps: int,
    registers: tuple[int, ...],
    groups: int = 1,
) -> None:
    """Split a function whose bulk loads are those of the schedules.

    warps: of a group of consumers; groups: that take turns at the programs of a block's loop.
    """
    producer, mapping = Block(), dict[Value, Value]()
    for op in function.body:
        producer.insert(YieldOp(()) if isinstance(op, ReturnOp) else op.clone(mapping))
    before = Builder(function.body, function.body.first)
    rings = [_Ring(before, group, warps) for group in ring_groups(schedules)]
    turns = before.value(_barriers(groups, warps)) if groups > 1 else None
    # The ops of before the roles: rings alone.
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
    Dce().run(function)
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
    """Those whose loops copy equal tiles, one loop after the other."""
    groups: list[list[LoopSchedule]] = []
    for schedule in schedules:
        tiles = _tiles(schedule)
        fitting = (g for g in groups if _tiles(g[0]) == tiles and not _meets(schedule, g))
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
    """The buffers of all parts of a ring, and whether what they hold is for the next iteration."""
    return [
        (part[0].carried is not None, buffer_of(ahead, schedule.slots))
        for part in ring_parts(schedule)
        for ahead in part
    ]


def _meets(schedule: LoopSchedule, group: Sequence[LoopSchedule]) -> bool:
    """Whether a loop is inside one of a group, or around one."""
    loops = [(schedule.loop, other.loop) for other in group]
    return any(inner in (one, other) for one, other in loops for inner in _nested(one, other))


def _nested(one: ForOp, other: ForOp) -> list[Op]:
    """The inner one, of loops of which one is in the other."""
    return [op for op in other.walk() if op is one] + [op for op in one.walk() if op is other]


def _copy_of(ahead: AheadLoad, mapping: dict[Value, Value]) -> Op:
    """The load of the producer."""
    load = mapping[ahead.load.result].op
    assert load is not None
    return load


def ring_parts(schedule: LoopSchedule) -> list[list[AheadLoad]]:
    """The copies of a loop that are waited for and released together.

    Dots that end in the iteration have each their own: those that the same ones read. Where
    dots go on, or threads read a copy, all copies for the iteration itself are one part.
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
    """The dots that read some copies, in order; none if others read one of them."""
    found = {_dots_of(ahead, loop) for ahead in copies}
    return found.pop() if len(found) == 1 else ()


def _dots_of(ahead: AheadLoad, loop: ForOp) -> tuple[Op, ...]:
    """The dots that read a copy, in order; none if not only dots of the loop's body do."""
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

    is_carried: what is copied is for the next iteration; the first one gets zeros.
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
        """Tell the producer that a slot is empty. runs: if it is; None: it is."""
        runs = builder.constant(1, i1) if runs is None else runs
        builder.emit(MbarrierArriveOp(_slot(builder, self.empty, slot), runs))

    def await_release(self, builder: Builder, at: Sequence[Value]) -> None:
        """Wait until a slot is empty."""
        slot, parity = at
        builder.emit(MbarrierWaitOp(_slot(builder, self.empty, slot), parity))

    def copy(self, load: Op, buffer: Value, slot: Value, builder: Builder) -> None:
        """Ask for one copy."""
        target, full = _slot(builder, buffer, slot), _slot(builder, self.full, slot)
        always = builder.constant(1, i1)
        builder.emit(BulkCopyOp(load.results[0], target, full, always))


class _Ring:
    """The slots of the copies of some loops, and their mbarriers.

    What is for the next iteration has a slot more for each loop: the zeros of the first one.
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
        """Ask for the copies as soon as their slot is empty."""
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
        """Zeros for the first iteration, and in each one what the next one needs."""
        loop = loads[0].parent.owner if loads[0].parent is not None else None
        assert isinstance(loop, ForOp)
        before, behind = Builder.at(loop), Builder.at(loop.body.terminator)
        part.await_release(before, counter.entering)
        part.await_release(behind, counter.left)
        for buffer, load in zip(part.buffers, loads, strict=True):
            zeros = load_of_zeros(before, cast("DescriptorLoadOp", load))
            part.copy(zeros, buffer, counter.entering[0], before)
            part.copy(load, buffer, counter.left[0], behind)

    # ---- the consumers ------------------------------------------------------------------------

    def consume(self, consumers: Block) -> None:
        """Read the slots in place of loading, and release them."""
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
        sums = [carried_accumulator(dot).index - 1 for dot in last_of_chains(deferred)]
        buffers = dict(zip(copied, part.buffers, strict=True))
        parts = dot_parts(schedule, deferred) if deferred else None
        last = _emit_parts(parts, buffers, slot) if parts else _run_on(deferred)
        for ahead, buffer in buffers.items():
            _read(ahead, buffer, slot)
        if last is not None:
            self._release_later(part, loop, last, counter)
            self._release_behind(part, loop, sums, counter)
        elif dots:
            part.release(Builder.after(dots[-1]), slot)
        else:
            part.release(Builder.at(loop.body.terminator), counter.inside[0])
        if part.is_carried:
            _read_behind(part, copied, counter.behind)

    def _release_later(self, part: _Part, loop: ForOp, dot: Op, counter: LoopValues) -> None:
        """The slot before, behind a dot that waits for those of the last iteration."""
        builder = Builder.after(dot)
        runs = builder.ne(loop.index, loop.lower)
        part.release(builder, self._before(builder, counter.inside[0]), runs)

    def _release_behind(
        self, part: _Part, loop: ForOp, sums: Sequence[int], counter: LoopValues
    ) -> None:
        """The last slot of a loop, behind it, once its sums are there."""
        builder = Builder.after(loop)
        for number in sums:
            _wait_behind(builder, loop.results[number])
        runs = builder.lt(loop.lower, loop.upper)
        part.release(builder, self._before(builder, counter.behind[0]), runs)

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
            carry_through(loops, around, inits, self._following, found, behind=is_carried)
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


def _wait_behind(builder: Builder, sums: Value) -> None:
    """Whatever uses sums waits for them."""
    users = list(sums.uses)
    ended = builder.value(WgmmaWaitOp(sums))
    for user in users:
        for number, operand in enumerate(user.operands):
            if operand is sums:
                user.set_operand(number, ended)


def _run_on(dots: Sequence[WgmmaOp]) -> Op | None:
    """Let dots go on while the next iteration starts; the one that waits for those before."""
    for dot in dots:
        dot.attrs["pending"] = len(dots) if dot is dots[-1] else None
    return dots[-1] if dots else None


def _emit_parts(parts: Sequence[DotPart], buffers: Mapping[AheadLoad, Value], slot: Value) -> Op:
    """Put the parts of dots in their place; the first one, which waits for those before."""
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
    """A slot, as an op that takes a load to dots has its dims."""
    view = _slot(builder, buffer, slot)
    order = reader.order
    return view if order is None else builder.value(TransposeViewOp(view, order=order))


def _read(ahead: AheadLoad, buffer: Value, slot: Value) -> None:
    """Dots or threads read a slot."""
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


def _read_behind(part: _Part, copied: Sequence[AheadLoad], at: Sequence[Value]) -> None:
    """Dots behind a loop read what its last iteration has loaded."""
    tiles = [_left_behind(ahead) for ahead in copied]
    dots = [op for tile in tiles for op in _dots_after(tile)]
    last = dots[-1]
    builder = Builder.after(last)
    part.release(builder, at[0])
    builder = Builder.at(dots[0])
    part.wait(builder, at)
    for tile, buffer in zip(tiles, part.buffers, strict=True):
        share_behind(builder, tile, _slot(builder, buffer, at[0]))


def _left_behind(ahead: AheadLoad) -> Value:
    """The tile for the next iteration, as the last one leaves it."""
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
