"""Software pipelining: issue the loads of a loop several iterations ahead of its dots.

    cf.for %k = ... {                            nvidia.async_copy, for iterations 0 and 1
      %a = mem.load ...                          cf.for %k = ... {
      %x = nvidia.convert %a             ->        nvidia.wait {pending = 1}
      %c = tile.dot %x, ...                        nvidia.async_copy, for iteration %k + 2
    }                                              %x = nvidia.read ...
                                                   %c = tile.dot %x, ...
                                                 }

schedule_loop.py decides which loads are issued ahead, and how far; expand_loop.py rewrites the
loop. Innermost loops come first, and a loop around a pipelined one is left alone. Buffers have as
many slots as the launch or the loop has stages, as far as memory dependences and shared memory
allow.

Dots with deferred waits profit from more bytes in flight. So a number of stages of three or more is
a hint: their buffers use the remaining shared memory of a multiprocessor, as long as that costs no
resident program (figures in ADR 0026). A computed operand gets a second slot by the same rule
(`computed_operands`): where it would cost a program, waits are not deferred, and programs overlap
instead.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.buffer_ops import AsyncCopyOp, ShareOp, buffer_type
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp
from tilewright.backends.nvidia.register_model import (
    Overhead,
    estimated_registers,
    held_registers,
    resident_programs,
)
from tilewright.backends.nvidia.role_ops import PRODUCER_WARPS, RolesOp
from tilewright.backends.nvidia.schedule.deferred_waits import deferred_dots
from tilewright.backends.nvidia.schedule.expand_loop import LoopExpansion
from tilewright.backends.nvidia.schedule.loop_buffers import buffers_of, replaced_exchanges
from tilewright.backends.nvidia.schedule.schedule_loop import (
    HINT,
    MOST_SLOTS,
    Load,
    LoopSchedule,
    schedule_loop,
)
from tilewright.backends.nvidia.shared_memory.allocate_shared import BufferRoom, largest_uses
from tilewright.ir import Function, Pass, Value
from tilewright.ops import DescriptorLoadOp, ForOp
from tilewright.support import SourceLoc, errors
from tilewright.support.data_class import dataclass
from tilewright.transforms import remove_dead


@dataclass(frozen=True)
class SoftwarePipeline(Pass, name="nvidia-software-pipeline"):
    """Load operands of dots several iterations ahead, in every loop that allows it.

    stages: slots of a buffer in loops without a number of their own; warps: of a program instance;
    capability: of the architecture
    """

    stages: int = 3
    warps: int = 4
    capability: int = 90

    def run(self, function: Function) -> bool:
        return any(choice.slots for choice in self.pipeline(function))

    def pipeline(self, function: Function) -> list[StageChoice]:
        """Pipeline every loop that allows it; returns the choices for loops with loads."""
        loops = [op for op in function.walk() if isinstance(op, ForOp)]
        if all(map(_is_pipelined, loops)):
            return []
        facts = analyze_alignment(function)
        choices: list[StageChoice] = []
        # an inner loop follows the outer one in the walk: reversed, the innermost come first
        for loop in reversed(loops):
            stages = self.stages if loop.stages is None else loop.stages
            if stages < 2 or _is_pipelined(loop):
                continue
            schedule, why_not = self._fitting(function, loop, facts, stages)
            slots = 0 if schedule is None else schedule.slots
            choices.append(StageChoice(loop.loc, slots, stages, why_not if slots < stages else ""))
            if schedule is not None:
                LoopExpansion(schedule).run()
            elif any(isinstance(op, DescriptorLoadOp) for op in loop.body):
                # nvidia-select-tma accepted it: other exchanges of the loop take too much.
                raise self._no_room(function, loop)
        if any(choice.slots for choice in choices):
            remove_dead(function)  # addresses of loads that became copies
        return choices

    def _no_room(self, function: Function, loop: ForOp) -> errors.OutOfResources:
        """The error for a loop whose operands only TMA loads, and do not fit twice."""
        arch = row_for(self.capability)
        room = BufferRoom(function, arch, loop, ())
        shared = [op for op in loop.walk() if isinstance(op, ShareOp)]
        size = room.bytes_with([buffer_type(op.result) for op in shared])
        notes = largest_uses(function, arch)
        return errors.OutOfResources(size, arch.shared_optin, "shared memory", notes=notes)

    def _fitting(
        self, function: Function, loop: ForOp, facts: dict[Value, Alignment], stages: int
    ) -> tuple[LoopSchedule | None, str]:
        """The schedule with the most slots that fits, and why none with more does."""
        arch = row_for(self.capability)
        most = stages if stages < HINT else MOST_SLOTS
        limit, resident = None, 0
        why_not = "memory dependences, or addresses that are loaded, allow no more"
        for schedule in schedule_loop(loop, facts, most):
            plain = replace(schedule, doubles=False)
            size = _bytes_of(function, plain, arch)
            if limit is None:  # walks the function, only for loops with schedules
                resident = self._bytes_of_resident(function, arch)
                asked = size * min(stages, schedule.slots) // schedule.slots
                limit = self._bytes_of_program(loop, asked, arch)
            if deferred_dots(schedule):
                full = _bytes_of(function, schedule, arch)
                # Slots beyond the request must not cost a program.
                is_more = schedule.slots > stages or full > size
                if full <= (limit if is_more else arch.shared_optin):
                    return schedule, why_not
            if schedule.slots <= stages and size <= resident:
                return plain, why_not
            why_not = f"{schedule.slots} take {size} bytes of shared memory, {resident} are left"
        return None, why_not

    def _bytes_of_resident(self, function: Function, arch: Arch) -> int:
        """Shared memory that a program with roles may use at equal occupancy."""
        roles = next((op for op in function.walk() if isinstance(op, RolesOp)), None)
        if roles is None:
            return arch.shared_optin
        size = BufferRoom(function, arch, None, ()).bytes_with([])
        threads = 32 * (roles.groups * self.warps + PRODUCER_WARPS)
        programs = resident_programs(arch, size, roles.registers[0], threads)
        return min(arch.shared_sm // programs - arch.shared_reserved, arch.shared_optin)

    def _bytes_of_program(self, loop: ForOp, size: int, arch: Arch) -> int:
        """Shared memory that a program may use with as many programs on a multiprocessor as with
        `size` bytes each."""
        held = held_registers(loop, self.warps)
        registers = estimated_registers(held, Overhead.DOTS, arch)
        programs = resident_programs(arch, size, registers, 32 * self.warps)
        return min(arch.shared_sm // programs - arch.shared_reserved, arch.shared_optin)


@dataclass(frozen=True, slots=True)
class StageChoice:
    """The stages of a loop. slots: of each buffer, 0 where no load is issued ahead; why_not: why
    not as many as requested"""

    loc: SourceLoc | None
    slots: int
    requested: int
    why_not: str


def _is_pipelined(loop: ForOp) -> bool:
    """Whether a loop needs no further copies ahead.

    Waits count groups of copies: those of an inner loop belong to it. Around a loop that waits for
    a producer there may be others.
    """
    has_loads = any(isinstance(op, Load) for op in loop.body)
    return not has_loads or any(isinstance(op, AsyncCopyOp | BulkCopyOp) for op in loop.walk())


def _bytes_of(function: Function, schedule: LoopSchedule, arch: Arch) -> int:
    """Shared memory of the function with the buffers of a schedule, in bytes."""
    # Buffers are read in the layout of the dots: conversions need no bytes of their own.
    room = BufferRoom(function, arch, schedule.loop, replaced_exchanges(schedule))
    return room.bytes_with(buffers_of(schedule))
