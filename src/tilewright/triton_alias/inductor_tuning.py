"""Removal of configurations of a tuned kernel with equal code, for Inductor on a CPU.

Inductor compiles all configurations of a kernel, including users' autotuned ones, and measures
each. On a CPU those that differ only in warps or stages have equal hashes: all but the first are
read from the cache. Before it measures, it calls its plugins, which may remove launchers.

Needs torch.
"""

from __future__ import annotations

import importlib
from typing import Any

_heuristics: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")
_Plugin: Any = _heuristics.CachingAutotunerPlugin


class MeasureOnce(_Plugin):
    """A plugin that keeps, of the launchers of a kernel for a CPU, the first with each code."""

    def pre_autotune(self, autotuner: Any, *_arguments: object, **_named: object) -> object:
        """Called before several launchers are measured."""
        if autotuner.device_props.type == "cpu":
            first: dict[str, Any] = {}
            for launcher in autotuner.launchers:
                first.setdefault(launcher.cache_hash, launcher)
            autotuner.launchers = [*first.values()]
        return _heuristics.DEFER


_others = _heuristics.get_caching_autotuner_plugins


def plugins_of(autotuner: Any) -> list[Any]:
    """Inductor's own plugins of a kernel, and this one."""
    return [*_others(autotuner), MeasureOnce()]


def register() -> None:
    """Add this plugin to those of Inductor for kernels created later, by replacing the function
    that lists them: there is no other way to add one."""
    _heuristics.get_caching_autotuner_plugins = plugins_of
