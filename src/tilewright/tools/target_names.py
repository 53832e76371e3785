"""Targets by the names that one types: `cpu`, `sm_90`, `cuda:90`."""

from __future__ import annotations

import argparse
import re

from tilewright.backends import GPUTarget, backend_named, backend_names
from tilewright.tools.command_failure import CommandFailed

_CUDA_WARP = 32
"""Lanes of a warp on every NVIDIA GPU."""


def add_target(parser: argparse.ArgumentParser) -> None:
    """`--target`."""
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="cpu, or an architecture such as sm_90 (default: this machine)",
    )


def target_named(name: str) -> GPUTarget:
    """The target called `name`. Raises CommandFailed where no backend serves it."""
    cuda = re.fullmatch(r"(?:sm_?|cuda:)(\d+)a?", name)
    backend = "cuda" if cuda else name
    if backend not in backend_names():
        supported = ", ".join(backend_names())
        raise CommandFailed(f"no backend serves the target '{name}'; installed are: {supported}")
    if cuda:
        return GPUTarget("cuda", int(cuda[1]), _CUDA_WARP)
    return backend_named(backend).target()
