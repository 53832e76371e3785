"""A compilation with all that it reports: texts of the stages, changes of the passes, times."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from tilewright.backends import CommonOptions, GPUTarget
from tilewright.compiler import CompiledKernel, IRSource, KernelSource, compile
from tilewright.support import (
    Event,
    PassEnded,
    PassStarted,
    RuleFired,
    StageText,
    TilewrightError,
    Timing,
    errors,
    recording,
    settings,
)
from tilewright.support.data_class import dataclass

__all__ = ["RecordedCompilation", "RecordedPass", "compile_recorded"]


@dataclass(frozen=True, slots=True)
class RecordedPass:
    """A pass that has run. before, after: the IR, the same object where nothing changed; rules: how
    often each rewrite rule fired"""

    name: str
    seconds: float
    before: str
    after: str
    rules: dict[str, int]


@dataclass(slots=True)
class RecordedCompilation:
    """A recorder of one compilation. texts: by stage, with source locations; seconds: of each
    stage; kernel: None where it failed with `error`"""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    passes: list[RecordedPass] = field(default_factory=list[RecordedPass])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    kernel: CompiledKernel | None = None
    error: TilewrightError | None = None
    _before: str = ""
    _rules: Counter[str] = field(default_factory=Counter[str])

    def record(self, event: Event) -> None:
        """Keep what an event says."""
        if isinstance(event, StageText):
            self.texts[event.stage] = event.located
        elif isinstance(event, Timing):
            self.seconds[event.name.removeprefix("stage ")] = event.seconds
        elif isinstance(event, RuleFired):
            self._rules[event.rule] += 1
        elif isinstance(event, PassStarted):
            self._before, self._rules = event.text(), Counter()
        elif isinstance(event, PassEnded):
            after = event.text() if event.changed else self._before
            rules = dict(self._rules)
            self.passes.append(
                RecordedPass(event.pass_name, event.seconds, self._before, after, rules)
            )


def compile_recorded(
    source: KernelSource | IRSource,
    target: GPUTarget | None,
    options: CommonOptions | dict[str, object],
) -> RecordedCompilation:
    """Compile a kernel again, whatever the disk cache holds. An error of the kernel is recorded.

    Errors: UnknownTarget, UnknownName of an option.
    """
    recorded = RecordedCompilation()
    with settings().cache.scope(always_compile=True), recording(recorded):
        try:
            recorded.kernel = compile(source, target, options)
        except (errors.UnknownTarget, errors.UnknownName):
            raise
        except TilewrightError as error:
            recorded.error = error
    return recorded
