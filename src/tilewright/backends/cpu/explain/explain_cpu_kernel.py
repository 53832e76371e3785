"""From the front end's module of a kernel to its explanation for a CPU."""

from __future__ import annotations

from math import prod

from tilewright.backends.cpu.explain.cpu_rows import loop_rows, op_rows
from tilewright.backends.cpu.explain.host_rates import host_bound
from tilewright.backends.cpu.lower.lowering_record import LoweringRecord
from tilewright.backends.cpu.lower.program_order import program_order
from tilewright.backends.cpu.microkernel import VectorUnit, vector_unit
from tilewright.backends.cpu.stages import lowered_function, prepared
from tilewright.backends.cpu.target_cpu import target_cpu
from tilewright.backends.explanation import CpuResources, Explanation, LaunchSizes
from tilewright.backends.launch_work import launch_work
from tilewright.backends.manifest import StageContext
from tilewright.ir import Function, Module
from tilewright.llvm import TargetCpu
from tilewright.support import settings, thread_count


def explain_kernel(module: Module, context: StageContext, sizes: LaunchSizes | None) -> Explanation:
    """See `Backend.explain`. Lowers the module again, which is changed, with a record."""
    cpu = target_cpu(context.target)
    unit = vector_unit(cpu)
    threads = settings().cpu.threads or thread_count()
    work = None if sizes is None else launch_work(module.kernel, sizes)
    bound = None if work is None else host_bound(work, cpu, unit, threads)
    record = LoweringRecord()
    prepared(module, context)
    lowered = lowered_function(module, context, record)
    alone, programs = lowered.alone, None if sizes is None else prod(sizes.grid)
    busiest = programs
    if programs is not None and programs > alone:
        busiest = -(-programs // threads)
    resources = CpuResources(
        unit.bits, unit.registers, _features(cpu, unit), lowered.scratch_bytes, threads, alone,
        busiest,
    )  # fmt: skip
    return Explanation(
        lowered.symbol, "cpu", cpu.name, op_rows(record, unit.bits), resources,
        loop_rows(record), bound, _notes(module.kernel),
    )  # fmt: skip


def _features(cpu: TargetCpu, unit: VectorUnit) -> tuple[str, ...]:
    """Instructions that dots may use."""
    made = ("FMA",) if unit.fma else ()
    made += tuple(f"{kind} dots" for kind in cpu.dots)
    return made + tuple(f"AMX for {kind}" for kind in cpu.tile_dots)


def _notes(function: Function) -> tuple[str, ...]:
    axis = program_order(function).axis
    if axis == 0:
        return ()
    return (f"programs run along axis {axis} first: most of their bytes are adjacent",)
