"""Programs that wait for each other all run at a time, however few threads there are."""

from __future__ import annotations

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
