"""Loads compiled kernels into the process and runs them over a grid."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from tilewright.backends.cpu.driver.cpu_messages import console
from tilewright.backends.cpu.driver.kernel_record import LaunchRecord, kernel_record
from tilewright.backends.cpu.driver.loaded_code import LoadedCode, announce, code_listeners
from tilewright.backends.cpu.driver.thread_pool import NativePool, Pool, WaitedInVain, shared_pool
from tilewright.backends.cpu.driver.thread_pool_program import MAX_THREADS
from tilewright.backends.cpu.program_waits import ALL_AT_ONCE
from tilewright.backends.manifest import Metadata, PackedLaunch
from tilewright.llvm import load_object
from tilewright.support import SourceLoc, cached_property, errors, settings, thread_count
from tilewright.support.asynchronous_exceptions import synchronous

_CODES = {
    "i1": "?7x", "i8": "b7x", "i16": "h6x", "i32": "i4x", "i64": "q",
    "u8": "B7x", "u16": "H6x", "u32": "I4x", "u64": "Q",
    "f16": "e6x", "f32": "f4x", "f64": "d",
}  # fmt: skip
"""`struct` code of each scalar parameter in its 8-byte slot; pointers are Q."""

_SLOTS = {"f16": "f16", "f32": "f32", "f64": "f64", "i1": "i1"}
"""Kinds of the words of parameters that are not integers or addresses."""


_LAUNCH_ON_STREAM = """
def launch_on_stream(x, y, z, stream, {}):
    try:
        slots = pack({})
    except synchronous(Exception):
        return False
    if x > 0 and y > 0 and z > 0:
        count = threads()
        status = pools[count](record, slots, x, y, z, scratch)
        if status or failures:
            check(count, status)
    return True
"""


class _PoolFunctions(dict[int, Callable[..., int]]):
    """Number of threads -> `start` of the pool with that many."""

    def __missing__(self, threads: int) -> Callable[..., int]:
        start = self[threads] = shared_pool(threads).start
        return start


def _threads_of_torch(threads: int) -> Callable[[], int]:
    """A function that returns PyTorch's present number of threads; without PyTorch, or where a
    setting gives the number for kernels, that of kernels."""
    torch = sys.modules.get("torch")
    count = threads or thread_count()
    return (lambda: count) if threads or torch is None else torch.get_num_threads


class CpuLauncher:
    """One loaded kernel. threads: of the pool that runs its grids; 0: all CPUs of this process."""

    n_regs = 1
    n_spills = None

    def __init__(
        self, obj: bytes, metadata: Metadata, parameters: Sequence[str], threads: int = 0
    ) -> None:
        self._name = cast("str", metadata["name"])
        # Kept alive: the code is unloaded with the object, and the record holds only its address.
        self._code = load_object(obj, [self._name])
        names = cast("Sequence[str]", metadata.get("names", ()))
        title = f"the kernel '{self._name}' ({metadata.get('location', 'no source')})"
        # The first character is the code of the type, the rest padding.
        kinds = [_code(parameter)[0] for parameter in parameters[: len(names)]]
        alone = cast("int", metadata.get("alone", 0))
        self._waits = cast("Sequence[Any]", metadata.get("waits", ()))
        code = self._code[self._name]
        if code_listeners or settings().cpu.perf:
            announce(LoadedCode(self._name, str(metadata.get("location", "")), code, obj))
        self._record = kernel_record(code, title, names, kinds, alone, bool(self._waits))
        self._scratch = cast("int", metadata["scratch_bytes"])
        self._codes = [_code(p) for p in parameters]
        self._pack = slots_of(parameters).pack
        self._console = console()
        self._threads = threads
        self._pool = shared_pool(threads)
        self._together = int(metadata.get("together", 0))
        self._parameters = parameters
        record = ctypes.addressof(self._record)
        self._words = LaunchRecord(record, self._scratch, self._console.address, len(parameters))

    def launch_packed(self) -> PackedLaunch | None:
        """The launch for native dispatch; None for parameters that Python has to convert, and where
        the pool is Python's."""
        slots = [_SLOTS.get(parameter, "word") for parameter in self._parameters]
        if not isinstance(self._pool, NativePool) or "f16" in slots or self._together:
            return None
        return PackedLaunch(
            self._pool.launch_packed,
            ctypes.addressof(self._words),
            slots,
            self._check,
            self._console.failures,
        )

    def _check(self, status: int) -> None:
        self._raise(cast("NativePool", self._pool), status)

    def _check_on(self, threads: int, status: int) -> None:
        self._raise(shared_pool(threads), status)

    def _raise(self, pool: Pool, status: int) -> None:
        """Raise the error of a launch's status, or the first failed assertion."""
        try:
            pool.check(status, self._scratch)
        except WaitedInVain as wait:
            raise self._endless(wait) from None
        self._console.check()

    def _endless(self, wait: WaitedInVain) -> errors.TilewrightError:
        """The error of an endless wait, located at its loop."""
        loc: SourceLoc | None = None
        for frame in reversed(self._waits[wait.loop]):
            loc = SourceLoc._make([*frame, loc])
        return errors.EndlessWait(self._name, f"{settings().cpu.wait_seconds:g}").with_loc(loc)

    @cached_property
    def launch_on_stream(self) -> Callable[..., bool]:
        """`launch(x, y, z, stream, *arguments)` for `torch.compile`: PyTorch's arrays and numbers,
        on as many threads as PyTorch uses. Returns False, without a launch, for arguments of other
        kinds. `stream` is ignored; an empty grid launches nothing.

        Generated as text for each kernel, so that a launch does little.
        """
        if self._together:
            return lambda *_arguments: False
        names = [f"a{i}" for i in range(len(self._parameters))]
        passed = [
            f"{name}.data_ptr()" if parameter.startswith("ptr") else name
            for name, parameter in zip(names, self._parameters, strict=True)
        ]
        text = _LAUNCH_ON_STREAM.format(", ".join(names), ", ".join([*passed, "console"]))
        known: dict[str, Any] = {
            "pack": self._pack,
            "synchronous": synchronous,
            "console": self._console.address,
            "record": ctypes.addressof(self._record),
            "scratch": self._scratch,
            "pools": _PoolFunctions(),
            "threads": _threads_of_torch(self._threads),
            "failures": self._console.failures,
            "check": self._check_on,
        }
        exec(text, known)  # noqa: S102 -- the names above, and numbered ones
        return known["launch_on_stream"]

    def _pool_of_all(self, grid: tuple[int, int, int]) -> Pool:
        """A pool with a thread for each program, since they wait for each other; for programs that
        wait only for earlier ones, the largest pool. Errors: OutOfResources."""
        programs = math.prod(grid)
        if programs > MAX_THREADS and self._together < ALL_AT_ONCE:
            return shared_pool(MAX_THREADS)
        if programs > MAX_THREADS:
            raise errors.OutOfResources(programs, MAX_THREADS, "threads of programs that wait")
        return self._pool if programs <= self._pool.threads else shared_pool(programs)

    def launch(self, grid: tuple[int, int, int], values: Sequence[int | float]) -> None:
        """Run the kernel; raises DeviceAssertionFailure if an assertion in it failed, and what
        handlers of signals raise: KeyboardInterrupt for Ctrl-C."""
        try:
            slots = self._pack(*values, self._console.address)
        except OverflowError:  # a float that its type cannot hold, which struct refuses to round
            slots = self._pack(*map(_rounded, values, self._codes), self._console.address)
        pool = self._pool_of_all(grid) if self._together else self._pool
        try:
            pool.launch(self._record, slots, grid, self._scratch)
        except WaitedInVain as wait:
            raise self._endless(wait) from None
        # Tested without the lock to keep launches cheap; `check` tests again under it.
        if self._console.failures:
            self._console.check()


def slots_of(parameters: Sequence[str]) -> struct.Struct:
    """The format of 8 bytes for each argument of these types, and for the console's address."""
    return struct.Struct("<" + "".join(map(_code, parameters)) + "Q")


def _rounded(value: float, code: str) -> float:
    """A number that fits its slot: floats beyond the largest of their type become infinite."""
    try:
        struct.pack(f"<{code}", value)
    except OverflowError:
        return math.copysign(math.inf, value)
    return value


def _code(parameter: str) -> str:
    return "Q" if parameter.startswith("ptr") else _CODES[parameter]
