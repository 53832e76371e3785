"""The passes between the frontend's tile IR and code for NVIDIA GPUs, in order: read this first."""

from __future__ import annotations

from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.passes.assign_layouts import AssignLayouts
from tilewright.backends.nvidia.passes.convert_loads import ConvertLoads
from tilewright.backends.nvidia.passes.insert_global_barriers import InsertGlobalBarriers
from tilewright.backends.nvidia.passes.insert_shared_barriers import InsertSharedBarriers
from tilewright.backends.nvidia.passes.legalize_arithmetic import LegalizeArithmetic
from tilewright.backends.nvidia.passes.legalize_casts import LegalizeCasts
from tilewright.backends.nvidia.passes.legalize_dots import LegalizeDots
from tilewright.backends.nvidia.passes.software_pipeline import SoftwarePipeline
from tilewright.ir import Pass, Pipeline, pipeline_of
from tilewright.transforms import SHARED, Canonicalize, Cse, Dce, Licm


def front_pipeline(capability: int) -> Pipeline:
    """The target-independent passes, then legalization for an architecture (10 * major + minor)."""
    legalization: tuple[tuple[Pass, str], ...] = (
        (LegalizeDots(capability=capability), "first: its expansions need legalization themselves"),
        (LegalizeArithmetic(capability=capability), "GPUs compute exp2 and f16, not sin and fp8"),
        (Canonicalize(), "fold the constants of expansions and the casts around them"),
        (LegalizeCasts(capability=capability), "last: canonicalization would merge its casts"),
        (Cse(), "expansions of one function repeat their constants and steps"),
        (Dce(), "remove values that only expanded ops used"),
    )
    own = pipeline_of("nvidia-legalization", legalization)
    return Pipeline("nvidia-front", (*SHARED.steps, *own.steps))


def layout_pipeline(arch: Arch, warps: int, stages: int) -> Pipeline:
    """Layouts, and what depends on them: asynchronous copies and barriers.

    warps: of a program instance; stages: slots of a loop's ring, where the loop does not say.
    """
    layouts = AssignLayouts(warps=warps, access=arch.access_bytes)
    shared_barriers = InsertSharedBarriers(warps=warps, capability=arch.capability)
    return pipeline_of(
        "nvidia-layouts",
        (
            (layouts, "coalesced accesses, tensor-core fragments, few conversions"),
            (Cse(), "two uses of a value may have got equal conversions"),
            (Licm(), "move conversions of loop invariants out of loops"),
            (Dce(), "remove copies of values in layouts that nothing uses"),
            *(_async_copies(arch, warps, stages) if arch.cp_async else ()),
            (InsertGlobalBarriers(), "needs layouts: which thread accesses which address"),
            (shared_barriers, "last: later passes must not add or remove uses of shared memory"),
        ),
    )


def _async_copies(arch: Arch, warps: int, stages: int) -> tuple[tuple[Pass, str], ...]:
    """Loads for later iterations, by `cp.async`."""
    pipelining = SoftwarePipeline(stages=stages, warps=warps, capability=arch.capability)
    return (
        (ConvertLoads(stages=stages), "asynchronous copies need loads that are converted at once"),
        (Dce(), "remove what conversions at the loads replaced"),
        (pipelining, "hide the latency of global memory behind earlier products"),
        (Dce(), "remove address computations of loads that became copies"),
    )
