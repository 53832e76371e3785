"""The passes between the frontend's tile IR and CPU code, in order: read this first."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.backends.cpu.passes.legalize import legalize
from tilewright.backends.cpu.passes.select_transposes import select_transposes
from tilewright.backends.manifest import StageContext
from tilewright.ir import Function, Module, Pass, Pipeline, pipeline_of
from tilewright.llvm import host_cpu
from tilewright.transforms import SHARED, Canonicalize, Cse, Dce


@dataclass(frozen=True)
class Legalize(Pass, name="cpu-legalize"):
    """Expand what a CPU lacks; see legalize/. fma: a * b + c is one instruction."""

    fma: bool = True

    def run(self, function: Function) -> bool:
        legalize(function, self.fma)
        return True


class SelectTransposes(Pass, name="cpu-select-transposes"):
    """Choose the transpositions that go through registers; see select_transposes.py."""

    def run(self, function: Function) -> bool:
        select_transposes(function)
        return True


def cpu_pipeline(fma: bool) -> Pipeline:
    """The pipeline of a CPU."""
    own: tuple[tuple[Pass, str], ...] = (
        (Legalize(fma=fma), "exp and its like, fp8, casts: the lowering has no code for them"),
        (Canonicalize(), "expansions meet constants"),
        (Cse(), "expansions of one function share their constants and steps"),
        (Dce(), "what was expanded in part is not used in part"),
        (SelectTransposes(), "last, since it looks at how addresses are computed"),
    )
    return Pipeline("cpu", (*SHARED.steps, *pipeline_of("own", own).steps))


def run_pipeline(module: Module, context: StageContext) -> None:
    """Run every pass on the kernel."""
    cpu_pipeline(host_cpu().has_fma).run(module)
