"""Targets by name: `cpu`, `aarch64`, `sm_90`, `cuda:90`."""

from __future__ import annotations

import argparse
import re

from tilewright.backends import GPUTarget, backend_named, backend_names
from tilewright.tools.command_failure import CommandFailed

_CPU = "cpu"
_CUDA_WARP = 32
"""Lanes of a warp on every NVIDIA GPU."""


def add_target(parser: argparse.ArgumentParser) -> None:
    """`--target`."""
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="cpu, or an architecture such as sm_90 or aarch64 (default: this machine)",
    )


def target_named(name: str) -> GPUTarget:
    """The target called `name`. Raises CommandFailed where no backend serves it."""
    cuda = re.fullmatch(r"(?:sm_?|cuda:)(\d+)a?", name)
    if cuda:
        return GPUTarget("cuda", int(cuda[1]), _CUDA_WARP)
    if name in backend_names():
        return backend_named(name).target()
    cpus = backend_named(_CPU).architectures
    if name in cpus:
        return GPUTarget(_CPU, name, 1)
    supported = ", ".join((*backend_names(), *cpus))
    raise CommandFailed(f"no backend serves the target '{name}'; there are: {supported}")
