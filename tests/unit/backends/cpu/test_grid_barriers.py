"""Programs that wait for each other all run at a time, however few threads there are; and no wait
is without end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.backends.cpu.driver.thread_pool_program import MAX_THREADS
from tilewright.support import errors, settings


@tilewright.jit
def total_kernel(parts, arrived, out, n, BLOCK: tl.constexpr):
    """Each program waits for all, as in cooperative reductions, then sums what all have stored."""
    pid = tl.program_id(0)
    count = tl.num_programs(0)
    tl.store(parts + pid, pid + 1)
    tl.atomic_add(arrived, 1, sem="release")
    while tl.atomic_add(arrived, 0, sem="acquire") < count:
        pass
    i = tl.arange(0, BLOCK)
    tl.store(out + pid, tl.sum(tl.load(parts + i, i < n, other=0)))


@tilewright.jit
def chained_kernel(sums, ready, n):
    """Each program waits for the one before it, as in look-back scans."""
    pid = tl.program_id(0)
    before = 0
    if pid > 0:
        while tl.atomic_add(ready + pid - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(sums + pid - 1, volatile=True)
    tl.store(sums + pid, before + pid)
    tl.atomic_xchg(ready + pid, 1, sem="release")


def totals(programs: int) -> np.ndarray[Any, Any]:
    parts, out = np.zeros((2, programs), np.int32)
    arrived = np.zeros(1, np.int32)
    total_kernel[(programs,)](parts, arrived, out, programs, BLOCK=16)
    return out


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("programs", [1, 2, 5, 11])
def test_programs_that_wait_for_all_get_a_thread_each(threads: int, programs: int) -> None:
    with settings().cpu.scope(threads=threads):
        for _ in range(3):  # by Python, and by machine code
            expected = np.full(programs, programs * (programs + 1) // 2)
            np.testing.assert_array_equal(totals(programs), expected)


def test_more_of_them_than_threads_is_an_error() -> None:
    with pytest.raises(errors.OutOfResources, match="threads of programs that wait"):
        totals(MAX_THREADS + 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_programs_that_wait_for_earlier_ones_need_no_thread_each(threads: int) -> None:
    with settings().cpu.scope(threads=threads):
        sums, ready = np.zeros((2, 300), np.int32)
        kernel = chained_kernel[(300,)](sums, ready, 300)
    np.testing.assert_array_equal(sums, np.arange(300).cumsum())
    assert not kernel.metadata.together


@tilewright.jit
def first_waits_kernel(arrived, out, OTHERS: tl.constexpr, HOW: tl.constexpr):
    """The number of programs is written in the kernel."""
    pid = tl.program_id(0)
    if pid == 0:
        if HOW == "add":
            while tl.atomic_add(arrived, 0) != OTHERS:
                pass
        elif HOW == "cas":
            while tl.atomic_cas(arrived, OTHERS, OTHERS) != OTHERS:
                pass
        else:
            while tl.load(arrived, volatile=True) != OTHERS:
                pass
        tl.store(out, 1)
    else:
        tl.store(out + pid, pid + 1)
        tl.atomic_add(arrived, 1)


@pytest.mark.parametrize("how", ["add", "cas", "volatile"])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_early_program_waits_for_later_ones(threads: int, how: str) -> None:
    with settings().cpu.scope(threads=threads):
        for _ in range(3):
            arrived, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
            first_waits_kernel[(64,)](arrived, out, OTHERS=63, HOW=how)
            np.testing.assert_array_equal(out, np.arange(1, 65))


@tilewright.jit
def scan_kernel(x, sums, ready, n, BLOCK: tl.constexpr):
    """A look-back scan by programs that know their number, as that of torch.compile."""
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n, other=0)
    before = 0
    if pid > 0:
        flag = tl.atomic_add(ready + pid - 1, 0, sem="acquire")
        while flag == 0:
            flag = tl.atomic_add(ready + pid - 1, 0, sem="acquire")
        before = tl.load(sums + pid - 1, volatile=True)
    tl.store(sums + pid, before + tl.sum(v))
    tl.atomic_xchg(ready + pid, 1, sem="release")
    if pid == tl.num_programs(0) - 1:
        tl.store(ready, 2)
    tl.store(x + i, before + tl.cumsum(v), i < n)


def test_look_back_scans_of_any_size_run_in_order() -> None:
    n = 3_000_000
    programs = -(-n // 1024)
    x = np.random.default_rng(0).integers(-9, 9, n).astype(np.int32)
    exact, (sums, ready) = x.cumsum(dtype=np.int32), np.zeros((2, programs), np.int32)
    kernel = scan_kernel[(programs,)](x, sums, ready, n, BLOCK=1024)
    np.testing.assert_array_equal(x, exact)
    assert programs > MAX_THREADS and not kernel.metadata.together


@tilewright.jit
def waits_for_one_kernel(flag, out):
    """All wait for the first program, and there are more of them than threads."""
    pid = tl.program_id(0)
    if pid == 0:
        tl.atomic_xchg(flag, 7)
    seen = tl.atomic_add(flag, 0)
    while seen == 0:
        seen = tl.atomic_add(flag, 0)
    tl.store(out + pid, seen)


def test_more_programs_than_threads_may_wait_for_an_early_one() -> None:
    flag, out = np.zeros(1, np.int32), np.zeros(3000, np.int32)
    waits_for_one_kernel[(3000,)](flag, out)
    assert (out == 7).all()


@tilewright.jit
def locked_kernel(lock, total, turns):
    pid = tl.program_id(0)
    for _ in range(turns):
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(total, tl.load(total, volatile=True) + pid)
        tl.atomic_xchg(lock, 0)


def test_locks_need_no_thread_each() -> None:
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    kernel = locked_kernel[(500,)](lock, total, 3)
    assert total[0] == 3 * sum(range(500))
    assert not kernel.metadata.together


ENDLESS = """
import threading, time
import numpy as np
import tilewright, tilewright.language as tl
from tilewright.support import errors

@tilewright.jit{decorator}
def endless(flags, out):
    pid = tl.program_id(0)
    while tl.atomic_add(flags + pid, 0) == 0:
        pass
    tl.store(out + pid, 1)

@tilewright.jit
def doubled(x):
    tl.store(x, tl.load(x) * 2)

flags, out = np.zeros(64, np.int32), np.zeros(64, np.int32)
for grid in {grids}:
    begun = time.monotonic()
    try:
        endless[(grid,)](flags, out)
        print("ended")
    except errors.EndlessWait as error:
        print(str(error).replace(chr(10), " | "), time.monotonic() - begun < 20, out.sum())
out[0] = 4
doubled[(1,)](out)
flags[:] = 1
endless[(64,)](flags, out)
print(out.sum())
"""


def run(tmp_path: Path, text: str, **variables: str) -> str:
    script = tmp_path / "endless.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True,
        env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("decorator", ["", "(check='race')"])
def test_a_wait_without_end_is_an_error_at_its_loop(
    tmp_path: Path, threads: int, decorator: str
) -> None:
    text = ENDLESS.format(grids=[1, 1, 40, 40], decorator=decorator)
    told = run(tmp_path, text, TILEWRIGHT_WAIT_SECONDS="0.4", TILEWRIGHT_CPU_THREADS=str(threads))
    *failures, last = told.splitlines()
    assert last == "64" and len(failures) == 4
    for line in failures:
        assert "a program of 'endless' has waited for 0.4 s" in line
        assert "endless.py:10:5 in endless" in line and "TILEWRIGHT_WAIT_SECONDS" in line
        assert line.endswith("True 0")


def test_a_program_may_wait_for_another_thread(tmp_path: Path) -> None:
    text = (
        ENDLESS.format(grids=[], decorator="")
        + """
flags[:] = out[:] = 0
threading.Timer(1, lambda: flags.fill(1)).start()
endless[(5,)](flags, out)
print(out.sum())
"""
    )
    told = run(tmp_path, text, TILEWRIGHT_WAIT_SECONDS="0")
    assert told.splitlines()[-1] == "5"


SLOW = """
import numpy as np, time
import tilewright, tilewright.language as tl

@tilewright.jit
def slow(lock, out, steps):
    pid = tl.program_id(0)
    x = pid.to(tl.float32)
    for _ in range(steps):
        x = tl.sin(x) + 1
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + pid, x)
    tl.atomic_xchg(lock, 0)

lock, out = np.zeros(1, np.int32), np.zeros(3, np.float32)
steps, took = 1 << 16, 0
while took < 1.5:
    steps *= 2
    begun = time.monotonic()
    slow[(3,)](lock, out, steps)
    took = time.monotonic() - begun
print("ended")
"""


def test_programs_that_take_long_do_not_wait(tmp_path: Path) -> None:
    assert run(tmp_path, SLOW, TILEWRIGHT_WAIT_SECONDS="0.2") == "ended\n"


INTERRUPTED = """
import os, signal, threading
import numpy as np
import tilewright, tilewright.language as tl

@tilewright.jit
def late(flags, out, steps):
    pid = tl.program_id(0)  # the caller's takes long enough for a worker to begin the other one
    if pid > 0:
        while tl.atomic_add(flags, 0) == 0:
            pass
    x = 0.0
    for _ in range(steps):
        x = tl.sin(x) + 1
    tl.store(out + pid, x)

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
flags, out = np.zeros(1, np.int32), np.zeros(2, np.float32)
late[(1,)](flags, out, 1)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    late[(2,)](flags, out, 1 << 21)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_workers_that_wait_end_at_an_interrupt(tmp_path: Path) -> None:
    told = run(tmp_path, INTERRUPTED, TILEWRIGHT_WAIT_SECONDS="0", TILEWRIGHT_CPU_THREADS="2")
    assert told == "interrupted\n"
