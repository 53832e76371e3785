"""Runs the stages of a backend on a source, with dumps, overrides, events and crash reports.

With the setting `dump_dir` every artifact is written to <dump_dir>/<kernel>-<hash>/<kernel>.<stage>
and the metadata to kernel.json in the same folder. With `override_dir` a stage's text is read from
<override_dir>/<kernel>-<hash>/<kernel>.<stage> or <override_dir>/<kernel>.<stage>, if such a file
exists.
"""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from tilewright.analysis import argument_pairs
from tilewright.backends import Backend, Stage, StageContext
from tilewright.compiler.artifacts import SOURCE, Artifact
from tilewright.compiler.sources import IRSource, KernelSource, Language, read_source
from tilewright.compiler.written_arguments import stored_arguments
from tilewright.frontend import FrontendOptions
from tilewright.ir import Module, print_module, valid_kernel
from tilewright.support import (
    CompilationSettings,
    StageText,
    TilewrightError,
    collected_warnings,
    collection_paused,
    current_recorder,
    errors,
    kernel_hooks,
    timed,
)
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.disk_cache import CRASH_HEAD, cache_folder, wrote

T = TypeVar("T")

HASH_CHARACTERS = 12
"""Length of the part of a kernel's hash in the names of dump folders."""


class Run:
    """One compilation.

    artifacts: by extension, in order. The text of IR is stored at the end of its stage, since the
    next stage changes the module in place.
    """

    def __init__(
        self,
        source: KernelSource | IRSource,
        backend: Backend,
        context: StageContext,
        digest: str,
        compilation: CompilationSettings,
    ) -> None:
        self.source = source
        self.backend = backend
        self.context = context
        self.digest = digest
        self.dump_dir = compilation.dump_dir
        self.override_dir = compilation.override_dir
        self.stages = self._inspected(backend.stages)
        self.artifacts: dict[str, Artifact] = {}
        self.times: list[int] = []
        """Microseconds of the front end, then of each stage."""

    def run(self, options: FrontendOptions) -> dict[str, Artifact]:
        """Run all stages. An unexpected exception becomes InternalCompilerError."""
        return self._guarded(lambda: self._all(*self._timed(lambda: self._start(options))))

    def run_module(self, module: Module) -> dict[str, Artifact]:
        """`run` on the tile IR of a front end, which is changed in place."""
        return self._guarded(lambda: self._all(self._module(module), self.stages))

    def _inspected(self, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """The stages, as a hook has changed them."""
        hook, context = kernel_hooks.stages, self.context
        if hook is None:
            return stages
        runs = {stage.extension: _for_hook(stage, context) for stage in stages}
        hook(self.backend, runs, context.options, Language.TRITON, context.target.arch)
        names = [stage.extension for stage in stages]
        if sorted(runs) != sorted(names):
            expected = f"left with the stages {', '.join(names)}"
            raise errors.InvalidOption("add_stages_inspection_hook", expected, ", ".join(runs))
        return tuple(_from_hook(stage, runs[stage.extension]) for stage in stages)

    def _guarded(self, work: Callable[[], dict[str, Artifact]]) -> dict[str, Artifact]:
        try:
            with collection_paused():
                return work()
        # Designed errors, and errors that are not bugs of the compiler.
        except (TilewrightError, MemoryError):
            raise
        except synchronous(Exception) as problem:
            raise self._crash(problem) from problem

    def _all(self, artifact: Artifact, stages: tuple[Stage, ...]) -> dict[str, Artifact]:
        if len(stages) < len(self.stages):
            self._run(artifact, stages)
            return self.artifacts
        first = self._run(artifact, stages[:1])
        prepared = dict(self.artifacts), dict(self.context.metadata)
        self._run(first, stages[1:])
        self._recompile(first, *prepared)
        return self.artifacts

    def _run(self, artifact: Artifact, stages: Sequence[Stage]) -> Artifact:
        for stage in stages:
            with timed(f"stage {stage.extension}"):
                artifact = self._timed(partial(self._stage, stage, artifact))
        return artifact

    def _recompile(
        self, first: Artifact, artifacts: dict[str, Artifact], metadata: dict[str, Any]
    ) -> None:
        """Compile a second time from the first stage's artifact, if the backend expects better
        code, and keep the better. artifacts, metadata: those after the first stage"""
        again, context = self.backend.recompilation, self.context
        # Other stages than the backend's may not report what it judges by.
        if again is None or self.override_dir is not None or kernel_hooks.stages is not None:
            return
        changes = again.plan(context.metadata)
        if changes is None:
            return
        kept = self.artifacts, context.metadata
        self.artifacts, context.metadata = artifacts, {**metadata, **changes}
        start, times = len(self.times), self.times
        try:
            self._run(first, self.stages[1:])
            is_better = again.cost(context.metadata) < again.cost(kept[1])
        except TilewrightError:  # such as too much shared memory
            is_better = False
        if not is_better:
            self.artifacts, context.metadata = kept
        for index, more in enumerate(times[start:], start - len(self.stages) + 1):
            times[index] += more
        del times[start:]

    def _timed(self, work: Callable[[], T]) -> T:
        start = time.perf_counter_ns()
        result = work()
        self.times.append((time.perf_counter_ns() - start) // 1000)
        return result

    def _start(self, options: FrontendOptions) -> tuple[Artifact, tuple[Stage, ...]]:
        """The first artifact, and the stages after it."""
        source, stages = self.source, self.stages
        if isinstance(source, KernelSource):
            with timed("frontend"), collected_warnings() as found:
                module = source.lower(options)
            if found:
                self.context.metadata["warnings"] = found
            return self._module(module), stages
        if source.extension in (SOURCE, "tile"):
            return self._module(self._parsed(source.text)), stages
        # nothing follows the last stage
        names = [stage.extension for stage in stages[:-1]]
        if source.extension not in names:
            expected = f"one of {', '.join([SOURCE, *names])}"
            raise errors.InvalidOption("extension of the source", expected, source.extension)
        position = names.index(source.extension)
        artifact = stages[position].parse(source.text, self.context)
        self.context.metadata.update({**source.metadata, "hash": self.digest})
        if isinstance(artifact, Module):
            self._describe(artifact)
        elif "parameters" not in source.metadata:
            what = f"given with a source of stage {source.extension}"
            raise errors.InvalidOption("metadata", what, "none")
        self._keep(source.extension, artifact)
        return artifact, stages[position + 1 :]

    def _module(self, module: Module) -> Module:
        """The module that the first stage gets, perhaps another than the given one."""
        text = self._override(SOURCE)
        module = module if text is None else self._parsed(text)
        self._describe(module)
        self._keep(SOURCE, module)
        return module

    def _parsed(self, text: str) -> Module:
        """Tile IR that the backend accepts: its first stage maps tile IR to tile IR."""
        return cast("Module", self.backend.stages[0].parse(text, self.context))

    def _describe(self, module: Module) -> None:
        """Record facts about the arguments that a launch needs."""
        kernel = valid_kernel(module)
        self.context.metadata.update(
            name=kernel.name,
            parameters=[str(arg.type) for arg in kernel.args],
            names=[arg.name or f"argument {i}" for i, arg in enumerate(kernel.args)],
            stored=list(stored_arguments(kernel)),
            pairs=[pair.as_json() for pair in argument_pairs(kernel)],
        )

    def _stage(self, stage: Stage, artifact: Artifact) -> Artifact:
        text = self._override(stage.extension)
        context = self.context
        result = stage.run(artifact, context) if text is None else stage.parse(text, context)
        self._keep(stage.extension, result)
        return result

    def _keep(self, extension: str, artifact: Artifact) -> None:
        recorder, folder = current_recorder(), self.dump_dir
        # Printed at once, since the next stage changes the module in place; the front end's module
        # is only printed for a recorder.
        located = ""
        if recorder is not None and isinstance(artifact, Module):
            located = print_module(artifact, locations=True)
        if extension != SOURCE or recorder or folder:
            artifact = print_module(artifact) if isinstance(artifact, Module) else artifact
        if extension != SOURCE:
            self.artifacts[extension] = artifact
        if recorder is not None and isinstance(artifact, str):
            recorder.record(StageText(extension, self.source.name, artifact, located or artifact))
        if folder is not None:
            dump(folder, self.source.name, self.digest, {extension: cast("str", artifact)})

    def _override(self, extension: str) -> str | None:
        """The text that replaces a stage, if its file exists."""
        folder = self.override_dir
        if folder is None:
            return None
        file = f"{file_name(self.source.name)}.{extension}"
        for path in (dump_folder(folder, self.source.name, self.digest) / file, folder / file):
            if path.exists():
                return read_source(path)
        return None

    def _crash(self, problem: Exception) -> errors.InternalCompilerError:
        """The error for a bug, with the path of a reproducer if one can be written."""
        detail = f"{type(problem).__name__}: {problem}".strip().rstrip(":")
        return errors.InternalCompilerError(detail, self._reproducer(problem))

    def _reproducer(self, problem: Exception) -> str | None:
        crashes = cache_folder("crashes")
        if crashes is None:
            return None
        # some compilations have no hash, and share a name
        folder = crashes / (self.digest[:HASH_CHARACTERS] or "0" * HASH_CHARACTERS)
        trace = "".join(traceback.format_exception(problem)).rstrip()
        try:
            body = self._source_text()
            suffix, mark = ".tile", "//"
            if isinstance(self.source, KernelSource) and not body.lstrip().startswith("func"):
                suffix, mark = self.source.suffix, self.source.comment
            path = folder / f"kernel{suffix}"
            stages = " -> ".join(stage.extension for stage in self.backend.stages)
            done = ", ".join(self.artifacts) or "none"
            head = [
                f"{CRASH_HEAD}{stages} for {self.context.target}",
                f"stages done: {done}",
                f"options: {self.context.options}",
                *trace.splitlines(),
            ]
            # not earlier, so that no empty folder is left if there is no text
            folder.mkdir(exist_ok=True)
            text = "\n".join([*(f"{mark} {line}" for line in head), body])
            path.write_text(text, encoding="utf-8")
            # Counts towards the limit of the cache's size.
            wrote(crashes.parent)
        except synchronous(Exception):  # a reproducer must not hide the error
            return None
        return str(path)

    def _source_text(self) -> str:
        """The front end's tile IR, or the user's source if the front end fails."""
        if isinstance(self.source, IRSource):
            return self.source.text
        options = FrontendOptions(self.backend.name)
        try:
            return print_module(self.source.lower(options))
        except synchronous(Exception):  # the bug is in the front end
            return self.source.text


def _for_hook(stage: Stage, context: StageContext) -> Callable[[Any, Any], Artifact]:
    def run(artifact: Any, metadata: object) -> Artifact:
        return stage.run(artifact, context)

    return run


def _from_hook(stage: Stage, run: Callable[[Any, Any], Artifact]) -> Stage:
    def run_stage(artifact: Any, context: StageContext) -> Artifact:
        return run(artifact, context.metadata)

    return replace(stage, run=run_stage)


def file_name(kernel: str) -> str:
    """The name of a kernel as a part of file names."""
    return re.sub(r"[^\w.$-]", "_", kernel)


def dump_folder(folder: Path, kernel: str, digest: str) -> Path:
    """The folder for the artifacts of one kernel."""
    return folder / f"{file_name(kernel)}-{digest[:HASH_CHARACTERS]}"


def dump(folder: Path, kernel: str, digest: str, artifacts: Mapping[str, str | bytes]) -> None:
    """Write artifacts below a folder for people to read."""
    path = dump_folder(folder, kernel, digest)
    path.mkdir(parents=True, exist_ok=True)
    for extension, artifact in artifacts.items():
        file = path / f"{file_name(kernel)}.{extension}"
        file.write_bytes(artifact.encode() if isinstance(artifact, str) else artifact)


def dump_metadata(folder: Path, kernel: str, digest: str, metadata: Mapping[str, object]) -> None:
    """Write what `IRSource` needs to go on from a dumped stage."""
    path = dump_folder(folder, kernel, digest)
    text = json.dumps(metadata, indent=1)
    (path / "kernel.json").write_text(text, encoding="utf-8")
