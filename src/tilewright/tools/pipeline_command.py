"""`tilewright pipeline`: list the passes of a backend, in order, each with its description."""

from __future__ import annotations

import argparse
from typing import TypedDict

from tilewright.backends import Backend, GPUTarget, backend_named, default_backend
from tilewright.tools.command_output import add_json, print_json, terminal_columns, wrapped
from tilewright.tools.target_names import add_target, target_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_target(parser)
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    if chosen.target is None:
        backend = default_backend()
        target = backend.target()
    else:
        target = target_named(chosen.target)
        backend = backend_named(target.backend)
    if chosen.json:
        print_json(stages_of(backend, target))
    else:
        columns = terminal_columns()
        table = description(backend, target)
        fits = columns is None or max(map(len, table.splitlines())) <= columns
        print(table if fits else _narrow(stages_of(backend, target), columns or 0))
    return 0


class Stage(TypedDict):
    """A stage of a backend, as JSON."""

    stage: str
    passes: list[dict[str, str]]


def stages_of(backend: Backend, target: GPUTarget) -> list[Stage]:
    """The name of each stage and its passes, each as text that parses back, with its
    description."""
    stages: list[Stage] = []
    for stage in backend.stages:
        steps = () if stage.pipeline is None else stage.pipeline(target).steps
        passes = [{"pass": str(step.work), "does": step.does} for step in steps]
        stages.append({"stage": stage.extension, "passes": passes})
    return stages


def description(backend: Backend, target: GPUTarget) -> str:
    """Every stage, with its passes where it has any."""
    parts: list[str] = []
    for stage in backend.stages:
        parts.append(f"stage {stage.extension}")
        if stage.pipeline is not None:
            lines = stage.pipeline(target).describe().splitlines()
            parts += [f"  {line}" for line in lines]
    return "\n".join(parts)


def _narrow(stages: list[Stage], columns: int) -> str:
    """Every stage and pass, each description on lines of its own, for a narrow terminal."""
    lines: list[str] = []
    for stage in stages:
        lines.append(f"stage {stage['stage']}")
        for number, entry in enumerate(stage["passes"], 1):
            lines.append(f"{number:>4}. {wrapped(entry['pass'], columns - 6, ' ' * 6).lstrip()}")
            lines.append(wrapped(entry["does"], columns, " " * 8))
    return "\n".join(lines)
