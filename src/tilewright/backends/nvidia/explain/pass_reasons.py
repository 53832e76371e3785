"""Reasons that the layout passes give for their decisions, from a trial run on a copy of a
function.

Each pass decides for the function as the passes before it leave it, so it is queried there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from tilewright.backends.nvidia.passes.multicast_tma import MulticastTma
from tilewright.backends.nvidia.passes.select_tma import SelectTma
from tilewright.backends.nvidia.passes.software_pipeline import SoftwarePipeline, StageChoice
from tilewright.backends.nvidia.passes.specialize_warps import SpecializeWarps
from tilewright.backends.nvidia.pipeline import Choices, layout_pipeline
from tilewright.ir import Function, Step
from tilewright.ops import DotOp, ForOp
from tilewright.support import SourceLoc
from tilewright.support.data_class import dataclass

_NO_ROLES = "maxnreg or num_ctas leaves no producer warp"


@dataclass(slots=True)
class PassReasons:
    """no_tma: by the place of an access, why TMA does not issue it; not_shared: why the blocks of
    clusters share no loads; no_producer: why no producer warp issues the loads, "" if one does;
    stages: of loops that are pipelined; has_loops: whether dots are in loops"""

    no_tma: Mapping[SourceLoc | None, str] = field(default_factory=dict[SourceLoc | None, str])
    not_shared: str = _NO_ROLES
    no_producer: str = _NO_ROLES
    stages: list[StageChoice] = field(default_factory=list[StageChoice])
    has_loops: bool = False

    def notes(self) -> Iterator[str]:
        """Notes on the whole kernel: on its producer warp, and on loops with few stages."""
        if self.no_producer and self.has_loops:
            yield f"no producer warp: {self.no_producer}"
        for choice in self.stages:
            if 0 < choice.slots < choice.requested or (not choice.slots and self.has_loops):
                place = "a loop" if choice.loc is None else f"the loop of line {choice.loc.line}"
                yield (
                    f"{place} has {choice.slots or 'no'} stages of {choice.requested} requested: "
                    f"{choice.why_not}"
                )


def pass_reasons(function: Function, choices: Choices) -> PassReasons:
    """The reasons of all passes. The function, a copy, is changed."""
    loops = (op for op in function.walk() if isinstance(op, ForOp))
    has_dots = any(isinstance(op, DotOp) for loop in loops for op in loop.walk())
    reasons = PassReasons(has_loops=has_dots and choices.arch.setmaxnreg)
    for step in layout_pipeline(choices).steps:
        _run(step, function, reasons)
    return reasons


def _run(step: Step, function: Function, reasons: PassReasons) -> None:
    """Run a pass, and keep its reasons."""
    work = step.work
    if isinstance(work, SelectTma):
        reasons.no_tma = work.select(function).reasons
    elif isinstance(work, SoftwarePipeline):
        reasons.stages = work.pipeline(function)
    else:
        if isinstance(work, SpecializeWarps):
            reasons.no_producer = work.obstacle(function)
        if isinstance(work, MulticastTma):
            reasons.not_shared = work.obstacle(function)
        work.run(function)
