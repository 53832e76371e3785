"""The passes between the frontend's tile IR and CPU code, in order: read this first."""

from __future__ import annotations

from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.backends.cpu.passes.select_transposes import SelectTransposes
from tilewright.backends.manifest import StageContext
from tilewright.ir import Module, Pass, Pipeline, pipeline_of
from tilewright.llvm import host_cpu
from tilewright.transforms import SHARED, Canonicalize, Cse, Dce


def cpu_pipeline(fma: bool) -> Pipeline:
    """The pipeline of a CPU."""
    own: tuple[tuple[Pass, str], ...] = (
        (Legalize(fma=fma), "the lowering has no code for fp8, most functions and some casts"),
        (Canonicalize(), "fold the constants of expansions and the casts around them"),
        (Cse(), "expansions of one function repeat their constants and steps"),
        (Dce(), "remove parts of expansions that are not used"),
        (SelectTransposes(), "last: it looks at the final computation of addresses"),
    )
    return Pipeline("cpu", (*SHARED.steps, *pipeline_of("own", own).steps))


def run_pipeline(module: Module, context: StageContext) -> None:
    """Run every pass on the kernel."""
    cpu_pipeline(host_cpu().has_fma).run(module)
