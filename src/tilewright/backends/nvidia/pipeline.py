"""The passes between the frontend's tile IR and code for NVIDIA GPUs, in order: read this first."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.lower.shared_usage import Machine
from tilewright.backends.nvidia.passes.assign_layouts import assign_layouts
from tilewright.backends.nvidia.passes.convert_loads import convert_loads
from tilewright.backends.nvidia.passes.insert_global_barriers import insert_global_barriers
from tilewright.backends.nvidia.passes.insert_shared_barriers import insert_shared_barriers
from tilewright.backends.nvidia.passes.legalize_arithmetic import (
    legalize_arithmetic,
    legalize_casts,
)
from tilewright.backends.nvidia.passes.legalize_dots import legalize_dots
from tilewright.backends.nvidia.passes.software_pipeline import software_pipeline
from tilewright.ir import Function, Pass, Pipeline, pipeline_of
from tilewright.transforms import SHARED, Canonicalize, Cse, Dce, Licm


@dataclass(frozen=True)
class LegalizeArithmetic(Pass, name="nvidia-legalize-arithmetic"):
    """Expand what the hardware lacks. capability: of the architecture."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        return legalize_arithmetic(function, row_for(self.capability))


@dataclass(frozen=True)
class LegalizeDots(Pass, name="nvidia-legalize-dots"):
    """Products that tensor cores compute, or FMAs; see legalize_dots.py. capability: as above."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        return legalize_dots(function, row_for(self.capability))


@dataclass(frozen=True)
class LegalizeCasts(Pass, name="nvidia-legalize-casts"):
    """Casts become instructions or arithmetic. capability: of the architecture."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        return legalize_casts(function, row_for(self.capability))


@dataclass(frozen=True)
class AssignLayouts(Pass, name="nvidia-assign-layouts"):
    """Give every tile a layout; see assign_layouts.py.

    warps: of a program instance; access: bytes of the widest access to global memory.
    """

    warps: int = 4
    access: int = 16

    def run(self, function: Function) -> bool:
        assign_layouts(function, self.warps, self.access)
        return True


@dataclass(frozen=True)
class ConvertLoads(Pass, name="nvidia-convert-loads"):
    """Conversions of operands move up to their loads; see convert_loads.py. stages: as below."""

    stages: int = 3

    def run(self, function: Function) -> bool:
        return convert_loads(function, self.stages)


@dataclass(frozen=True)
class SoftwarePipeline(Pass, name="nvidia-software-pipeline"):
    """Copy tiles for products several iterations ahead; see software_pipeline.py.

    stages: slots of a ring; warps: of a program instance; capability: of the architecture.
    """

    stages: int = 3
    warps: int = 4
    capability: int = 90

    def run(self, function: Function) -> bool:
        arch = row_for(self.capability)
        machine = Machine.of(arch, self.warps)
        return software_pipeline(function, self.stages, machine, arch.shared_optin)


class InsertGlobalBarriers(Pass, name="nvidia-insert-global-barriers"):
    """Barriers where threads may meet in global memory; see insert_global_barriers.py."""

    def run(self, function: Function) -> bool:
        return insert_global_barriers(function)


@dataclass(frozen=True)
class InsertSharedBarriers(Pass, name="nvidia-insert-shared-barriers"):
    """Barriers where threads may meet in shared memory. Options: as above."""

    warps: int = 4
    capability: int = 90

    def run(self, function: Function) -> bool:
        return insert_shared_barriers(function, Machine.of(row_for(self.capability), self.warps))


def front_pipeline(capability: int) -> Pipeline:
    """Target-independent passes, and the arithmetic that the hardware has."""
    own: tuple[tuple[Pass, str], ...] = (
        (LegalizeDots(capability=capability), "it makes casts and arithmetic"),
        (LegalizeArithmetic(capability=capability), "ex2 is an instruction, sin is not"),
        (Canonicalize(), "factors and expansions meet constants"),
        (LegalizeCasts(capability=capability), "last: canonical casts are single ones"),
        (Cse(), "exp of one value is asked for twice; expansions share steps"),
        (Dce(), "what was replaced"),
    )
    return Pipeline("nvidia-front", (*SHARED.steps, *pipeline_of("own", own).steps))


def layout_pipeline(arch: Arch, warps: int, stages: int) -> Pipeline:
    """Layouts, and what they leave to tidy up."""
    layouts = AssignLayouts(warps=warps, access=arch.access_bytes)
    shared = InsertSharedBarriers(warps=warps, capability=arch.capability)
    return pipeline_of(
        "nvidia-layouts",
        (
            (layouts, "coalescing, tensor cores, few conversions"),
            (Cse(), "two uses asked for one conversion"),
            (Licm(), "a conversion of what a loop does not change stands outside"),
            (Dce(), "values nobody asked for"),
            *(_ahead(arch, warps, stages) if arch.cp_async else ()),
            (InsertGlobalBarriers(), "late: it tells threads by the layouts of addresses"),
            (shared, "last: nothing that uses shared memory comes or goes"),
        ),
    )


def _ahead(arch: Arch, warps: int, stages: int) -> tuple[tuple[Pass, str], ...]:
    """Loads of later iterations, by asynchronous copies."""
    copies = SoftwarePipeline(stages=stages, warps=warps, capability=arch.capability)
    return (
        (
            ConvertLoads(stages=stages),
            "only what is converted as it is loaded can be copied ahead",
        ),
        (Dce(), "what was computed before the conversion"),
        (copies, "memory takes 100 times a product"),
        (Dce(), "addresses of loads that went ahead"),
    )
