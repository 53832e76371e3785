"""The pass pipeline from the front end's tile IR to the tile IR that the CPU lowering accepts."""

from __future__ import annotations

from tilewright import transforms
from tilewright.backends.cpu.contracts import front_end, legalized
from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.backends.cpu.passes.select_branches import SelectBranches
from tilewright.backends.cpu.passes.select_transposes import SelectTransposes
from tilewright.backends.manifest import StageContext
from tilewright.ir import Module, Pipeline, Property, Step
from tilewright.llvm import TargetCpu
from tilewright.transforms import (
    AS_WRITTEN,
    CANONICAL,
    CLEAN_UP,
    DESCRIPTORS,
    LOWER_DESCRIPTORS,
    NO_LAYOUTS,
    POINTERS,
    Canonicalize,
    Cse,
    GuardInactivePrograms,
)

_FRONT_END = Property("ops are those that front ends make, without layouts", front_end())
_WHOLE_FUNCTIONS = Property("each function, such as exp, is one op")
_LEGALIZED = Property("ops and types are those that the lowering has code for", legalized())


def cpu_pipeline(
    fma: bool,
    dots: tuple[str, ...] = (),
    tiles: tuple[str, ...] = (),
    check: str = "",
    avx512: bool = False,
    rounds_bf16: bool = False,
) -> Pipeline:
    """The pipeline of a CPU; see `Legalize`. check: kinds of `InstrumentAccesses`, if any."""
    steps = (
        LOWER_DESCRIPTORS,
        *_instrumentation(check),
        *CLEAN_UP,
        Step(GuardInactivePrograms(), "exit early where the mask of a whole program is false"),
        Step(
            SelectBranches(),
            "select between both sides of branches that compute little",
            needs=(_WHOLE_FUNCTIONS,),
        ),
        Step(
            Legalize(fma, dots, tiles, avx512, rounds_bf16),
            "expand functions, fp8 and casts that LLVM lacks",
            gives=(_LEGALIZED,),
            ends=(CANONICAL, _WHOLE_FUNCTIONS),
        ),
        Step(
            Canonicalize(),
            "fold the constants of expansions, and the casts around them",
            gives=(CANONICAL,),
        ),
        Step(Cse(), "merge constants and steps that expansions repeat", needs=(CANONICAL,)),
        Step(
            SelectTransposes(),
            "transpose blocks in registers where that makes loads contiguous",
            needs=(CANONICAL,),
        ),
    )
    given = (AS_WRITTEN, DESCRIPTORS, NO_LAYOUTS, _WHOLE_FUNCTIONS, _FRONT_END)
    return Pipeline("cpu", steps, given, ensures=(_LEGALIZED,))


def _instrumentation(check: str) -> tuple[Step, ...]:
    if not check:
        return ()  # most kernels are compiled without importing the pass
    does = f"instrument the kernel's accesses to check {check}"
    return (Step(transforms.InstrumentAccesses(check), does, needs=(AS_WRITTEN, POINTERS)),)


def pipeline_of(cpu: TargetCpu, check: str = "") -> Pipeline:
    """The pipeline for the instructions of a CPU."""
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
