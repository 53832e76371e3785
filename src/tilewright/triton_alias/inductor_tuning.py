"""Which of a tuned kernel's configurations Inductor measures on a CPU: one of those of one code.

Inductor compiles all configurations of a kernel, users' autotuned ones among them, and measures
each. On a CPU those that differ in warps or stages only have the same hash: all but the first are
read from the cache. Before it measures, it asks its plugins, which may leave out launchers.

Needs torch.
"""

from __future__ import annotations

import importlib
from typing import Any

_heuristics: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")
_Plugin: Any = _heuristics.CachingAutotunerPlugin


class MeasureOnce(_Plugin):
    """Leaves of the launchers of a kernel for a CPU the first of those with the same code."""

    def pre_autotune(self, autotuner: Any, *_arguments: object, **_named: object) -> object:
        """Called where several launchers are to be measured."""
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
    """Have Inductor ask this plugin, too, of kernels that are made from now on: it has a function
    that lists them, and no other way to add one."""
    _heuristics.get_caching_autotuner_plugins = plugins_of
