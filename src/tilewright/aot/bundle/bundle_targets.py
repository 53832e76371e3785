"""The CPUs and GPUs that a bundle may have code for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.backends import GPUTarget
from tilewright.support import errors

CPU_LEVELS = {
    "x86-64": 1, "x86-64-v2": 2, "x86-64-v3": 3, "x86-64-v4": 4, "x86-64-v4-amx": 5, "aarch64": 6,
}  # fmt: skip
"""Numbers of levels in cpu_launch.h; a CPU runs the code of lower levels of its architecture."""

MACROS = {"x86_64": "__x86_64__", "aarch64": "__aarch64__"}
"""Macros of C compilers by architecture."""

_CAPABILITIES = (80, 86, 89, 90, 100, 120)
_WARP = 32

DEFAULT_TARGETS = (*(n for n in CPU_LEVELS if n != "x86-64"), *(f"sm_{c}" for c in _CAPABILITIES))
"""The targets of a bundle unless some are named."""


def bundle_target(name: str) -> GPUTarget:
    """The target called `name`. Errors: InvalidOption."""
    cuda = re.fullmatch(r"(?:sm_|cuda:)(\d+)", name)
    if cuda:
        return GPUTarget("cuda", int(cuda[1]), _WARP)
    if name in CPU_LEVELS:
        return GPUTarget("cpu", name, 1)
    expected = f"one of {', '.join(CPU_LEVELS)}, or an architecture such as sm_90"
    raise errors.InvalidOption("targets", expected, name)


def bundle_targets(names: Sequence[str]) -> list[GPUTarget]:
    """Targets by name, each once, the least of each kind first. Errors: InvalidOption."""
    targets = dict.fromkeys(map(bundle_target, names or DEFAULT_TARGETS))
    return sorted(targets, key=_order)


def architecture_of(target: GPUTarget) -> str:
    """The architecture of a CPU target: "x86_64" or "aarch64"."""
    return "aarch64" if str(target.arch).startswith("aarch64") else "x86_64"


def _order(target: GPUTarget) -> tuple[str, int]:
    if target.backend == "cuda":
        return "cuda", int(target.arch)
    return "cpu", CPU_LEVELS[str(target.arch)]
