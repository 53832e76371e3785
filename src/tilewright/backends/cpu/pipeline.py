"""The passes between the frontend's tile IR and CPU code, in order: read this first."""

from __future__ import annotations

from tilewright import transforms
from tilewright.backends.cpu.contracts import front_end, legalized
from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.backends.cpu.passes.select_branches import SelectBranches
from tilewright.backends.cpu.passes.select_transposes import SelectTransposes
from tilewright.backends.manifest import StageContext
from tilewright.ir import Module, Pipeline, Step
from tilewright.llvm import TargetCpu
from tilewright.transforms import (
    SHARED,
    Canonicalize,
    Cse,
    Dce,
    ExpandDescriptors,
    LeaveIdlePrograms,
)


def cpu_pipeline(
    fma: bool,
    dots: tuple[str, ...] = (),
    tiles: tuple[str, ...] = (),
    check: str = "",
    avx512: bool = False,
    rounds_bf16: bool = False,
) -> Pipeline:
    """The pipeline of a CPU; see `Legalize`. check: kinds of `InstrumentAccesses`, if any."""
    checks: tuple[Step, ...] = ()
    if check:
        checks = (
            Step(ExpandDescriptors(), "accesses by descriptors are checked like others"),
            Step(
                transforms.InstrumentAccesses(check),
                "first: what is checked is what the kernel says",
            ),
        )
    own = (
        Step(LeaveIdlePrograms(), "one branch for masks of whole blocks, which fold below"),
        Step(SelectBranches(), "before functions are expanded: one op each is told from many"),
        Step(
            Legalize(fma, dots, tiles, avx512, rounds_bf16),
            "LLVM lacks fp8, most functions and some casts",
            legalized(),
        ),
        Step(Canonicalize(), "fold the constants of expansions and the casts around them"),
        Step(Cse(), "expansions of one function repeat their constants and steps"),
        Step(Dce(), "remove parts of expansions that are not used"),
        Step(SelectTransposes(), "last: it looks at the final computation of addresses"),
    )
    return Pipeline("cpu", (*checks, *SHARED.steps, *own), front_end())


def pipeline_of(cpu: TargetCpu, check: str = "") -> Pipeline:
    """With what this CPU has instructions for."""
    return cpu_pipeline(
        cpu.has_fma, cpu.dots, cpu.tile_dots, check, cpu.has_avx512, cpu.rounds_to_bf16
    )


def run_pipeline(module: Module, cpu: TargetCpu, context: StageContext) -> None:
    """Run every pass on the kernel."""
    pipeline_of(cpu, context.options.check).run(module)
    checks = module.kernel.attrs.get("checks")
    if checks is not None:
        table = module.kernel.args[-1]
        parameters = [*context.metadata["parameters"], str(table.type)]
        context.metadata.update(checks=checks, parameters=parameters)
