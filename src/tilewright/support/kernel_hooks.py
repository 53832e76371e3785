"""User functions that are called when kernels are compiled and loaded, for profilers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Generic, ParamSpec

from tilewright.support.data_class import dataclass

P = ParamSpec("P")


class HookChain(list[Callable[P, object]], Generic[P]):
    """Hooks, called in the order in which they were added, or in reverse order."""

    def __init__(self, reversed: bool = False) -> None:
        super().__init__()
        self.reversed = reversed

    @property
    def calls(self) -> list[Callable[P, object]]:
        """The hooks (Triton's name)."""
        return self

    def add(self, hook: Callable[P, object]) -> None:
        """Add a hook, once."""
        if hook not in self:
            self.append(hook)

    def remove(self, hook: Callable[P, object]) -> None:
        """Remove a hook; without effect if it is not present."""
        if hook in self:
            super().remove(hook)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call every hook."""
        # a copy, since a hook may remove itself
        for hook in self[::-1] if self.reversed else self[:]:
            hook(*args, **kwargs)


class LaunchMetadata:
    """The description of a launch that hooks receive, computed at the first `get`.

    arrays() -> the arguments that are arrays in host memory
    """

    def __init__(
        self,
        compute: Callable[[], dict[str, Any]],
        arrays: Callable[[], list[Any]] = list,
    ) -> None:
        self.arrays = arrays
        self._compute = compute
        self._found: dict[str, Any] | None = None

    def get(self) -> dict[str, Any]:
        """name, kernel, grid, and the items of the kernel's own `launch_metadata` function."""
        if self._found is None:
            self._found = self._compute()
        return self._found


@dataclass
class KernelHooks:
    """The hooks of compilations and loads, with Triton's arguments.

    load_start, load_end(module, function, name, metadata_group, hash): around loading a binary.
    module and function are None before; metadata_group has the files of the disk cache, as
    {"add.ttir": path}. unload, with the same arguments: a loaded kernel is no longer used. Its code
    stays loaded, since a graph of launches may hold it.

    listener(src=, metadata=, metadata_group=, times=, cache_hit=): after each compilation, and each
    kernel from the disk cache.

    jit_cache(key=, repr=, fn=, compile=, is_manual_warmup=, already_compiled=): before a variant is
    compiled, which is skipped if it returns true; jit_post_compile: the same, afterwards.

    stages(backend, stages, options, language, capability): before the stages of a compilation, a
    dictionary extension -> (artifact before, metadata) -> artifact, whose values it may replace.

    tuned(fn=, key=, best_config=, configs_timings=, duration=, cache_hit=): after a choice of the
    autotuner. Timings are milliseconds by configuration, duration is in seconds, cache_hit is
    whether all timings were on disk.
    """

    load_start: HookChain[...] = field(default_factory=lambda: HookChain[...]())
    load_end: HookChain[...] = field(default_factory=lambda: HookChain[...](reversed=True))
    unload: HookChain[...] = field(default_factory=lambda: HookChain[...]())
    listener: Callable[..., Any] | None = None
    jit_cache: Callable[..., Any] | None = None
    jit_post_compile: Callable[..., Any] | None = None
    stages: Callable[..., Any] | None = None
    tuned: Callable[..., Any] | None = None


kernel_hooks = KernelHooks()
