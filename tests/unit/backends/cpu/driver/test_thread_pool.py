"""The thread pool: every program runs exactly once, whatever the threads do meanwhile."""

import ctypes
import functools
import mmap
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.forking import needs_fork
from tilewright.backends.cpu.driver.host_cpu import last_level_cache_bytes, own_cache_bytes
from tilewright.backends.cpu.driver.kernel_record import kernel_record
from tilewright.backends.cpu.driver.thread_pool import (
    CHUNKS_PER_THREAD,
    NativePool,
    Pool,
    PythonPool,
    _Early,
    compile_early,
    pool_object,
    shared_pool,
)
from tilewright.backends.cpu.driver.thread_pool_program import pool_program
from tilewright.llvm import LoadedObject, compile_ir, host_cpu, host_target, load_object
from tilewright.support import thread_count, usable_cpus

# args: counters (i32 per program), what to write at scratch[0] and check at the end (i64),
# iterations to burn per program (i64), address of grid copy (3 x i32), address of an error count
KERNEL = """
define i64 @kernel(ptr %args, i64 %begin, i64 %end, ptr %grid, ptr %scratch, ptr %poll) nounwind {
entry:
  %counters = load ptr, ptr %args
  %mark.slot = getelementptr i64, ptr %args, i64 1
  %mark = load i64, ptr %mark.slot
  %burn.slot = getelementptr i64, ptr %args, i64 2
  %burn = load i64, ptr %burn.slot
  %copy.slot = getelementptr i64, ptr %args, i64 3
  %copy = load ptr, ptr %copy.slot
  %errors.slot = getelementptr i64, ptr %args, i64 4
  %errors = load ptr, ptr %errors.slot
  %last.slot = getelementptr i64, ptr %args, i64 5
  %last = load i64, ptr %last.slot
  br label %program
program:
  %id = phi i64 [ %begin, %entry ], [ %id.next, %after ]
  %more = icmp slt i64 %id, %end
  br i1 %more, label %run, label %exit
run:
  %mine = add i64 %mark, %id
  store volatile i64 %mine, ptr %scratch
  %at = getelementptr i8, ptr %scratch, i64 %last
  store volatile i64 %mine, ptr %at
  br label %burning
burning:
  %n = phi i64 [ 0, %run ], [ %n.next, %burning.next ]
  %enough = icmp sge i64 %n, %burn
  br i1 %enough, label %check, label %burning.next
burning.next:
  %ignored = load volatile i64, ptr %scratch
  %n.next = add i64 %n, 1
  br label %burning
check:
  %first.now = load volatile i64, ptr %scratch
  %last.now = load volatile i64, ptr %at
  %first.bad = icmp ne i64 %first.now, %mine
  %last.bad = icmp ne i64 %last.now, %mine
  %address = ptrtoint ptr %scratch to i64
  %low = and i64 %address, 63
  %unaligned = icmp ne i64 %low, 0
  %shared = or i1 %first.bad, %last.bad
  %bad = or i1 %shared, %unaligned
  %bad.wide = zext i1 %bad to i32
  atomicrmw add ptr %errors, i32 %bad.wide monotonic
  %shape = load <3 x i32>, ptr %grid, align 4
  store <3 x i32> %shape, ptr %copy, align 4
  %counter = getelementptr i32, ptr %counters, i64 %id
  atomicrmw add ptr %counter, i32 1 monotonic
  br label %after
after:
  %id.next = add i64 %id, 1
  %polled = load atomic i32, ptr %poll monotonic, align 4
  %goes.on = icmp eq i32 %polled, 0
  br i1 %goes.on, label %program, label %exit
exit:
  %reached = phi i64 [ %id, %program ], [ %id.next, %after ]
  ret i64 %reached
}
"""
SCRATCH_BYTES = 4096


@functools.cache
def kernel() -> LoadedObject:
    return load_object(compile_ir(KERNEL, host_target()), ["kernel"])


class Launch:
    """One launch's arguments and results."""

    def __init__(self, programs: int, burn: int = 0, mark: int = 0, scratch: int = SCRATCH_BYTES):
        self.counters = np.zeros(max(1, programs), dtype=np.int32)
        self.shape = np.zeros(4, dtype=np.int32)
        self.errors = np.zeros(1, dtype=np.int32)
        self.scratch = scratch
        slots = [self.counters.ctypes.data, mark, burn, self.shape.ctypes.data]
        slots += [self.errors.ctypes.data, scratch - 8]
        self.args = np.array(slots, dtype=np.int64)
        self.kernel = kernel_record(kernel()["kernel"], "a kernel of the tests")

    def run(self, pool: Pool, grid: tuple[int, int, int]) -> None:
        pool.launch(self.kernel, self.args.ctypes.data, grid, self.scratch)

    def assert_each_ran(self, times: int) -> None:
        assert self.errors[0] == 0
        np.testing.assert_array_equal(self.counters, times)


def assert_runs_once(pool: Pool, grid: tuple[int, int, int], burn: int = 0) -> None:
    launch = Launch(grid[0] * grid[1] * grid[2], burn)
    launch.run(pool, grid)
    launch.assert_each_ran(times=1)
    assert tuple(launch.shape[:3]) == grid


@pytest.fixture(params=[1, 2, 3, 8], ids=lambda n: f"{n} threads")
def pool(request: pytest.FixtureRequest) -> Iterator[NativePool]:
    pool = NativePool(request.param)
    yield pool
    pool.stop()


@pytest.mark.parametrize(
    "grid", [(1, 1, 1), (2, 1, 1), (3, 5, 7), (1, 1, 17), (1000, 1, 1), (100_003, 1, 1)]
)
def test_each_program_runs_once(pool: NativePool, grid: tuple[int, int, int]) -> None:
    assert_runs_once(pool, grid)


@pytest.mark.parametrize("alone", [0, 100])
def test_a_launch_by_a_function_of_python_is_the_same(pool: NativePool, alone: int) -> None:
    """Of a grid for all threads, without the GIL, and of one for the caller alone, with it."""
    launch = Launch(60)
    launch.kernel.alone = alone
    record = ctypes.addressof(launch.kernel)
    assert pool.start(record, launch.args.tobytes(), 3, 4, 5, launch.scratch) == 0
    launch.assert_each_ran(times=1)
    assert tuple(launch.shape[:3]) == (3, 4, 5)
    with pytest.raises(TypeError):
        pool.start(record, launch.args.tobytes(), 3.5, 4, 5, launch.scratch)
    with pytest.raises(TypeError):
        pool.start(record, 0, 3, 4, 5, launch.scratch)
    launch.assert_each_ran(times=1)


def test_every_small_grid(pool: NativePool) -> None:
    for programs in range(1, 200):
        assert_runs_once(pool, (programs, 1, 1))


def test_many_launches(pool: NativePool) -> None:
    launch = Launch(10)
    for _ in range(20_000):
        launch.run(pool, (10, 1, 1))
    launch.assert_each_ran(times=20_000)


def test_launches_after_pauses(pool: NativePool) -> None:
    """Workers go to sleep at unpredictable moments around the launches."""
    launch = Launch(40, burn=30)
    for number in range(1500):
        launch.run(pool, (40, 1, 1))
        until = time.perf_counter() + (number % 120) * 1e-6
        while time.perf_counter() < until:
            pass
    launch.assert_each_ran(times=1500)


def test_uneven_work(pool: NativePool) -> None:
    """The caller must sleep until the others are done, not only spin."""
    launch = Launch(9, burn=2_000_000)
    launch.run(pool, (9, 1, 1))
    launch.assert_each_ran(times=1)


HELD_UP = """
define i64 @held_up(ptr %args, i64 %begin, i64 %end, ptr %grid, ptr %scratch, ptr %poll) nounwind {
entry:
  %areas = load ptr, ptr %args
  %done.slot = getelementptr i64, ptr %args, i64 1
  %done = load ptr, ptr %done.slot
  %others.slot = getelementptr i64, ptr %args, i64 2
  %others = load i64, ptr %others.slot
  %address = ptrtoint ptr %scratch to i64
  br label %program
program:
  %id = phi i64 [ %begin, %entry ], [ %id.next, %after ]
  %more = icmp slt i64 %id, %end
  br i1 %more, label %note, label %exit
note:
  %area = getelementptr i64, ptr %areas, i64 %id
  store i64 %address, ptr %area
  %held = icmp eq i64 %id, 0
  br i1 %held, label %wait, label %after
wait: ; for all other programs, some ten seconds at most
  %n = phi i64 [ 0, %note ], [ %n.next, %wait ]
  %n.next = add i64 %n, 1
  %now = load atomic i64, ptr %done monotonic, align 8
  %all = icmp eq i64 %now, %others
  %late = icmp eq i64 %n, 20000000000
  %ends = or i1 %all, %late
  br i1 %ends, label %after, label %wait
after:
  %before = phi i64 [ 0, %note ], [ %now, %wait ]
  atomicrmw add ptr %done, i64 1 seq_cst
  %seen.slot = getelementptr i64, ptr %args, i64 3
  %seen = load ptr, ptr %seen.slot
  %seen.here = getelementptr i64, ptr %seen, i64 %id
  store i64 %before, ptr %seen.here
  %id.next = add i64 %id, 1
  br label %program
exit:
  ret i64 %end
}
"""


@pytest.mark.parametrize("threads", [2, 3])
def test_a_thread_that_is_held_up_leaves_its_programs_to_the_others(threads: int) -> None:
    """Its own range holds the next programs, which it cannot run; each has scratch on own pages."""
    code = load_object(compile_ir(HELD_UP, host_target()), ["held_up"])
    pool, total = NativePool(threads), CHUNKS_PER_THREAD * threads
    areas, done, seen = (np.zeros(size, np.int64) for size in (total, 1, total))
    args = np.array([areas.ctypes.data, done.ctypes.data, total - 1, seen.ctypes.data])
    pool.launch(kernel_record(code["held_up"], "held up"), args.ctypes.data, (total, 1, 1), 100)
    pool.stop()
    assert done[0] == total
    assert seen[0] == total - 1
    owned = np.unique(areas)
    assert 2 <= owned.size <= threads
    assert np.count_nonzero(areas == areas[0]) == 1
    assert (owned % mmap.PAGESIZE == 0).all() and (np.diff(owned) >= mmap.PAGESIZE).all()


def test_a_pool_of_python_threads_adds_no_threads_to_those_of_the_pool() -> None:
    pool = NativePool(4)
    launches = [Launch(23, burn=20, mark=1000 * number) for number in range(40)]
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda launch: launch.run(pool, (23, 1, 1)), launches))
        assert pool.workers == 3
    for launch in launches:
        launch.assert_each_ran(times=1)
    pool.stop()


def launch_on_one_cpu(pool: NativePool, cpus: Sequence[int]) -> tuple[list[int], list[set[int]]]:
    """Workers and caller on the first of `cpus`, then a launch for which the caller may use all:
    where it was before and behind it, and what each worker may use then."""
    before, usable = set(os.listdir("/proc/self/task")), usable_cpus()
    try:
        os.sched_setaffinity(0, cpus[:1])
        for _ in range(3):  # each worker has run, and is asleep
            Launch(1).run(pool, (1, 1, 1))
            assert_runs_once(pool, (8 * pool.threads, 1, 1), burn=100_000)
            time.sleep(0.01)
        os.sched_setaffinity(0, cpus)
        places = [ctypes.CDLL(None).sched_getcpu()]
        assert_runs_once(pool, (8 * pool.threads, 1, 1))
        places.append(ctypes.CDLL(None).sched_getcpu())
    finally:
        os.sched_setaffinity(0, usable)
    threads = set(os.listdir("/proc/self/task")) - before
    return places, [os.sched_getaffinity(int(thread)) for thread in threads]


@pytest.mark.skipif(sys.platform != "linux" or len(usable_cpus()) < 2, reason="needs two CPUs")
def test_a_worker_leaves_the_caller_s_cpu() -> None:
    pool, cpus = NativePool(2), usable_cpus()
    places, allowed = launch_on_one_cpu(pool, cpus)
    pool.stop()
    if places == [cpus[0]] * 2:  # else the system has moved the caller
        assert set(cpus[1:]) in allowed


@pytest.mark.skipif(sys.platform != "linux" or len(usable_cpus()) < 2, reason="needs two CPUs")
def test_more_threads_than_cpus_stay_where_the_system_has_them() -> None:
    pool, cpus = NativePool(4), usable_cpus()[:2]
    allowed = launch_on_one_cpu(pool, cpus)[1]
    pool.stop()
    assert allowed == [set(cpus[:1])] * len(allowed)


def test_empty_grid_runs_nothing(pool: NativePool) -> None:
    launch = Launch(1)
    launch.run(pool, (0, 1, 1))
    launch.assert_each_ran(times=0)


@functools.cache
def hesitant_pool_object() -> bytes:
    """A pool that waits between the steps by which a launch finds out whether it is nested."""
    text = pool_program(host_cpu().arch).text()
    before, launch, after = text.partition("define i32 @tw_launch(")
    for i, step in enumerate((" = load volatile i64, ptr .*", " = load atomic i32, ptr .*")):
        hesitant = rf"\g<0>\n  %hesitation{i} = call i32 @usleep(i32 500)"
        after, count = re.subn(step, hesitant, after, count=1)
        assert count == 1
    text = before + launch + after
    return compile_ir(text, host_target(effort=0), optimise=False, inline=True)


def test_a_launch_is_nested_only_in_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not if another thread's begins between the looks at the owner and at what is active."""
    monkeypatch.setattr(
        "tilewright.backends.cpu.driver.thread_pool.pool_object", hesitant_pool_object
    )
    pool = NativePool(2)
    launches = [Launch(8, burn=1_000_000) for _ in range(3)]

    def work(launch: Launch) -> None:
        for _ in range(20):
            launch.run(pool, (8, 1, 1))

    with ThreadPoolExecutor(len(launches)) as threads:
        for done in [threads.submit(work, launch) for launch in launches]:
            done.result()
    for launch in launches:
        launch.assert_each_ran(times=20)
    pool.stop()


def test_launches_from_several_python_threads(pool: NativePool) -> None:
    launches = [Launch(23, burn=20, mark=1000 * number) for number in range(6)]

    def work(launch: Launch) -> None:
        for _ in range(500):
            launch.run(pool, (23, 1, 1))

    threads = [threading.Thread(target=work, args=(launch,)) for launch in launches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for launch in launches:
        launch.assert_each_ran(times=500)


def test_scratch_grows(pool: NativePool) -> None:
    for scratch in (8, 100_000, 64, 3_000_000, 0x10000):
        launch = Launch(50, burn=100, scratch=scratch)
        launch.run(pool, (50, 1, 1))
        launch.assert_each_ran(times=1)


def test_too_much_scratch_is_a_memory_error(pool: NativePool) -> None:
    with pytest.raises(MemoryError, match="scratch"):
        Launch(5, scratch=1 << 60).run(pool, (5, 1, 1))
    assert_runs_once(pool, (50, 1, 1))


def test_workers_start_with_the_first_parallel_launch(pool: NativePool) -> None:
    assert pool.workers == 0
    assert_runs_once(pool, (1, 1, 1))
    assert pool.workers == 0
    assert_runs_once(pool, (2, 1, 1))
    assert pool.workers == pool.threads - 1


def test_stop_and_restart(pool: NativePool) -> None:
    for _ in range(5):
        assert_runs_once(pool, (100, 1, 1))
        pool.stop()
        assert pool.workers == 0


def test_the_gil_is_released() -> None:
    pool = NativePool(1)
    launch = Launch(1, burn=200_000_000)
    thread = threading.Thread(target=launch.run, args=(pool, (1, 1, 1)))
    steps = 0
    thread.start()
    while thread.is_alive():
        steps += 1
        time.sleep(0.001)
    launch.assert_each_ran(times=1)
    assert steps > 10  # the kernel runs for a good 50 ms; under the GIL this would be about 1


def test_shared_pool_is_one() -> None:
    assert shared_pool() is shared_pool()
    assert shared_pool() is shared_pool(thread_count())
    assert shared_pool().threads == thread_count()
    assert_runs_once(shared_pool(), (100, 1, 1))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_python_pool(threads: int) -> None:
    pool = PythonPool(threads)
    for grid in ((1, 1, 1), (2, 1, 1), (7, 3, 2), (5000, 1, 1)):
        assert_runs_once(pool, grid)


def test_host_facts() -> None:
    assert len(usable_cpus()) >= 1
    assert 1 << 16 <= own_cache_bytes() <= last_level_cache_bytes() <= 1 << 32


# ------------------------------------------------------------------------- processes


def launch_as_worker(pool: NativePool, threads: int) -> None:
    """In a child that leaves the other CPUs to its siblings, or has `threads` by its settings."""
    assert (pool.threads, thread_count()) == (threads, 1)
    launch_in_child(pool)
    assert pool.workers == threads - 1


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("setting", [0, 3])
def test_workers_of_multiprocessing_have_a_thread_each(
    monkeypatch: pytest.MonkeyPatch, setting: int
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CPU_THREADS", str(setting))
    pool = NativePool(3)
    assert_runs_once(pool, (100, 1, 1))
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(target=launch_as_worker, args=(pool, setting or 1)) for _ in range(3)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
    pool.stop()


def launch_in_child(pool: Pool) -> None:
    for _ in range(50):
        assert_runs_once(pool, (100, 1, 1), burn=100)


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_pool_works_after_fork(pool: NativePool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CPU_THREADS", str(pool.threads))  # else a child has one
    assert_runs_once(pool, (100, 1, 1))
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        child = context.Process(target=launch_in_child, args=(pool,))
        child.start()
        assert_runs_once(pool, (100, 1, 1))
        child.join()
        assert child.exitcode == 0
    assert_runs_once(pool, (100, 1, 1))


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_while_another_thread_launches(pool: NativePool) -> None:
    launch = Launch(50, burn=2000)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            launch.run(pool, (50, 1, 1))

    thread = threading.Thread(target=work)
    thread.start()
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=launch_in_child, args=(pool,)) for _ in range(5)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    stop.set()
    thread.join()
    assert [child.exitcode for child in children] == [0] * len(children)


EXIT_SCRIPT = """
import sys
import threading

sys.path.insert(0, {root!r})
from tests.unit.backends.cpu.driver.test_thread_pool import Launch, NativePool, assert_runs_once

pool = NativePool(4)
assert_runs_once(pool, (100, 1, 1), burn=100)
{rest}
print("end of script")
"""
ENDINGS = {
    "idle": "",
    "daemon thread still launching": """
launch = Launch(100, burn=100_000)
def forever():
    while True:
        launch.run(pool, (100, 1, 1))
threading.Thread(target=forever, daemon=True).start()
""",
    "launch at exit": """
import atexit
atexit.register(assert_runs_once, pool, (100, 1, 1))
""",
    "dropped": "pool.launch(Launch(0).kernel, 0, (0, 1, 1), 0); del pool",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_exit_is_clean(ending: str) -> None:
    root = str(Path(__file__).parents[5])
    script = EXIT_SCRIPT.format(root=root, rest=ENDINGS[ending])
    for _ in range(3):
        result = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, "end of script\n", "")


EARLY_SCRIPT = """
import os
import threading
import tilewright.backends.cpu
{rest}
print("end of script")
"""
EARLY_ENDINGS = {
    "at once": "",
    "fork": """
child = os.fork()
from tilewright.backends.cpu.driver.thread_pool import shared_pool
shared_pool(2)
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
    "pool": """
from tilewright.backends.cpu.driver import thread_pool as pool
assert len(pool._Early.started) == 1
found = pool.pool_object()
assert not pool._Early.started[0].is_alive()
pool.compile_early()
assert pool.pool_object() is found and len(pool._Early.started) == 1
""",
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no native pool")
@pytest.mark.parametrize("ending", EARLY_ENDINGS)
def test_the_pool_is_compiled_beside_imports(ending: str) -> None:
    script = EARLY_SCRIPT.format(rest=EARLY_ENDINGS[ending])
    for _ in range(3):
        result = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (result.returncode, result.stdout, result.stderr) == (0, "end of script\n", "")


def test_a_process_that_may_not_start_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_Early, "started", [])
    monkeypatch.setattr(threading.Thread, "start", refuse)
    compile_early()
    assert not _Early.started
    assert pool_object()
