"""Launches whose variant is not in memory: `on_miss`.

    error     raise MissingVariant
    log       print why to standard error, and compile
    generic   run the variant without facts now; a worker compiles and loads the other one

Under `generic` the launching thread compiles and loads nothing, if the variant without facts was
compiled before (`kernel.precompile`). Launches are served by it until the worker has loaded the
variant and replaced the entry of native dispatch.
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
import warnings
from collections.abc import Callable
from queue import SimpleQueue

from tilewright.aot.spec import KernelSpec
from tilewright.aot.worker_process import WorkerProcess
from tilewright.compiler import CompiledKernel, FarCompiler
from tilewright.runtime import (
    BoundCall,
    RecordedLaunch,
    Variant,
    VariantCache,
    detached_call,
    difference,
    generic_call,
)
from tilewright.support import (
    ForkLock,
    TilewrightError,
    TilewrightWarning,
    VariantMissed,
    current_recorder,
    errors,
    import_late,
)
from tilewright.support.asynchronous_exceptions import synchronous

_Key = tuple[object, ...]


class LaunchMisses:
    """The launches of one kernel whose variant is not in memory."""

    def __init__(self, cache: VariantCache) -> None:
        self._cache = cache
        self._serving: dict[_Key, BoundCall] = {}
        """Launches that are served without facts until a variant is loaded, by launch key."""
        self._useless: set[_Key] = set()
        """Launch keys of variants without facts that do not compile."""

    @property
    def pending(self) -> int:
        """The number of launch keys that are served without facts."""
        return len(self._serving)

    def variant(self, call: BoundCall, mode: str) -> Variant:
        """The variant to run. Errors: MissingVariant, and those of compiling."""
        cache = self._cache
        # in memory by other arguments: the worker finds that out
        is_miss = mode == "generic" and not cache.is_warm(call)
        kernel = None if is_miss else cache.in_memory(call)
        if call.outside and call.bounds:
            return self._outside(call, mode, kernel)
        if kernel is not None and (mode != "generic" or kernel.is_loaded):
            return cache.add_variant(call, kernel)
        if call.key not in self._serving:
            self._report(call, mode)
        if mode == "error":
            raise errors.MissingVariant(call.kernel, difference(call.named_keys, cache.seen))
        return self._generic(call) if mode == "generic" else cache.add_variant(call)

    def _outside(self, call: BoundCall, mode: str, kernel: CompiledKernel | None) -> Variant:
        """The variant for a value that was not declared, although its class may be in memory."""
        self._report(call, mode)
        if mode == "error":
            (name, why), *_ = call.outside
            raise errors.MissingVariant(call.kernel, f"'{name}' is {why}")
        if mode == "generic" and (kernel is None or not kernel.is_loaded):
            return self._generic(call)
        return self._cache.add_variant(call, kernel)

    def recorded(self, call: BoundCall) -> RecordedLaunch | None:
        """The launch with the variant without facts that serves it."""
        serving = self._serving.get(call.key)
        if serving is None:
            return None
        # with the values of this launch, as for every entry of native dispatch
        generic = generic_call(call)
        variant = self._cache.by_key.get(generic.key)
        return None if variant is None else RecordedLaunch(generic, variant, served=call.key)

    def _report(self, call: BoundCall, mode: str) -> None:
        """Record the event, and print it under "log"."""
        recorder = current_recorder()
        if recorder is None and mode != "log":
            return  # before the comparison of launch keys, which takes longest
        reason = difference(call.named_keys, self._cache.seen)
        if recorder is not None:
            recorder.record(VariantMissed(call.kernel, mode, mode == "generic", reason))
        if mode == "log":
            line = f"tilewright: {call.kernel} is compiled for a launch: {reason}"
            print(line, file=sys.stderr)

    def _generic(self, call: BoundCall) -> Variant:
        """The variant without facts, and the start of the worker for the other one."""
        cache, generic = self._cache, generic_call(call)
        variant = cache.by_key.get(generic.key)
        if generic.key == call.key or generic.key in self._useless:
            return cache.add_variant(call)
        try:
            variant = variant or cache.add_variant(generic)
        except TilewrightError:
            # integers that have to be constants: the variant of this launch may compile
            self._useless.add(generic.key)
            return cache.add_variant(call)
        if call.key not in self._serving:
            detached = detached_call(call)
            self._serving[call.key] = detached
            add_work(lambda: self._make(detached))
        variant.check_globals()
        return variant

    def _make(self, call: BoundCall) -> None:
        """Compile and load a variant, and let launches find it. Called by the worker."""
        cache = self._cache
        try:
            _activate(call.device)
            variant = self._made(call)
        except synchronous(Exception) as problem:  # other misses need the worker
            text = f"{call.kernel} stays without facts: {problem}"
            warnings.warn_explicit(text, TilewrightWarning, __file__, 0)
            return
        self._serving.pop(call.key, None)
        cache.replace_entries(call, variant)

    def _made(self, call: BoundCall) -> Variant:
        try:
            return self._cache.add_variant(call)
        except errors.OtherCompiler:
            # a backend of this process alone, or new sources: the thread compiles
            return contextvars.Context().run(self._cache.add_variant, call)


def _activate(device: str) -> None:
    """Make a device current for the libraries that choose one for each thread."""
    index = device.partition(":")[2]
    if not index:
        return
    if "torch" in sys.modules:
        import_late("torch").cuda.set_device(int(index))
    elif "cupy" in sys.modules:
        import_late("cupy").cuda.Device(int(index)).use()


class _Worker:
    """A thread that makes variants, one after the other. Only the front end of the compiler runs in
    it, the rest in another process, so that launches rarely wait for the interpreter's lock."""

    def __init__(self) -> None:
        self.process = WorkerProcess()
        self.work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._run, name="tilewright-misses", daemon=True).start()

    def _run(self) -> None:
        with FarCompiler(self.process):
            while True:
                self.work.get()()


_workers: dict[int, _Worker] = {}
_lock = ForkLock()


def prepare(spec: KernelSpec) -> None:
    """Import what a miss needs, and start the worker, before a launch does. spec: any variant of
    the kernel."""
    mode = spec.kernel.on_miss
    if mode != "compile":
        spec.kernel.variant_cache.prepare_misses()
    if mode == "generic":
        add_work(worker_process().start)
        spec.lower()  # imports the front end, which the worker thread needs


def add_work(work: Callable[[], None]) -> None:
    """Run a function in the worker."""
    _worker().work.put(work)


def worker_process() -> WorkerProcess:
    """The process that compiles for the worker."""
    return _worker().process


def _worker() -> _Worker:
    """The worker of this process; a forked one starts its own."""
    with _lock:
        worker = _workers.get(os.getpid())
        if worker is None:
            _workers.clear()
            worker = _workers[os.getpid()] = _Worker()
    return worker
