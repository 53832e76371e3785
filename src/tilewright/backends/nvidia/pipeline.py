"""The passes between the frontend's tile IR and code for NVIDIA GPUs, in order: read this first."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.assign_layouts import assign_layouts
from tilewright.backends.nvidia.convert_loads import convert_loads
from tilewright.backends.nvidia.order_memory import order_memory
from tilewright.backends.nvidia.order_shared import order_shared
from tilewright.backends.nvidia.prepare import expand_casts, prepare
from tilewright.backends.nvidia.prepare_dots import prepare_dots
from tilewright.backends.nvidia.shared_memory import Machine
from tilewright.backends.nvidia.software_pipeline import software_pipeline
from tilewright.ir import Function, Pass, Pipeline, pipeline_of
from tilewright.transforms import SHARED, Canonicalize, Hoist, MergeEqual, RemoveDead


@dataclass(frozen=True)
class Prepare(Pass, name="nvidia-prepare"):
    """Expand what the hardware lacks; see prepare.py. capability: of the architecture."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        return prepare(function, row_for(self.capability))


@dataclass(frozen=True)
class PrepareDots(Pass, name="nvidia-dots"):
    """Products that tensor cores compute, or FMAs; see prepare_dots.py. capability: as above."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        return prepare_dots(function, row_for(self.capability))


@dataclass(frozen=True)
class ExpandCasts(Pass, name="nvidia-casts"):
    """Casts become instructions or arithmetic; see prepare.py. capability: of the architecture."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        return expand_casts(function, row_for(self.capability))


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


class OrderMemory(Pass, name="nvidia-order-memory"):
    """Barriers where threads may meet in global memory; see order_memory.py."""

    def run(self, function: Function) -> bool:
        return order_memory(function)


@dataclass(frozen=True)
class OrderShared(Pass, name="nvidia-order-shared"):
    """Barriers where threads may meet in shared memory; see order_shared.py. Options: as above."""

    warps: int = 4
    capability: int = 90

    def run(self, function: Function) -> bool:
        return order_shared(function, Machine.of(row_for(self.capability), self.warps))


def front_pipeline(capability: int) -> Pipeline:
    """Target-independent passes, and the arithmetic that the hardware has."""
    own: tuple[tuple[Pass, str], ...] = (
        (PrepareDots(capability=capability), "it makes casts and arithmetic"),
        (Prepare(capability=capability), "ex2 is an instruction, sin is not"),
        (Canonicalize(), "factors and expansions meet constants"),
        (ExpandCasts(capability=capability), "last: canonical casts are single ones"),
        (MergeEqual(), "exp of one value is asked for twice; expansions share steps"),
        (RemoveDead(), "what was replaced"),
    )
    return Pipeline("nvidia-front", (*SHARED.steps, *pipeline_of("own", own).steps))


def layout_pipeline(arch: Arch, warps: int, stages: int) -> Pipeline:
    """Layouts, and what they leave to tidy up."""
    layouts = AssignLayouts(warps=warps, access=arch.access_bytes)
    shared = OrderShared(warps=warps, capability=arch.capability)
    return pipeline_of(
        "nvidia-layouts",
        (
            (layouts, "coalescing, tensor cores, few conversions"),
            (MergeEqual(), "two uses asked for one conversion"),
            (Hoist(), "a conversion of what a loop does not change stands outside"),
            (RemoveDead(), "values nobody asked for"),
            *(_ahead(arch, warps, stages) if arch.cp_async else ()),
            (OrderMemory(), "late: it tells threads by the layouts of addresses"),
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
        (RemoveDead(), "what was computed before the conversion"),
        (copies, "memory takes 100 times a product"),
        (RemoveDead(), "addresses of loads that went ahead"),
    )
