"""The variants of one kernel in memory: lookup, compilation and eviction."""

from __future__ import annotations

import warnings
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, cast
from weakref import WeakMethod, WeakSet

from tilewright.backends import Backend, CommonOptions, GPUTarget
from tilewright.compiler import (
    Compilable,
    CompiledKernel,
    IRSource,
    KernelSource,
    compile_source,
    options_of,
)
from tilewright.frontend.python import Dependencies, KernelSignature, dependencies
from tilewright.language import DeviceFunction
from tilewright.runtime.arguments.key_rules import (
    MOCK,
    Key,
    Spec,
    TupleKey,
    on_any_device,
    run_time_pairs,
)
from tilewright.runtime.launch.bound_call import BoundCall
from tilewright.runtime.launch.compile_hooks import CompileSkipped, Variation
from tilewright.runtime.launch.launch_options import IR_OVERRIDE
from tilewright.runtime.launch.overlap_warning import OverlapWatch
from tilewright.runtime.launch.recompile_log import difference, log_recompile
from tilewright.runtime.launch.used_globals import GlobalCheck, UsedGlobals
from tilewright.support import (
    ON_MISS,
    CacheSettings,
    ForkLock,
    TilewrightWarning,
    VariantAdded,
    caller_outside,
    current_recorder,
    errors,
    function_late,
    kernel_hooks,
    settings,
)
from tilewright.support.data_class import dataclass

_record = function_late("tilewright.aot.recording:record_variant")

_misses = function_late("tilewright.aot.misses:LaunchMisses")

in_trial: ContextVar[bool] = ContextVar("tilewright_trial", default=False)
"""Whether the autotuner measures the launches of this thread, which run their own variants."""

Bounds = tuple[int, int]
"""Bounds of integers: low <= value < high."""

Pick = Callable[[Sequence[Any]], Sequence[Any]]


class Variant:
    """A loaded kernel and how its run-time values are picked from all arguments of a launch.

    globals: see `UsedGlobals.checks`; pairs: of run-time arguments that must not overlap; checked:
    whether the kernel reports wrong accesses; stamp: the clock of `VariantCache` at its latest
    launch.
    """

    __slots__ = (
        "_used_globals",
        "checked",
        "globals",
        "kernel",
        "launch",
        "pairs",
        "pick",
        "stamp",
    )

    def __init__(
        self, kernel: CompiledKernel, keys: Sequence[Key], globals: UsedGlobals, stamp: int
    ) -> None:
        self.kernel = kernel
        # A check for races is passed the addresses of the arrays, and reports overlaps that matter.
        self.pairs = () if "race" in kernel.metadata.options.check else kernel.pairs
        self.checked = hasattr(kernel.metadata, "checks")
        self.launch = kernel.launcher.launch
        self.pick = picker(keys)
        self.globals = globals.checks
        self.stamp = stamp
        self._used_globals = globals

    def check_globals(self) -> None:
        """Raise ChangedGlobal if a global has another value than when the kernel was compiled."""
        if any(get(name) is not value for get, name, value in self.globals):
            self._used_globals.check(self.kernel.src.name)


def picker(keys: Sequence[Key]) -> Pick:
    """The function that picks the run-time values of a launch; tuples are flattened."""
    if any(isinstance(key, TupleKey) for key in keys):
        return lambda values: [value for _, value in run_time_pairs(keys, values)]
    indices = [i for i, key in enumerate(keys) if isinstance(key, Spec)]
    # itemgetter of one index returns the bare value, not a tuple of one
    if len(indices) > 1:
        return itemgetter(*indices)
    return lambda values: [values[i] for i in indices]


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch that was made: its bound arguments and its variant, of which native dispatch makes a
    cache entry.

    checks: conditions, besides the globals of the variant, under which the entry is valid; note:
    an array of one word and what each launch writes to it; served: the launch key, if the variant
    without facts serves in place of the launch's own.
    """

    call: BoundCall
    variant: Variant
    checks: tuple[GlobalCheck, ...] = ()
    note: tuple[array[int], int] | None = None
    served: tuple[object, ...] | None = None


@dataclass(frozen=True, slots=True)
class LaunchState:
    """The state of a kernel that each of its launches reads.

    assigned: settings of compilation that the program has set; enter, exit: hooks around launches;
    before: those of this kernel; overlaps: the watch for arguments that overlap; clock: one 64-bit
    number that counts launches; bounds: of declared integers, by parameter; variants: by launch
    key. With any setting or hook, machine code leaves launches to Python.
    """

    assigned: Mapping[str, object]
    enter: Sequence[object]
    exit: Sequence[object]
    before: Sequence[object]
    overlaps: OverlapWatch
    clock: array[int]
    bounds: Mapping[str, Bounds]
    variants: Mapping[tuple[object, ...] | None, Variant]


class NativeDispatch(Protocol):
    """A table of native dispatch."""

    def note_launches(self) -> None:
        """Set the stamp of each variant to the clock of its latest launch."""
        ...

    def retain(self, variants: Collection[Variant]) -> None:
        """Drop the cache entries of all other variants."""
        ...

    def read_bounds(self) -> None:
        """Read the bounds of integers again, which have changed."""
        ...

    def replace(self, served: tuple[object, ...], record: RecordedLaunch) -> None:
        """Run a variant in place of the one without facts that serves a launch key."""
        ...


class Misses(Protocol):
    """Treatment of launches whose variant is not in memory, where it is not compiled at once."""

    def variant(self, call: BoundCall, mode: str) -> Variant:
        """The variant to run, or an error."""
        ...

    def recorded(self, call: BoundCall) -> RecordedLaunch | None:
        """The launch as it was run."""
        ...


_REMEMBERED = 64
"""Number of latest variants with which a new one is compared, to report the difference."""
_EVICTED_PART = 32
"""Fraction of the limit that is evicted at a time, so that variants are rarely sorted by age."""

KernelKey = str
"""A string, since hooks are passed it, as in Triton."""


def _kernel_key(
    source: KernelSource | IRSource,
    backend: Backend,
    target: GPUTarget,
    device: str,
    options: CommonOptions,
    assigned: Iterable[tuple[str, object]],
) -> KernelKey:
    # Two backends may compile for one target: the tests have an emulated GPU.
    return " ".join(map(str, (source.key(), backend.name, target, device, options, [*assigned])))


class CompiledKernels:
    """Compiled kernels by all that decides their code. Different kernels are compiled in parallel,
    each once, even if several threads need it at a time; a failure is raised and not cached."""

    def __init__(self) -> None:
        self.made: dict[KernelKey, CompiledKernel] = {}
        self._guard = ForkLock()
        self._locks: dict[KernelKey, ForkLock] = {}

    def get(self, key: KernelKey, make: Callable[[], CompiledKernel]) -> CompiledKernel:
        """The kernel of `key`, compiled by `make` if this is the first time."""
        kernel = self.made.get(key)
        if kernel is not None:
            return kernel
        with self._guard:
            lock = self._locks.setdefault(key, ForkLock())
        with lock:
            kernel = self.made.get(key)  # another thread may have compiled it
            if kernel is None:
                kernel = self.made[key] = make()
            with self._guard:
                # after `made` has the kernel, where a thread without the lock finds it
                self._locks.pop(key, None)
            return kernel


class VariantCache:
    """The variants of `function`, a kernel called `name`.

    by_key: variants by `BoundCall.key`; kernels: shared by keys that lead to the same code;
    overlaps: warns of arguments that overlap, once for all variants; clock: one 64-bit integer that
    counts launches; defaults: options for launches that do not give them; limits: the maximal
    number of variants; kernel: passed to hooks as the function; on_miss: one of `support.ON_MISS`
    instead of the setting; seen: launch keys of the latest variants; bounds: of integers that were
    declared, by parameter.
    """

    def __init__(
        self,
        name: str,
        function: Compilable,
        defaults: Mapping[str, Any],
        limits: CacheSettings,
        kernel: object = None,
    ) -> None:
        self.by_key: dict[tuple[object, ...], Variant] = {}
        self.kernels = CompiledKernels()
        self.overlaps = OverlapWatch(name)
        self.clock = array("Q", [0])
        self._dispatches: WeakSet[NativeDispatch] = WeakSet()
        self._lock = ForkLock()
        self._function = function
        self._defaults = defaults
        self._limits = limits
        self.kernel = kernel
        self._dependencies: Dependencies | None = None
        self._own_globals: UsedGlobals | None = None
        self._declared = set[str]()
        self._warm = set[tuple[object, ...]]()
        self.bounds: dict[str, Bounds] = {}
        self.on_miss: str | None = None
        self.misses: Misses | None = None
        self.seen: deque[dict[str, object]] = deque(maxlen=_REMEMBERED)

    @property
    def dependencies(self) -> Dependencies:
        """The dependencies of the kernel's meaning, as of the first use."""
        if self._dependencies is None:
            found = self._function.find_dependencies()
            found.refuse_conflicts()
            self._dependencies = found
        return self._dependencies

    @property
    def known_hash(self) -> str | None:
        """The hash of the dependencies, if they have been read."""
        return None if self._dependencies is None else self._dependencies.hash

    def forget_dependencies(self) -> None:
        """Read the dependencies again at the next launch; keep compiled kernels that still fit."""
        with self._lock:
            self._dependencies = self._own_globals = None
            self.by_key.clear()
            for dispatch in self._dispatches:
                dispatch.retain(())

    def variant(self, call: BoundCall) -> Variant:
        """The variant that a launch runs, compiled and loaded if it is new.

        Errors: those of compiling; ChangedGlobal, ReadOnlyArray; UnsupportedArgument for a
        `MockTensor`.
        """
        variant = self.by_key.get(call.key)
        if variant is None:
            return self._new_variant(call)
        variant.stamp = self._tick()
        variant.check_globals()
        return variant

    def compiled(self, call: BoundCall) -> CompiledKernel:
        """The kernel that a launch needs; it is not loaded."""
        kernel = self._compiled(call, is_warmup=True)
        self._warm.add(_warm_key(call))
        self._evict(kernel)
        return kernel

    def _new_variant(self, call: BoundCall) -> Variant:
        mode = self.on_miss or self._limits.on_miss
        # a checked launch is described by the launch key of its own variant
        if mode == ON_MISS[0] or in_trial.get() or self._defaults.get("check"):
            return self.add_variant(call)
        return self.prepare_misses().variant(call, mode)

    def prepare_misses(self) -> Misses:
        """The treatment of launches without a variant, imported at its first use."""
        misses = self.misses = self.misses or cast("Misses", _misses(self))
        return misses

    def recorded(self, call: BoundCall) -> RecordedLaunch | None:
        """The launch with the variant that it runs at present, if that is in memory."""
        variant = self.by_key.get(call.key)
        if variant is not None:
            return RecordedLaunch(call, variant)
        return None if self.misses is None else self.misses.recorded(call)

    def is_warm(self, call: BoundCall) -> bool:
        """Whether the kernel of a launch was compiled before, by arguments like these; quickly."""
        return _warm_key(call) in self._warm

    def in_memory(self, call: BoundCall) -> CompiledKernel | None:
        """The kernel that a launch needs, if it is compiled; it may not be loaded."""
        return self.kernels.made.get(self._request(call, is_warmup=False)[0])

    def declare(self, bounds: Mapping[str, Bounds | None]) -> None:
        """Widen the bounds of integers; None: to all. Launches outside are misses."""
        for name, found in bounds.items():
            old = self.bounds.get(name) if name in self._declared else found
            if found is None or old is None:
                self.bounds.pop(name, None)
            else:
                self.bounds[name] = min(found[0], old[0]), max(found[1], old[1])
        self._declared |= bounds.keys()
        for dispatch in list(self._dispatches):
            dispatch.read_bounds()

    def replace_entries(self, call: BoundCall, variant: Variant) -> None:
        """Let native dispatch run a variant for the launches that one without facts has served."""
        for dispatch in list(self._dispatches):
            dispatch.replace(call.key, RecordedLaunch(call, variant))

    def add_variant(self, call: BoundCall, kernel: CompiledKernel | None = None) -> Variant:
        """The new variant of a launch, compiled and loaded. kernel: `in_memory` of the launch.

        Errors: as of `variant`.
        """
        # before compiling, since a launch with a stand-in cannot run
        _check_runnable(call)
        if kernel is None:
            kernel = self._compiled(call)
        # after compiling, which determines the arguments that are stored to
        _check_writable(call, kernel.stored)
        used_globals = self._used_globals(call)
        used_globals.check(call.kernel)
        path = self._limits.record
        if path is not None:
            _record(path, self.kernel, call)
        variant = Variant(kernel, call.keys, used_globals, self._tick())
        # with another architecture than the device's, the next launch reads the setting again
        if call.backend.memory is None or settings().compilation.override_arch is None:
            self.by_key[call.key] = variant
        self._evict(kernel)
        return variant

    def _compiled(self, call: BoundCall, is_warmup: bool = False) -> CompiledKernel:
        return self.kernels.get(*self._request(call, is_warmup))

    def _request(
        self, call: BoundCall, is_warmup: bool
    ) -> tuple[KernelKey, Callable[[], CompiledKernel]]:
        """The key of the kernel that a launch needs, and the function that compiles it."""
        self._globals().check(call.kernel)
        backend, target = call.backend, call.backend.target()
        override = call.options.get(IR_OVERRIDE)
        options, check = self.options_of(call), self._defaults.get("check", "")
        if check and not is_warmup:
            options = _checking(call.kernel, backend, options, check)
        described = self.source_of(call)
        source = described if override is None else IRSource(Path(override))
        # Each device has its own loaded copy; mocks and numbers use that of the first.
        device = call.device.partition(":")[2] or "0"
        key = _kernel_key(source, backend, target, device, options, call.assigned_settings)

        def compile_new() -> CompiledKernel:
            self._announce(call)
            variation = Variation(self.kernel, described, backend, options, key, is_warmup)
            if variation.call(kernel_hooks.jit_cache):
                raise CompileSkipped
            kernel = compile_source(source, backend, target, options)
            variation.call(kernel_hooks.jit_post_compile)
            if kernel.pairs:
                # for launches as `kernel.warmup(...)[grid](...)`, which bypass this cache
                kernel.watch = self.overlaps
            if kernel.pairs and backend.orders_overlaps and not options.check:
                in_order = replace(options, may_overlap=True)
                make = partial(compile_source, source, backend, target, in_order)
                kernel.in_order = partial(self.kernels.get, f"{key} in order", make)
            return kernel

        return key, compile_new

    def options_of(self, call: BoundCall) -> CommonOptions:
        """The options of a launch, with those of the kernel, without checks."""
        named = {**self._defaults, **call.options}
        named.pop(IR_OVERRIDE, None)
        named.pop("check", None)
        return options_of(call.backend, named)

    def source_of(self, call: BoundCall) -> KernelSource:
        """The kernel with the arguments of a launch."""
        return self._function.source(call.signature, self.dependencies.hash)

    def preload(
        self, signature: KernelSignature, backend: Backend, options: CommonOptions
    ) -> CompiledKernel:
        """The kernel for arguments, compiled if it is new, before its first launch."""
        source, target = self._function.source(signature, self.dependencies.hash), backend.target()
        assigned = vars(settings().compilation).items()
        key = _kernel_key(source, backend, target, "0", options, assigned)
        return self.kernels.get(key, partial(compile_source, source, backend, target, options))

    def add(self, dispatch: NativeDispatch) -> None:
        """Register a table that launches these variants."""
        with self._lock:
            self._dispatches.add(dispatch)

    def _tick(self) -> int:
        self.clock[0] = now = self.clock[0] + 1
        return now

    def _evict(self, newest: CompiledKernel) -> None:
        """Drop variants beyond the limit, but not `newest`, which may have no variant yet."""
        limit = self._limits.max_variants
        if limit and max(len(self.by_key), len(self.kernels.made)) > limit:
            with self._lock:
                self._retain(limit - limit // _EVICTED_PART, newest)

    def _retain(self, count: int, newest: CompiledKernel) -> None:
        """Drop all but the latest launched variants, and the latest compiled kernels besides
        theirs.

        A kernel that a launch uses, or that is held as a CompiledKernel, stays loaded until then.
        """
        # Machine code does not write to objects of Python: copy its stamps now.
        for dispatch in self._dispatches:
            dispatch.note_launches()
        # an atomic copy, since other threads may add variants
        variants = sorted(list(self.by_key.items()), key=lambda item: item[1].stamp)
        for key, _ in variants[:-count]:
            self.by_key.pop(key, None)
        kept = {variant for _, variant in variants[-count:]}
        for dispatch in self._dispatches:
            dispatch.retain(kept)
        used = {newest, *(variant.kernel for variant in kept)}
        others = [key for key, kernel in list(self.kernels.made.items()) if kernel not in used]
        # the oldest first: a dictionary keeps the order in which kernels were made
        for key in others[: max(0, len(self.kernels.made) - count)]:
            self.kernels.made.pop(key, None)

    def _globals(self) -> UsedGlobals:
        """The globals of the kernel itself."""
        if self._own_globals is None:
            self._own_globals = UsedGlobals(self.dependencies, self._forget_later())
        return self._own_globals

    def _used_globals(self, call: BoundCall) -> UsedGlobals:
        """The globals of the kernel, and of functions among its compile-time arguments."""
        functions = [arg for arg in call.named.values() if isinstance(arg, DeviceFunction)]
        if not functions:
            return self._globals()
        used = [item for fn in functions for item in dependencies(fn).used]
        all_used = Dependencies(self.dependencies.hash, (*self.dependencies.used, *used))
        return UsedGlobals(all_used, self._forget_later())

    def _forget_later(self) -> Callable[[], object]:
        """A function that drops all variants, so that the next launch reads the globals."""
        forget = WeakMethod(self._forget)

        def called() -> None:
            found = forget()
            if found is not None:
                found()

        return called

    def _forget(self) -> None:
        self.by_key.clear()
        for dispatch in self._dispatches:
            dispatch.retain(())

    def _announce(self, call: BoundCall) -> None:
        """Record the event of a new variant, and why it is one."""
        recorder = current_recorder()
        now = call.named_keys
        log_recompile(call.kernel, now, self.seen, {param.name for param in call.params})
        if recorder is not None:
            recorder.record(VariantAdded(call.kernel, difference(now, self.seen)))
        self.seen.append(now)


def _warm_key(call: BoundCall) -> tuple[object, ...]:
    """The launch key, of arrays on any device."""
    count = len(call.keys)
    return (*map(on_any_device, call.keys), *call.key[count : count + len(call.keywords)])


def _checking(kernel: str, backend: Backend, options: CommonOptions, check: str) -> CommonOptions:
    """The options with the checks; a warning if the backend cannot check."""
    if backend.checks:
        return replace(options, check=check)
    kinds = check.replace("+", ", ")
    text = (
        f"{kernel} runs unchecked for {kinds} on arrays of {backend.name}: use arrays of the host"
    )
    warnings.warn_explicit(text, TilewrightWarning, *caller_outside())
    return options


def _check_runnable(call: BoundCall) -> None:
    """Raise UnsupportedArgument for a stand-in that has no memory."""
    for name, spec in call.run_time_specs:
        if spec.device == MOCK:
            raise errors.UnsupportedArgument(
                name, "MockTensor", "it has no memory; use it with kernel.warmup(...)"
            )


def _check_writable(call: BoundCall, stored: Collection[int]) -> None:
    """Raise ReadOnlyArray if a read-only array is among the run-time arguments at `stored`."""
    for position, (name, spec) in enumerate(call.run_time_specs):
        if spec.read_only and position in stored:
            raise errors.ReadOnlyArray(name, call.kernel)
