"""Recompilation of kernels that spill, without the passes that raise the pressure on registers.

Those passes decide by estimates (register_model.py), before ptxas assigns registers. Where it
spills, the kernel is compiled once more without one of them, and the kernel that spills less is
kept, also in the disk cache (docs/adr/0072-registers-from-liveness.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.backends.manifest import Metadata, Recompilation

_SKEW = "nvidia-skew-dependent-dots"
_PEEL = "nvidia-peel-mask-selects"
_VERSION = "nvidia-version-loop-body"

OMITTED, EFFECTIVE = "omitted_passes", "optional_passes"
"""Names of metadata: the passes that a compilation leaves out, and the optional passes that
changed its kernel."""

WARPS = "warps"
"""Name of metadata: the warps that compute a program, where `num_warps` cannot hold its
accumulators."""

_TOLERATED = 8
"""Words per thread, stored or reloaded: fewer spills are not worth a second compilation."""


def note_effective(names: Iterable[str], metadata: Metadata) -> None:
    """Record which of the passes that changed a kernel are optional."""
    optional = [name for name in (_SKEW, _PEEL, _VERSION) if name in names]
    if optional:
        metadata[EFFECTIVE] = optional


def _plan(metadata: Metadata) -> Metadata | None:
    """Versions of a body are the first to go, with the branches around masks that they straighten:
    skewed dots gain more."""
    effective = metadata.get(EFFECTIVE, ())
    if metadata.get("spills", 0) < _TOLERATED or not effective:
        return None
    if _VERSION in effective:
        return {OMITTED: [_PEEL, _VERSION]}
    return {OMITTED: [_SKEW if _SKEW in effective else _PEEL]}


def _spills(metadata: Metadata) -> float:
    return float(metadata["spills"])


RECOMPILATION = Recompilation(_plan, _spills)
