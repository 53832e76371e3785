"""Inspection of a kernel: everything that the page shows, from one recorded compilation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from tilewright.backends import CommonOptions, Explanation, GPUTarget
from tilewright.compiler import CompiledKernel, IRSource, KernelSource
from tilewright.inspector.located_text import Chain, LocatedLine, located_lines
from tilewright.inspector.page import page_text
from tilewright.inspector.pass_changes import LineTable, pass_changes
from tilewright.inspector.pictures import roofline_svg, schedule_svg
from tilewright.inspector.recorded_compilation import RecordedCompilation, compile_recorded
from tilewright.inspector.source_lines import source_files
from tilewright.support import TilewrightError, errors
from tilewright.support.data_class import dataclass

__all__ = ["Inspected", "inspect_kernel", "inspect_source"]

_STAGES = {
    "source": "tile IR as written",
    "ttir": "tile IR",
    "ttgir": "tile IR with layouts",
    "llir": "LLVM IR",
    "ptx": "PTX",
    "sass_lines": "SASS",
    "asm": "assembly",
}
"""Titles of the panes, in order."""

_DERIVED = ("sass_lines", "asm")
"""Texts that a backend derives from the artifacts of its stages, where it can."""

_NO_PTXAS = (
    "Without ptxas there is no machine code, and no registers, layouts, schedule and reasons: "
    "pip install nvidia-cuda-nvcc"
)


@dataclass(frozen=True, slots=True)
class Inspected:
    """A written page. error: of a kernel that does not compile, which the page shows"""

    file: Path
    error: TilewrightError | None = None


@dataclass(frozen=True, slots=True)
class _Contents:
    """The data of a page, which its script reads as JSON, and drawings by pane."""

    data: dict[str, Any]
    schedules: tuple[str, ...] = ()
    roofline: str = ""


def inspect_kernel(
    kernel: CompiledKernel,
    path: str | Path | None,
    sizes: Mapping[str, int] | None = None,
    grid: object = None,
    seconds: float | None = None,
) -> Path:
    """Write the page of a compiled kernel; see `CompiledKernel.inspect`."""
    source: Any = kernel.src
    options = kernel.metadata.options
    return inspect_source(source, kernel.target, options, path, sizes, grid, seconds).file


def inspect_source(
    source: KernelSource | IRSource,
    target: GPUTarget | None,
    options: CommonOptions | dict[str, object],
    path: str | Path | None = None,
    sizes: Mapping[str, int] | None = None,
    grid: object = None,
    seconds: float | None = None,
) -> Inspected:
    """Compile a source and write its page, or that of its error."""
    recorded = compile_recorded(source, target, options)
    explanation = None if recorded.kernel is None else recorded.kernel.explain(sizes, grid)
    made = _contents(source.name, recorded, explanation, seconds)
    file = Path(path) if path is not None else Path(f"{source.name}.html")
    file.write_text(page_text(made.data, made.schedules, made.roofline), encoding="utf-8")
    is_failed = made.data["error"] is not None
    return Inspected(file, recorded.error if is_failed else None)


def _contents(
    name: str,
    recorded: RecordedCompilation,
    explanation: Explanation | None,
    seconds: float | None,
) -> _Contents:
    missing: list[str] = []
    texts = _texts(recorded, missing)
    panes = {
        stage: located_lines(stage, text, texts.get("llir", "")) for stage, text in texts.items()
    }
    chains = _numbered(panes)
    files = source_files(chains)
    table = LineTable()
    passes = pass_changes(recorded.passes, table)
    data: dict[str, Any] = {
        "kernel": name,
        "error": _error_text(recorded.error, missing),
        "missing": missing,
        "files": files,
        "chains": _chain_numbers(chains, [file["path"] for file in files]),
        "panes": [
            {
                "stage": stage,
                "title": _STAGES[stage],
                "seconds": recorded.seconds.get("frontend" if stage == "source" else stage),
                "text": "\n".join(line.text for line in panes[stage]),
                "chains": _runs(chains.get(line.chain, -1) for line in panes[stage]),
            }
            for stage in _STAGES
            if stage in panes
        ],
        "passes": passes,
        "pass_lines": list(table.numbers),
        "explanation": None if explanation is None else explanation.as_json(),
        "summary": [] if explanation is None else explanation.summary(),
        "nests": [] if explanation is None else [*map(str, explanation.loops)],
        "seconds": seconds,
    }
    if explanation is None:
        return _Contents(data)
    roofline = "" if explanation.bound is None else roofline_svg(explanation.bound, seconds)
    return _Contents(data, tuple(map(schedule_svg, explanation.schedules)), roofline)


def _texts(recorded: RecordedCompilation, missing: list[str]) -> dict[str, str]:
    """The text of each stage; missing: gets what a missing program would add."""
    texts = {stage: text for stage, text in recorded.texts.items() if stage in _STAGES}
    kernel = recorded.kernel
    for name in _DERIVED if kernel is not None else ():
        if kernel is not None and name in kernel.backend.artifacts:
            try:
                texts[name] = kernel.asm[name]
            except errors.ToolMissing as problem:
                missing.append(f"{_STAGES[name]}: {problem}")
    return texts


def _error_text(error: TilewrightError | None, missing: list[str]) -> str | None:
    """The error of a kernel that does not compile. A missing assembler is no error of the
    kernel."""
    if isinstance(error, errors.ToolMissing):
        missing.append(f"{error}\n{_NO_PTXAS}")
        return None
    return None if error is None else str(error)


def _numbered(panes: Mapping[str, list[LocatedLine]]) -> dict[Chain, int]:
    """A number for each chain."""
    chains = (line.chain for lines in panes.values() for line in lines if line.chain)
    return {chain: number for number, chain in enumerate(dict.fromkeys(chains))}


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Equal numbers in sequence as [number, count]: a tenth of the bytes of a number for each
    line."""
    return [[number, len([*run])] for number, run in groupby(numbers)]


def _chain_numbers(chains: Iterable[Chain], paths: Iterable[str]) -> list[list[list[int]]]:
    """Each chain as pairs of the number of its file and the line."""
    numbers = {path: number for number, path in enumerate(paths)}
    return [[[numbers[file], line] for file, line in chain] for chain in chains]
