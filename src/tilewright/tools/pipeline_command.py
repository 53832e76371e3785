"""`tilewright pipeline`: list the passes of a backend, in order, each with its description."""

from __future__ import annotations

import argparse

from tilewright.backends import Backend, GPUTarget, backend_named, default_backend
from tilewright.tools.command_output import add_json, print_json
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
        print(description(backend, target))
    return 0


def stages_of(backend: Backend, target: GPUTarget) -> list[dict[str, object]]:
    """The name of each stage and its passes, each as text that parses back, with its
    description."""
    stages: list[dict[str, object]] = []
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
