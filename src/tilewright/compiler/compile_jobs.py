"""Jobs: compilations as text, for other processes and other machines.

    {"versions": {"tilewright": ..., "tools": ...}, "target": {...}, "options": {...},
     "settings": {"compilation": {...}}, "facts": {"hash": ..., "constants": ...},
     "name": "add", "source": "func @add(...) ...", "values": ["x", "n", ...]}

`source` is tile IR with source locations, so that a worker needs neither the kernel's module nor
its arguments; `values` are the names of all values in order, without the numbers that make them
unique in the text; `facts` are metadata that the front end knows. The result is an object as in a
remote cache (`remote_kernels`), with the artifacts of all stages: the bytes that compiling here
would make.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import IO, Any, NamedTuple, cast

from tilewright import ir
from tilewright.backends import Backend, GPUTarget, StageContext, backend_named
from tilewright.compiler.compile import Compilation, entry_of
from tilewright.compiler.kernel_store import Entry, package_content
from tilewright.compiler.remote_kernels import (
    localized,
    sealed_kernel,
    unsealed_kernel,
)
from tilewright.compiler.run_stages import Run
from tilewright.compiler.sources import KernelSource
from tilewright.frontend import FrontendOptions
from tilewright.frontend.python import KernelSignature
from tilewright.ir import Module, Value
from tilewright.support import (
    ForkLock,
    TilewrightError,
    collected_warnings,
    errors,
    settings,
    timed,
)
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.remote_cache import BadObject, Signer
from tilewright.support.version import __version__

_PROBLEM, _VERSIONS = "problem", "versions"
_SIGNER = Signer()
_settings_lock = ForkLock()


class Failed(NamedTuple):
    """A job that a worker could not do, for a reason that compiling here will show too."""

    problem: str


def versions(backend: Backend, target: GPUTarget) -> dict[str, str]:
    """The versions that decide what a job compiles to."""
    own = f"{__version__} (sources {package_content(backend.name)[:12]})"
    return {"tilewright": own, "tools": backend.tool_versions(target)}


# --- here -----------------------------------------------------------------------------------------


def job_text(work: Compilation) -> str:
    """The job of a compilation. Errors: CompilationErrors of the front end."""
    source = work.source
    facts: dict[str, Any] = {"hash": work.digest, "inputs": work.inputs}
    with timed("frontend"), collected_warnings() as found:
        module = work.module()
    if isinstance(source, KernelSource):
        facts["constants"] = source.constant_texts
    if found:
        facts["warnings"] = found
    job = {
        _VERSIONS: versions(work.backend, work.target),
        "target": asdict(work.target),
        "options": asdict(work.options),
        "settings": settings().in_key(),
        "facts": facts,
        "name": source.name,
        "source": ir.print_module(module, locations=True),
        "values": [value.name for value in _values(module)],
    }
    return json.dumps(job)


def read_result(work: Compilation, content: bytes) -> Entry | Failed:
    """The result of a job. Errors: OtherCompiler; BadObject for anything but a result."""
    if type(content) is not bytes:
        raise BadObject(f"a worker has returned {type(content).__name__}")
    members = _SIGNER.unsealed("", content).members
    if _VERSIONS in members:
        here = versions(work.backend, work.target)
        raise errors.OtherCompiler(_text(here), _text(members[_VERSIONS]))
    if _PROBLEM in members:
        return Failed(str(members[_PROBLEM]))
    return localized(unsealed_kernel(_SIGNER, "", content), work.digest)


def _text(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.items())


# --- in a worker ----------------------------------------------------------------------------------


def run_job(text: str) -> bytes:
    """Do a job. An error of the compiler is a result as well, and raised where the job is from.

    Other exceptions, such as MemoryError, are failures of this worker.
    """
    job = json.loads(text)
    target = GPUTarget(**job["target"])
    try:
        backend = backend_named(target.backend)
        here = versions(backend, target)
    except synchronous(TilewrightError) as problem:  # a backend that is not installed
        here = {"tilewright": __version__, "tools": str(problem)}
        return _SIGNER.sealed("", {_VERSIONS: here}, {})
    if here != job[_VERSIONS]:
        return _SIGNER.sealed("", {_VERSIONS: here}, {})
    try:
        with _as_there(job["settings"]):
            return sealed_kernel(_SIGNER, "", _compiled(job, backend, target))
    except TilewrightError as problem:
        return _SIGNER.sealed("", {_PROBLEM: f"{type(problem).__name__}: {problem}"}, {})


def _compiled(job: Mapping[str, Any], backend: Backend, target: GPUTarget) -> Entry:
    options = backend.options(**{name: _frozen(value) for name, value in job["options"].items()})
    facts = cast("dict[str, Any]", job["facts"])
    metadata = {**asdict(options), **facts, "target": asdict(target)}
    context = StageContext(target, options, metadata)
    run = Run(_JobSource(job), backend, context, facts["hash"], settings().compilation)
    return entry_of(context, run.run(FrontendOptions(backend.name)))


class _JobSource(KernelSource):
    """The front end's tile IR of a job."""

    suffix = ".tile"
    comment = "//"

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.name = job["name"]
        self.location = "a job"
        self.arguments = KernelSignature(())
        self._text: str = job["source"]
        self._values: list[str] = job["values"]

    def lower(self, options: FrontendOptions) -> Module:
        """The module. Errors: TileIRSyntaxError, InvalidTileIR."""
        module = ir.parse_valid_module(self._text)
        for value, name in zip(_values(module), self._values, strict=True):
            value.name = name
        return module

    def key(self) -> str:
        """The text: a job has no key of its own."""
        return self._text

    @property
    def text(self) -> str:
        """The tile IR."""
        return self._text


def _values(module: Module) -> Iterator[Value]:
    """All values of a module, in the order of their definitions."""
    for function in module.functions.values():
        yield from function.body.args
        for op in function.walk():
            yield from op.results
            for block in op.regions:
                yield from block.args


def _frozen(value: object) -> Any:
    """A value of an option: JSON has no tuples."""
    return tuple(map(_frozen, cast("list[object]", value))) if isinstance(value, list) else value


@contextmanager
def _as_there(wanted: Mapping[str, Mapping[str, Any]]) -> Generator[None]:
    """A block with the settings of a job, for one thread at a time: settings are those of all."""
    groups = dict[str, Any](settings().groups())
    with _settings_lock, ExitStack() as scopes:
        for name, values in wanted.items():
            scopes.enter_context(groups[name].scope(**values))
        yield


def main() -> None:
    """Do the job of the standard input: in a process that a crash of the compiler ends alone."""
    with result_stream() as results:
        results.write(run_job(sys.stdin.buffer.read().decode()))


def result_stream() -> IO[bytes]:
    """The standard output of this process, for results alone: from now on, prints of the compiler
    go to the standard error."""
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return results
