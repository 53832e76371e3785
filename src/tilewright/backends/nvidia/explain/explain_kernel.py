"""From the front end's module of a kernel to its explanation."""

from __future__ import annotations

from tilewright.backends.explanation import Explanation, LaunchSizes
from tilewright.backends.manifest import StageContext
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp
from tilewright.backends.nvidia.explain.layout_rows import layout_rows
from tilewright.backends.nvidia.explain.occupancy import resources_of
from tilewright.backends.nvidia.explain.op_rows import op_rows
from tilewright.backends.nvidia.explain.pass_reasons import pass_reasons
from tilewright.backends.nvidia.explain.register_pressure import pressure_text
from tilewright.backends.nvidia.explain.roofline import bound_of
from tilewright.backends.nvidia.explain.schedule_rows import schedule_rows
from tilewright.backends.nvidia.explain.shared_access_rows import shared_access_rows
from tilewright.backends.nvidia.passes._promote_loads import OUTSIDE_OF_LOOPS
from tilewright.backends.nvidia.passes.legalize_dots import fma_reason
from tilewright.backends.nvidia.passes.select_mma import mma_obstacles
from tilewright.backends.nvidia.pipeline import (
    Choices,
    choices_of,
    front_pipeline,
    layout_pipeline,
)
from tilewright.backends.nvidia.role_ops import RolesOp
from tilewright.ir import Function, Module
from tilewright.ops import DotOp


def explain_kernel(module: Module, context: StageContext, sizes: LaunchSizes | None) -> Explanation:
    """See `Backend.explain`. Runs the passes again on the module, which is changed: a stored kernel
    has no source locations."""
    arch = row_for(int(context.target.arch))
    options, metadata = context.options, context.metadata
    bound = None if sizes is None else bound_of(module.kernel, sizes, arch)
    by_fma = {op.loc: fma_reason(op, arch) for op in _dots(module)}
    choices = choices_of(context)
    front_pipeline(choices).run(module)
    obstacles = by_fma | mma_obstacles(module.kernel, arch, choices.warps)
    reasons = pass_reasons(module.kernel.clone(), choices)
    layout_pipeline(choices).run(module)
    why = _outside_of_loops(module.kernel)
    no_tma = {
        loc: why if obstacle == OUTSIDE_OF_LOOPS else obstacle
        for loc, obstacle in reasons.no_tma.items()
    }
    # Including the producer's warps.
    warps = int(metadata.get("threads") or arch.warp_size * options.num_warps) // arch.warp_size
    resources = resources_of(
        arch, warps, metadata["registers"], metadata["spills"], metadata["shared"]
    )
    rows = op_rows(module.kernel, arch, obstacles, no_tma)
    notes = (
        *_cluster_notes(module.kernel, options.num_ctas, reasons.not_shared),
        *reasons.notes(),
        *_spill_notes(module.kernel, resources.spills),
        *_register_notes(choices, options.num_warps),
    )
    return Explanation(
        metadata["name"], "cuda", arch.name, rows, resources, bound=bound, notes=notes,
        layouts=layout_rows(module.kernel),
        accesses=shared_access_rows(module.kernel, arch.stmatrix),
        schedules=schedule_rows(module.kernel),
    )  # fmt: skip


def _outside_of_loops(function: Function) -> str:
    """Why TMA does not issue a load outside of loops, for a compiled function with other TMA
    loads."""
    if any(isinstance(op, RolesOp) for op in function.walk()):
        return "outside of loops the producer warp loads only what fits, before any store"
    return "outside of loops only a producer warp issues TMA loads, and this program has none"


def _cluster_notes(function: Function, num_ctas: int, not_shared: str) -> tuple[str, ...]:
    """Notes on clusters: requested ones, and loads that blocks share."""
    if num_ctas > 1:
        return (f"clusters of {num_ctas} blocks (num_ctas), of which the first runs the program",)
    copies = [op for op in function.walk() if isinstance(op, BulkCopyOp)]
    if not copies:
        return ()
    if not any(copy.is_shared is not None for copy in copies):
        return (f"blocks share no copies in clusters: {not_shared}",)
    lines = sorted({copy.x.op.loc.line for copy in copies if copy.x.op and copy.x.op.loc})
    return (
        f"clusters of 2 blocks share the copies of lines {', '.join(map(str, lines))} wherever "
        "both copy the same, one half each: rows begin between sectors, of which L2 sends one more",
    )


def _spill_notes(function: Function, spills: int) -> tuple[str, ...]:
    """Which tiles hold the registers of a kernel that spills."""
    return (pressure_text(function),) if spills else ()


def _register_notes(choices: Choices, requested: int) -> tuple[str, ...]:
    """Notes on measures against spills."""
    notes: list[str] = []
    if choices.warps != requested:
        notes.append(
            f"{choices.warps} warps instead of num_warps={requested}, whose threads have too few "
            "registers for the accumulators of dots"
        )
    if choices.omitted:
        passes = " and ".join(choices.omitted)
        notes.append(f"compiled again without {passes}: with it, threads spilled more")
    return tuple(notes)


def _dots(module: Module) -> list[DotOp]:
    return [op for op in module.kernel.walk() if isinstance(op, DotOp)]
