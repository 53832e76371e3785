"""The passes between the frontend's tile IR and CPU code, in order: read this first."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.backends.base import StageContext
from tilewright.backends.cpu.prepare import prepare
from tilewright.backends.cpu.select_transposes import select_transposes
from tilewright.ir import Function, Module, Pass, Pipeline, pipeline_of
from tilewright.llvm import host_cpu
from tilewright.transforms import SHARED, Canonicalize, MergeEqual, RemoveDead


@dataclass(frozen=True)
class Prepare(Pass, name="cpu-prepare"):
    """Expand what a CPU lacks; see prepare/. fma: a * b + c is one instruction."""

    fma: bool = True

    def run(self, function: Function) -> bool:
        prepare(function, self.fma)
        return True


class SelectTransposes(Pass, name="cpu-transposes"):
    """Choose the transpositions that go through registers; see select_transposes.py."""

    def run(self, function: Function) -> bool:
        select_transposes(function)
        return True


def cpu_pipeline(fma: bool) -> Pipeline:
    """The pipeline of a CPU."""
    own: tuple[tuple[Pass, str], ...] = (
        (Prepare(fma=fma), "exp and its like, fp8, casts: the lowering has no code for them"),
        (Canonicalize(), "expansions meet constants"),
        (MergeEqual(), "expansions of one function share their constants and steps"),
        (RemoveDead(), "what was expanded in part is not used in part"),
        (SelectTransposes(), "last, since it looks at how addresses are computed"),
    )
    return Pipeline("cpu", (*SHARED.steps, *pipeline_of("own", own).steps))


def run_pipeline(module: Module, context: StageContext) -> None:
    """Run every pass on the kernel."""
    cpu_pipeline(host_cpu().has_fma).run(module)
