"""All variants of one kernel that are in memory, and how a new one comes to be."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

from tilewright.compiler import (
    CompiledKernel,
    IRSource,
    KernelSource,
    compile_source,
    options_of,
)
from tilewright.frontend.python import Dependencies, KernelSignature, dependencies
from tilewright.language import DeviceFunction
from tilewright.runtime.arguments.specialization import Key
from tilewright.runtime.launch.bound_call import Call
from tilewright.runtime.launch.launch_options import IR_OVERRIDE
from tilewright.runtime.launch.once_cache import Once
from tilewright.runtime.launch.variant import Globals, Variant, check_globals
from tilewright.support import ForkLock, VariantAdded, current_recorder, settings


class Compilable(Protocol):
    """A kernel in some source language."""

    def find_dependencies(self) -> Dependencies:
        """What the kernel's meaning depends on."""
        ...

    def source(self, signature: KernelSignature, digest: str) -> KernelSource:
        """The kernel for arguments; `digest` is the hash of its dependencies."""
        ...


class Launching(Protocol):
    """Machine code that knows variants, and launches them."""

    def note_launches(self) -> None:
        """Tell each variant when it was launched last."""
        ...

    def keep(self, variants: Collection[Variant]) -> None:
        """Know these only."""
        ...


_REMEMBERED = 64
"""Variants among which the one is searched that a new one is most like, for people."""
_AT_ONCE = 32
"""This part of the limit is dropped at once, so that looking for the oldest is rare."""


class Variants:
    """The variants of `function`.

    by_key: what a launch looks its variant up in; kernels: what has been compiled, by everything
    that decides it, so that keys which lead to the same code share it; clock: a word that counts
    launches; defaults: options that hold where a launch does not say.
    """

    def __init__(self, function: Compilable, defaults: Mapping[str, Any]) -> None:
        self.by_key: dict[tuple[object, ...], Variant] = {}
        self.kernels: Once[tuple[object, ...], CompiledKernel] = Once()
        self.clock = array("Q", [0])
        self._launching: WeakSet[Launching] = WeakSet()
        self._lock = ForkLock()
        self._function = function
        self._defaults = defaults
        self._dependencies: Dependencies | None = None
        self._globals: Globals | None = None
        self._seen: deque[dict[str, str]] = deque(maxlen=_REMEMBERED)

    @property
    def dependencies(self) -> Dependencies:
        """What the kernel's meaning depends on, as found when it was first asked for."""
        if self._dependencies is None:
            self._dependencies = self._function.find_dependencies()
        return self._dependencies

    def compiled(self, call: Call) -> CompiledKernel:
        """The kernel that a call needs, compiled or found; it is not loaded."""
        kernel = self._compiled(call)
        self._bound(kernel)
        return kernel

    def _compiled(self, call: Call) -> CompiledKernel:
        check_globals(call.kernel, self.dependencies)
        backend, target = call.backend, call.backend.target()
        words = {**self._defaults, **call.options}
        override = words.pop(IR_OVERRIDE, None)
        options = options_of(backend, words)
        source: KernelSource | IRSource
        source = self._function.source(call.signature(), self.dependencies.hash)
        if override is not None:
            source = IRSource(Path(override))
        # One device of several holds its own loaded copy; mocks and numbers have the first one's.
        device = call.device.partition(":")[2]
        key = (source.key(), backend.name, target, device or "0", options, _settings_of(call))

        def make() -> CompiledKernel:
            self._announce(call)
            return compile_source(source, backend, target, options)

        return self.kernels.get(key, make)

    def variant(self, call: Call) -> Variant:
        """The variant that a call runs. Errors: those of compiling; ReadOnlyArray, ..."""
        found = self.by_key.get(call.key)
        if found is not None:
            found.stamp = self._tick()
            return found
        call.check_runnable()
        kernel = self._compiled(call)
        call.check_writable(kernel.stored)
        found = Variant(kernel, call.keys, self._globals_of(call), self._tick())
        self.by_key[call.key] = found
        self._bound(kernel)
        return found

    def add(self, launching: Launching) -> None:
        """Machine code that is going to launch these variants."""
        with self._lock:
            self._launching.add(launching)

    def _tick(self) -> int:
        self.clock[0] = now = self.clock[0] + 1
        return now

    def _bound(self, newest: CompiledKernel) -> None:
        """Hold no more in memory than the setting allows, and the newest kernel, which may have no
        variant yet."""
        limit = settings().cache.max_variants
        if limit and max(len(self.by_key), len(self.kernels.made)) > limit:
            with self._lock:
                self._keep(limit - limit // _AT_ONCE, newest)

    def _keep(self, count: int, newest: CompiledKernel) -> None:
        """Drop all but the variants that were launched last, and the kernels made last beside
        theirs.

        What a launch is using, or somebody holds as a CompiledKernel, stays loaded until then.
        """
        for launching in self._launching:
            launching.note_launches()
        variants = sorted(list(self.by_key.items()), key=lambda item: item[1].stamp)
        for key, _ in variants[:-count]:
            self.by_key.pop(key, None)
        kept = {variant for _, variant in variants[-count:]}
        for launching in self._launching:
            launching.keep(kept)
        used = {newest, *(variant.kernel for variant in kept)}
        others = [key for key, kernel in list(self.kernels.made.items()) if kernel not in used]
        for key in others[: max(0, len(self.kernels.made) - count)]:
            self.kernels.made.pop(key, None)

    def _globals_of(self, call: Call) -> Globals:
        """Those of the kernel, and of functions that it is given as compile-time arguments."""
        given = [arg for arg in call.named.values() if isinstance(arg, DeviceFunction)]
        if not given:
            self._globals = self._globals or Globals(self.dependencies)
            return self._globals
        used = [item for fn in given for item in dependencies(fn).used]
        return Globals(Dependencies(self.dependencies.hash, (*self.dependencies.used, *used)))

    def _announce(self, call: Call) -> None:
        """Tell the event stream of a new variant, and why it is one."""
        recorder = current_recorder()
        now = described(call)
        if recorder is not None:
            recorder.record(VariantAdded(call.kernel, difference(now, self._seen)))
        self._seen.append(now)


def _settings_of(call: Call) -> tuple[object, ...]:
    return call.key[len(call.keys) + len(call.words) :]


def described(call: Call) -> dict[str, str]:
    """What decides a variant, for people: parameter or option -> how it is specialized."""
    pairs: list[tuple[str, Key | object]] = [
        *((param.name, key) for param, key in zip(call.params, call.keys, strict=True)),
        *call.words.items(),
    ]
    return {name: repr(key) for name, key in pairs}


def difference(now: Mapping[str, str], before: Collection[Mapping[str, str]]) -> str:
    """How a variant differs from the closest one before: "n: i32D -> i32"."""
    if not before:
        return "the first launch"

    def changes(old: Mapping[str, str]) -> list[str]:
        names = dict.fromkeys([*now, *old])
        return [
            f"{name}: {old.get(name, 'not given')} -> {now.get(name, 'not given')}"
            for name in names
            if old.get(name) != now.get(name)
        ]

    return ", ".join(min(map(changes, before), key=len)) or "settings have changed"
