"""The thread pool: runs a compiled kernel over its grid on all cores, with the GIL released.

A compiled kernel is a C function

    int64 kernel(void *args, int64 begin, int64 end, int32 grid[3], void *scratch, int32 *poll)

that runs the program instances with linear ids begin..end-1 (x fastest) and returns the next one:
`end`, or less if *poll was not 0 after a program. `args` points to a slot of 8 bytes for each
pointer or scalar; `scratch` to a 64-byte aligned area that no other thread uses during the call.

The threads are native ones that never touch Python (`thread_pool_program`); they start at the first
launch that has more than one program, and again after a fork, whose child has one thread unless a
setting gives the number. Nothing has to be shut down at exit. Launches from several Python threads
run one after another. On Windows, which has no pthreads, Python threads call the kernel instead
(`PythonPool`), with a longer launch.

Ctrl-C, and any other signal whose handler raises, ends a launch after the programs that are
running; the others are dropped, and arrays may be partly written.
"""

import ctypes
import functools
import itertools
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Protocol

from tilewright.backends.cpu.driver.kernel_record import KernelRecord
from tilewright.backends.cpu.driver.thread_pool_program import (
    CHUNKS_PER_THREAD,
    MAX_THREADS,
    NESTED,
    NO_MEMORY,
    WAITED,
    LatestKernels,
    pool_program,
)
from tilewright.llvm import LoadedObject, host_cpu, load_object
from tilewright.native import METH_FASTCALL, NativeProgram, builtin_function
from tilewright.support import ForkLock, operating_system, settings, thread_count
from tilewright.support.asynchronous_exceptions import synchronous

Grid = tuple[int, int, int]

SPIN_MICROSECONDS = 40.0
"""How long a thread without work stays awake: about the cost of sleeping and waking once."""

_KERNEL = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
)
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int64,
)
_CONFIGURE = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32)
_PAUSE = ctypes.CFUNCTYPE(None, ctypes.c_int64)
_ACTION = ctypes.CFUNCTYPE(None)
_COUNT = ctypes.CFUNCTYPE(ctypes.c_int32)
_LIMIT = ctypes.CFUNCTYPE(None, ctypes.c_int32)
_INTO = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_LOOKS_A_SECOND = 20
"""Wake-ups of the ticker, see `thread_pool_signals.h`."""


class Pool(Protocol):
    """The interface of both kinds of pool to a launcher."""

    @property
    def threads(self) -> int:
        """Threads that share a grid, the caller's included."""
        ...

    @property
    def start(self) -> Callable[..., int]:
        """`start(address of a KernelRecord, bytes of args, x, y, z, scratch_bytes)` launches as
        `launch` does; it returns a status, for `check` unless it is 0."""
        ...

    def check(self, status: int, scratch_bytes: int) -> None:
        """Raise the error of a status that `start` has returned."""
        ...

    def launch(
        self, kernel: KernelRecord, args: int | bytes, grid: Grid, scratch_bytes: int
    ) -> None:
        """Run a kernel over `grid`; return when all programs are done.

        args: the argument slots, or their address; scratch_bytes: scratch that one thread needs.
        Raises MemoryError without memory for the scratch areas, and exceptions of signal handlers
        that run during the launch.
        """
        ...


class WaitedInVain(Exception):
    """A program has waited for another one until the limit. loop: the number of its spin loop"""

    def __init__(self, loop: int) -> None:
        super().__init__(loop)
        self.loop = loop


_latest = LatestKernels()
# Never freed: crashes at the very end of the process are reported.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_latest))


class NativePool:
    """Native threads that wait for work; each instance has its own. Its code is never unloaded,
    since a thread could be in it until the process ends.

    launch_packed: address of the launch for native dispatch, int(LaunchRecord *, x, y, z, words);
    start: see `Pool`
    """

    _code: ClassVar[list[LoadedObject]] = []

    def __init__(self, threads: int, spin_us: float = SPIN_MICROSECONDS) -> None:
        code = load_object(pool_object(), _program().exports)
        self._code.append(code)
        self._launch = _LAUNCH(code["tw_launch"])
        start = builtin_function("start", code["tw_start"], METH_FASTCALL, 0, keep=code)
        self.start: Callable[..., int] = start
        self.launch_packed = code["tw_launch_packed"]
        self._configure = _CONFIGURE(code["tw_configure"])
        self._stop = _ACTION(code["tw_stop"])
        self._reset = _ACTION(code["tw_reset"])
        self._workers = _COUNT(code["tw_workers"])
        self._raised = _INTO(code["tw_raised"])
        self._waited = _COUNT(code["tw_waited"])
        # at least one look: 0 is no limit
        limit = settings().cpu.wait_seconds
        looks = max(1, int(limit * _LOOKS_A_SECOND)) if limit else 0
        _LIMIT(code["tw_limit_waits"])(looks)
        # measured: a pause takes from 10 to 140 cycles on x86 CPUs
        self._spin = _pauses(_PAUSE(code["tw_pause"]), spin_us)
        if settings().cpu.crash_reports:
            _INTO(code["tw_report_crashes"])(ctypes.addressof(_latest))
        self._set_threads(threads)
        _live_pools.add(self)

    @property
    def workers(self) -> int:
        """Native threads that are alive now: 0 before the first parallel launch."""
        return self._workers()

    def launch(
        self, kernel: KernelRecord, args: int | bytes, grid: Grid, scratch_bytes: int
    ) -> None:
        """See `Pool.launch`."""
        status = self._launch(ctypes.addressof(kernel), args, *grid, scratch_bytes)
        self.check(status, scratch_bytes)

    def check(self, status: int, scratch_bytes: int) -> None:
        """Raise the error of a launch's status."""
        if status == 0:
            return
        if status == NO_MEMORY:
            raise MemoryError(f"{scratch_bytes} bytes of scratch for {self.threads} threads each")
        if status == NESTED:
            raise RuntimeError(
                "the handler of a signal launched a kernel during another launch; set a "
                "flag in the handler, and launch when it has returned"
            )
        if status == WAITED:
            raise WaitedInVain(self._waited())
        raised = (ctypes.c_void_p * 3)()
        self._raised(raised)
        _restore_error(*raised)

    def _set_threads(self, threads: int) -> None:
        self.threads = min(max(1, threads), MAX_THREADS)
        self._configure(self.threads, self._spin)

    def stop(self) -> None:
        """End the workers, after the present launch. A later launch starts them again."""
        self._stop()

    def forget_workers(self) -> None:
        """Reset the pool in a forked child, where the parent's workers and locks do not exist, and
        other children may use the other CPUs."""
        self._reset()
        self._set_threads(min(self.threads, settings().cpu.threads or thread_count()))


class PythonPool:
    """A pool of Python threads, for systems without pthreads."""

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)
        self._executor = ThreadPoolExecutor(self.threads, thread_name_prefix="tilewright")

    def start(
        self, record: int, args: int | bytes, x: int, y: int, z: int, scratch_bytes: int
    ) -> int:
        """See `Pool`."""
        self.launch(KernelRecord.from_address(record), args, (x, y, z), scratch_bytes)
        return 0

    def check(self, status: int, scratch_bytes: int) -> None:
        """Nothing: `start` itself raises."""

    def launch(
        self, kernel: KernelRecord, args: int | bytes, grid: Grid, scratch_bytes: int
    ) -> None:
        """See `Pool.launch`."""
        total = grid[0] * grid[1] * grid[2]
        chunk = max(1, total // (self.threads * CHUNKS_PER_THREAD))
        run = _KERNEL(kernel.code)
        shape, dropped = (ctypes.c_int32 * 3)(*grid), ctypes.c_int32(0)
        # `next` on a count is atomic under the GIL: no chunk is handed out twice, without a lock.
        begins = itertools.count(0, chunk)

        def work() -> None:
            area = ctypes.create_string_buffer(scratch_bytes + 64)
            scratch = (ctypes.addressof(area) + 63) & ~63  # aligned to 64 bytes
            here, poll = ctypes.addressof(shape), ctypes.addressof(dropped)
            while not dropped.value and (begin := next(begins)) < total:
                run(args, begin, min(begin + chunk, total), here, scratch, poll)

        # One less, since the caller takes chunks.
        helpers = min(self.threads, -(-total // chunk)) - 1
        others = [self._executor.submit(work) for _ in range(helpers)]
        try:
            work()
        except BaseException:  # Python runs handlers of signals between the calls
            dropped.value = 1
            raise
        finally:
            # Also after an error: the helpers use `shape`, `dropped` and the arguments.
            for other in others:
                other.result()


class _Early:
    """The thread that compiles the pool while the rest of the back end is being imported."""

    started: ClassVar[list[threading.Thread]] = []

    @classmethod
    def finish(cls) -> None:
        """Wait for it; also before a fork, whose child would inherit LLVM's locks held."""
        for thread in cls.started:
            thread.join()


def compile_early() -> None:
    """Start the compilation of the pool in a thread: LLVM releases the GIL, so that it is
    concurrent with the caller's Python code."""
    if _Early.started or not operating_system.HAS_NATIVE_THREADS:
        return
    thread = threading.Thread(target=_compiled_pool, name="tilewright-pool")
    try:
        thread.start()
    except synchronous(RuntimeError):
        return  # no more threads here: `pool_object` compiles it
    _Early.started.append(thread)


def pool_object() -> bytes:
    """The native pool as an object file, compiled once per process."""
    # functools.cache lets two threads compute concurrently: wait instead of compiling twice.
    _Early.finish()
    return _compiled_pool()


@functools.cache
def _compiled_pool() -> bytes:
    return _program().compile()


def _program() -> NativeProgram:
    return pool_program(host_cpu().arch)


class _Shared:
    """The process's pools by number of threads; each is created once, also when threads race."""

    pools: ClassVar[dict[int, Pool]] = {}
    lock = ForkLock()


def shared_pool(threads: int = 0) -> Pool:
    """The pool of `threads` threads that all launches share; 0: `thread_count()`.

    Creating it loads its code, which `compile_early` made or which is compiled now.
    """
    count = threads or thread_count()
    with _Shared.lock:
        if count not in _Shared.pools:
            kind = NativePool if operating_system.HAS_NATIVE_THREADS else PythonPool
            _Shared.pools[count] = kind(count)
        return _Shared.pools[count]


def _restore_error(*raised: int | None) -> None:
    """Raise an exception that C code has fetched: type, value and traceback."""
    # After a call through `pythonapi` ctypes raises the error that is set: here, this one.
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
    restore(*raised)


def _pauses(pause: Callable[[int], None], microseconds: float) -> int:
    """How many of the pool's pauses last `microseconds`."""
    sample = 2000
    # The best of three: an interrupted sample would give far too few pauses.
    best = min(_seconds(pause, sample) for _ in range(3))
    return max(1, int(microseconds * 1e-6 * sample / best))


def _seconds(pause: Callable[[int], None], count: int) -> float:
    start = time.perf_counter()
    pause(count)
    return time.perf_counter() - start


_live_pools: weakref.WeakSet[NativePool] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for pool in _live_pools:
        pool.forget_workers()


operating_system.at_fork(before=_Early.finish, after_in_child=_after_fork_in_child)
