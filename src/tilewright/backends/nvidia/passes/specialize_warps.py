"""Warp specialization: a dedicated producer warp issues TMA loads, if they are all copies of a
loop.

    cf.for ... {                                  nvidia.roles {
      %a = mem.descriptor_load ... {bulk}           cf.for ... { wait, nvidia.wgmma, arrive }
      %c = nvidia.wgmma (share %a), ...    ->       mem.store ...
    }                                             } {
    mem.store ...                                   cf.for ... { wait, nvidia.bulk_copy }
                                                  }

MMA warps then issue no loads, the loop has no barrier, and loads continue into the next item of an
outer loop while the last one is stored; a function without an outer loop gets a persistent loop
over programs (persistent_loop.py). role_expansion.py rewrites the function; this pass decides
whether, with how many slots and how many registers.

The producer costs a warpgroup, since registers are redistributed between whole warpgroups
(`setmaxnreg`), and buffers keep their bytes from the first to the last load of the program:
exchanges at its end cannot share them. So it pays where as many programs as before are resident
with enough slots. If these would be at most two programs of one warpgroup, one block replaces them,
with two groups of consumers in a ping-pong schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.passes._promote_loads import (
    loads_before_loops,
    promote_before_loops,
)
from tilewright.backends.nvidia.passes._tma_loads import bulk_buffer
from tilewright.backends.nvidia.register_model import (
    Overhead,
    estimated_registers,
    held_registers,
    live_registers,
    resident_programs,
)
from tilewright.backends.nvidia.role_ops import PRODUCER_WARPS
from tilewright.backends.nvidia.schedule.deferred_waits import computed_operands, deferred_dots
from tilewright.backends.nvidia.schedule.expand_loop import LoopExpansion
from tilewright.backends.nvidia.schedule.loop_buffers import (
    buffers_of,
    replace_slots,
    replaced_exchanges,
)
from tilewright.backends.nvidia.schedule.persistent_loop import (
    PROGRAM_STAGES,
    are_equal,
    divide_ahead,
    loop_over_programs,
    may_loop,
)
from tilewright.backends.nvidia.schedule.persistent_order import sweep_of
from tilewright.backends.nvidia.schedule.producer_slice import has_producer, is_nested
from tilewright.backends.nvidia.schedule.role_expansion import ring_buffers, split_roles
from tilewright.backends.nvidia.schedule.schedule_loop import (
    HINT,
    MOST_SLOTS,
    AheadLoad,
    Load,
    LoopSchedule,
    carried_zeros,
    readers,
    schedule_loop,
)
from tilewright.backends.nvidia.shared_memory.allocate_shared import BufferRoom, largest_uses
from tilewright.ir import Function, Op, Pass, Value
from tilewright.ops import ConstantOp, DescriptorLoadOp, ForOp, LoadOp
from tilewright.support import errors
from tilewright.support.data_class import dataclass

_PRODUCER_REGISTERS = (40, 24)
"""Registers of a producer thread: the second where the consumers need the difference."""

_MOST_REGISTERS = 240
"""The most registers of a consumer thread: 40 and 232, or 24 and 240, with two warpgroups."""

_RESIDENT_WARPS = 8
"""Warps of consumers that a multiprocessor should have."""

_GROUPS = 2
"""Groups of consumers in a ping-pong schedule."""

_LEAST_ITERATIONS = 4
"""Iterations of a loop with a known trip count: fewer hide no latency."""

_BARRIER_BYTES = 2048
"""Room for all mbarriers of a program with the alignment of buffers, and for small exchanges, which
keep their bytes in the loop over programs."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A plan. slots: of all buffers; registers, groups: see RolesOp; blocks: of a
    multiprocessor."""

    slots: int
    registers: tuple[int, ...]
    groups: int
    blocks: int


@dataclass(frozen=True)
class SpecializeWarps(Pass, name="nvidia-specialize-warps"):
    """Split functions whose loads ahead are all issued by TMA.

    stages: slots of a buffer in loops without a number of their own; warps: of a program instance,
    without the producer; capability: of the architecture; persistent: see CommonOptions
    """

    stages: int = 3
    warps: int = 4
    capability: int = 90
    persistent: bool | None = None

    def run(self, function: Function) -> bool:
        loads = _bulk_loads(function)
        if not loads or self._missing_means():
            return False
        schedules = self._schedules(function, loads)
        facts = analyze_alignment(function)
        plan = self._decide(function, schedules, facts)
        if isinstance(plan, str):
            return False
        if self._load_ahead(schedules, facts):
            loads = _bulk_loads(function)
            schedules = self._schedules(function, loads)
        first = self._first_loads(function, schedules, plan)
        if self._loops(function, schedules, bool(first) and plan.blocks == 1):
            ahead = promote_before_loops(function, first)
            loads += ahead
            programs = loop_over_programs(function, sweep_of(function, _loads_of(schedules)))
            if ahead:
                divide_ahead(programs)
            schedules = self._schedules(function, loads)
        schedules = _with_slots(schedules, plan.slots)
        split_roles(function, schedules, self.warps, plan.registers, plan.groups)
        return True

    def obstacle(self, function: Function) -> str:
        """Why no producer warp issues the loads of a function; "" if one does."""
        loads = _bulk_loads(function)
        if not loads:
            return "TMA issues none of the loads of its loops"
        if missing := self._missing_means():
            return missing
        schedules = self._schedules(function, loads)
        plan = self._decide(function, schedules, analyze_alignment(function))
        return plan if isinstance(plan, str) else ""

    def _missing_means(self) -> str:
        """Why no function of this launch has a producer warp; "" if it may."""
        arch = row_for(self.capability)
        if not arch.setmaxnreg:
            return f"{arch.name} cannot move registers between warps"
        return f"{self.warps} warps are no whole warpgroups of 4" if self.warps % 4 else ""

    def _decide(
        self, function: Function, schedules: Sequence[LoopSchedule], facts: dict[Value, Alignment]
    ) -> _Plan | str:
        """The plan, or why there is none. Errors: OutOfResources."""
        nested = is_nested(function, _loads_of(schedules))
        obstacle = "" if nested else self._cost(function, schedules, facts)
        plan = obstacle or self._plan(function, schedules, nested)
        if isinstance(plan, str) and nested:
            # nvidia-select-tma accepted them: other exchanges take too much.
            raise self._no_room(function, schedules)
        return plan

    def _first_loads(
        self, function: Function, schedules: Sequence[LoopSchedule], plan: _Plan
    ) -> list[LoadOp]:
        """The loads before loops of tiles that dots read until the program ends; the producer may
        issue them where they fit once more for the next program."""
        loads = loads_before_loops(function) if plan.groups == 1 else []
        first = [buffer for load in loads if (buffer := bulk_buffer(load)) is not None]
        replaced = [r.op for load in loads for r in readers(AheadLoad(load, 0))]
        rings = ring_buffers(_with_slots(schedules, plan.slots))
        rings += [replace_slots(buffer, PROGRAM_STAGES) for buffer in first]
        room = self._room(function, schedules, replaced)
        return loads if room.bytes_with(rings) + _BARRIER_BYTES <= self._limit(plan.blocks) else []

    def _loops(
        self, function: Function, schedules: Sequence[LoopSchedule], begins_alone: bool
    ) -> bool:
        """Whether a block runs several programs. begins_alone: a program starts with tiles that may
        be copied ahead, and no other block of its multiprocessor computes at that time."""
        loads = _loads_of(schedules)
        if self.persistent is False or is_nested(function, loads) or not may_loop(function):
            return False
        if self.persistent or are_equal(loads):
            return True
        # The device balances programs of unequal length as well.
        return begins_alone and sweep_of(function, loads) is not None

    def _schedules(
        self, function: Function, loads: Sequence[DescriptorLoadOp]
    ) -> list[LoopSchedule]:
        """A schedule for each loop of copies, with the requested slots."""
        inside: dict[ForOp, list[DescriptorLoadOp]] = {}
        for load in loads:
            loop = load.parent.owner if load.parent is not None else None
            assert isinstance(loop, ForOp)
            inside.setdefault(loop, []).append(load)
        return [self._schedule(loop, found) for loop, found in inside.items()]

    def _schedule(self, loop: ForOp, loads: Sequence[DescriptorLoadOp]) -> LoopSchedule:
        slots = self._stages(loop)
        ahead = tuple(AheadLoad(a, slots - 1, carried=carried_zeros(a)) for a in loads)
        return LoopSchedule(loop, ahead, slots, {}, doubles=False)

    def _stages(self, loop: ForOp) -> int:
        return self.stages if loop.stages is None else loop.stages

    def _cost(
        self, function: Function, schedules: Sequence[LoopSchedule], facts: dict[Value, Alignment]
    ) -> str:
        """Why a producer is impossible, or slows down a loop; "" if neither."""
        loads = {schedule.loop: [a.load for a in schedule.copies] for schedule in schedules}
        copied = [load for found in loads.values() for load in found]
        if not has_producer(function, cast("list[DescriptorLoadOp]", copied)):
            return "its loads depend on loaded values, follow a store, or the kernel asserts"
        loops = [op for op in function.walk() if isinstance(op, ForOp)]
        if any(map(_is_short, loads)):
            return f"a loop has fewer than {_LEAST_ITERATIONS} iterations"
        if all(self._is_left_alone(loop, loads.get(loop, []), facts) for loop in loops):
            return ""
        return "threads copy other loads of its loops ahead, or compute operands for two slots"

    def _is_left_alone(
        self, loop: ForOp, bulk: Sequence[Load], facts: dict[Value, Alignment]
    ) -> bool:
        """Whether no other loads of a loop are copied ahead."""
        if self._stages(loop) < 2:
            return True
        schedules = schedule_loop(loop, facts, 2)
        copied = [ahead.load for schedule in schedules for ahead in schedule.copies]
        # Computed operands would have slots of their own with deferred waits: unsupported here.
        doubled = [op for s in schedules for op in computed_operands(deferred_dots(s), s)]
        return set(copied) == set(bulk) and not doubled

    def _load_ahead(self, schedules: Sequence[LoopSchedule], facts: dict[Value, Alignment]) -> bool:
        """Let threads load small tiles, such as scales, an iteration ahead; whether there are any.

        Their loops are then replaced.
        """
        loops = [schedule.loop for schedule in schedules if self._stages(schedule.loop) > 1]
        inner = [loop for loop in loops if not _has_loops(loop)]
        found = [schedule for loop in inner for schedule in schedule_loop(loop, facts, 2)]
        small = [(s.loop, [a for a in s.loads if not a.is_copied]) for s in found]
        for loop, loads in small:
            if loads:
                LoopExpansion(LoopSchedule(loop, tuple(loads), 2, {}, doubles=False)).run()
        return any(loads for _, loads in small)

    def _plan(
        self, function: Function, schedules: Sequence[LoopSchedule], nested: bool
    ) -> _Plan | str:
        """The plan; or why a producer does not pay, or fit."""
        arch = row_for(self.capability)
        loops = [schedule.loop for schedule in schedules]
        held = max(held_registers(loop, self.warps) for loop in loops)
        without = estimated_registers(held, Overhead.DOTS, arch)
        before = self._programs_before(function, schedules, without)
        asked = min(max(schedule.slots for schedule in schedules), HINT)
        # Otherwise threads compute between dots, and no other group overlaps.
        are_deferred = all(deferred_dots(schedule) for schedule in schedules)
        needed = without
        if not are_deferred:
            live = max(live_registers(loop, self.warps) for loop in loops)
            needed = max(
                estimated_registers(held, Overhead.CONSUMER, arch),
                estimated_registers(live, Overhead.CONSUMER_LIVE, arch),
            )
        copied = (ahead for schedule in schedules for ahead in schedule.copies)
        # One warpgroup alone is late with operands that it reads into registers.
        is_late = any(isinstance(r.op, ConvertOp) for ahead in copied for r in readers(ahead))
        may_alternate = are_deferred and may_ping_pong(function, schedules, self.warps)
        if before <= (1 if is_late else _GROUPS) and may_alternate:
            ping_pong = self._plan_of(function, schedules, needed, 1, _GROUPS)
            fits = ping_pong.slots >= asked and ping_pong.registers[-1] >= needed
            equal = are_equal(_loads_of(schedules))
            if fits and equal and self._loops(function, schedules, begins_alone=False):
                return ping_pong
        # One warpgroup alone on a multiprocessor has none to overlap with its stores.
        least = -(-_RESIDENT_WARPS // self.warps)
        if not are_deferred:
            least = max(before, least) if is_late else before
        numbers = range(before, 0 if nested else least - 1, -1)
        plans = [self._plan_of(function, schedules, needed, number) for number in numbers]
        fitting = [
            plan
            for plan in plans
            if plan.slots
            and (plan.registers[-1] >= needed or plan is plans[-1] and nested)
            and plan.registers[0] >= _widest(schedules) // 2 + Overhead.ROLE_ENTRY
        ]
        enough = [plan for plan in fitting if plan.slots >= asked]
        # Fewer slots than without a producer cost more than the producer gains.
        choices = enough or (fitting if nested else ())
        return choices[0] if choices else _misfit(plans, fitting, asked, needed)

    def _plan_of(
        self, function: Function, schedules: Sequence[LoopSchedule], needed: int, blocks: int,
        groups: int = 1,
    ) -> _Plan:  # fmt: skip
        """The plan with so many blocks on a multiprocessor, with the needed registers if
        possible."""
        slots = self._slots(function, schedules, blocks, groups)
        choices = _PRODUCER_REGISTERS if blocks == 1 else _PRODUCER_REGISTERS[:1]
        splits = [self._registers(blocks, groups, given) for given in choices]
        enough = (registers for registers in splits if registers[-1] >= needed)
        return _Plan(slots, next(enough, splits[-1]), groups, blocks)

    def _programs_before(
        self, function: Function, schedules: Sequence[LoopSchedule], registers: int
    ) -> int:
        """Programs that a multiprocessor runs without a producer."""
        arch = row_for(self.capability)
        rooms = (BufferRoom(function, arch, s.loop, replaced_exchanges(s)) for s in schedules)
        size = max(r.bytes_with(buffers_of(s)) for r, s in zip(rooms, schedules, strict=True))
        return resident_programs(arch, size, registers, 32 * self.warps)

    def _registers(self, programs: int, groups: int, of_producer: int) -> tuple[int, ...]:
        """Registers as in RolesOp, with so many blocks on a multiprocessor."""
        arch, producer = row_for(self.capability), 32 * PRODUCER_WARPS
        consumers = groups * 32 * self.warps
        given = producer * of_producer
        most = (given + consumers * _MOST_REGISTERS) // (consumers + producer)
        entry = min(arch.registers_sm // programs // (consumers + producer), most) & -8
        left = (entry * (consumers + producer) - given) // consumers & -8
        return entry, of_producer, min(left, _MOST_REGISTERS)

    def _slots(
        self, function: Function, schedules: Sequence[LoopSchedule], programs: int, groups: int
    ) -> int:
        """The most slots with which so many blocks fit; 0 for fewer than two."""
        room, limit = self._room(function, schedules), self._limit(programs)
        asked = max(schedule.slots for schedule in schedules)
        for slots in range(MOST_SLOTS if asked >= HINT else asked, 1, -1):
            buffers = ring_buffers(_with_slots(schedules, slots))
            if room.bytes_with(buffers, groups) + _BARRIER_BYTES <= limit:
                return slots
        return 0

    def _limit(self, programs: int) -> int:
        """Shared memory of a block, with so many blocks on a multiprocessor."""
        arch = row_for(self.capability)
        return min(arch.shared_sm // programs - arch.shared_reserved, arch.shared_optin)

    def _room(
        self, function: Function, schedules: Sequence[LoopSchedule], without: Sequence[Op] = ()
    ) -> BufferRoom:
        """The room for rings. without: ops that they replace, other than exchanges of loops."""
        replaced = [op for schedule in schedules for op in replaced_exchanges(schedule)]
        arch = row_for(self.capability)
        return BufferRoom(function, arch, None, [*replaced, *without])

    def _no_room(
        self, function: Function, schedules: Sequence[LoopSchedule]
    ) -> errors.OutOfResources:
        """The error for operands that do not fit twice."""
        arch = row_for(self.capability)
        size = self._room(function, schedules).bytes_with(ring_buffers(_with_slots(schedules, 2)))
        notes = largest_uses(function, arch)
        return errors.OutOfResources(
            size + _BARRIER_BYTES, arch.shared_optin, "shared memory", notes=notes
        )


def _misfit(plans: Sequence[_Plan], fitting: Sequence[_Plan], asked: int, needed: int) -> str:
    """Why no plan is chosen. fitting: those with enough registers"""
    if fitting:
        slots = max(plan.slots for plan in fitting)
        return f"shared memory holds {slots} of {asked} stages next to its barriers"
    if any(plan.slots for plan in plans):
        left = max(plan.registers[-1] for plan in plans)
        return f"its threads need {needed} registers, and a producer leaves {left}"
    return "it would cost resident programs, or its buffers do not fit twice in shared memory"


def _bulk_loads(function: Function) -> list[DescriptorLoadOp]:
    return [op for op in function.walk() if isinstance(op, DescriptorLoadOp) and op.bulk]


def _loads_of(schedules: Sequence[LoopSchedule]) -> list[DescriptorLoadOp]:
    copied = [ahead.load for schedule in schedules for ahead in schedule.copies]
    return cast("list[DescriptorLoadOp]", copied)


def may_ping_pong(function: Function, schedules: Sequence[LoopSchedule], warps: int) -> bool:
    """Whether groups of consumers can alternate: each program has one loop of copies."""
    loops = [schedule.loop for schedule in schedules]
    return warps == PRODUCER_WARPS and len(loops) == 1 and loops[0].parent is function.body


def _widest(schedules: Sequence[LoopSchedule]) -> int:
    """The widest instruction of the loops, in columns."""
    loops = (schedule.loop for schedule in schedules)
    return max(
        (op.columns for loop in loops for op in loop.walk() if isinstance(op, WgmmaOp)), default=0
    )


def _with_slots(schedules: Sequence[LoopSchedule], slots: int) -> list[LoopSchedule]:
    """The schedules with so many slots; loops around others have two, since they are slow."""
    loops = set[Op](schedule.loop for schedule in schedules)
    around = set[Op](s.loop for s in schedules for op in s.loop.body.walk() if op in loops)
    return [_with(schedule, 2 if schedule.loop in around else slots) for schedule in schedules]


def _with(schedule: LoopSchedule, slots: int) -> LoopSchedule:
    loads = tuple(replace(ahead, distance=slots - 1) for ahead in schedule.loads)
    return replace(schedule, loads=loads, slots=slots)


def _is_short(loop: ForOp) -> bool:
    """Whether a loop has a small known trip count."""
    bounds = [value.op for value in (loop.lower, loop.upper, loop.step)]
    numbers = [int(op.value) for op in bounds if isinstance(op, ConstantOp)]
    return len(numbers) == len(bounds) and len(range(*numbers)) < _LEAST_ITERATIONS


def _has_loops(loop: ForOp) -> bool:
    return any(isinstance(op, ForOp) for op in loop.body.walk())
