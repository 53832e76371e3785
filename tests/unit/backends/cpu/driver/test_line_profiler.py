"""Samples by line: the expensive line is found, on all threads; handlers of users come back."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.backends import backend_named
from tilewright.backends.cpu.driver.line_profiler import LineProfiler
from tilewright.backends.cpu.driver.loaded_code import code_listeners
from tilewright.backends.cpu.driver.sampler import Sampler

needs_samples = pytest.mark.skipif(not Sampler.is_available(), reason="needs Linux on x86 or ARM")


def hot_kernel():
    """A new kernel, which is loaded again."""

    @tilewright.jit
    def hot(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        a = tl.load(x + i, mask=i < n)
        for _ in range(16):
            a = tl.sin(a) + tl.exp(a * 0.25)
        tl.store(out + i, a, mask=i < n)

    return hot


def burn(kernel, seconds):
    x = np.ones(1 << 18, "f")
    out = np.empty_like(x)
    kernel[(1,)](x, out, 8, BLOCK=1024)  # compiled before the time counts
    end = time.process_time() + seconds
    while time.process_time() < end:
        kernel[(tilewright.cdiv(x.size, 1024),)](x, out, x.size, BLOCK=1024)


@needs_samples
def test_the_expensive_line_costs_most():
    kernel = hot_kernel()
    begin = time.process_time()
    with LineProfiler({}) as profiler:
        burn(kernel, 1.0)
    spent = time.process_time() - begin
    first = kernel.fn.__code__.co_firstlineno
    top = profiler.costs[0]
    assert (top.file, top.line) == (__file__, first + 5)
    total = sum(cost.seconds for cost in profiler.costs)
    assert top.seconds > 0.6 * total
    assert top.kernel == f"hot ({__file__}:{first})"
    assert total + profiler.elsewhere == pytest.approx(spent, rel=0.1)
    assert " samples of " in profiler.note


@needs_samples
def test_costs_are_ordered_and_lines_are_those_of_the_kernel():
    kernel = hot_kernel()
    with LineProfiler({}) as profiler:
        burn(kernel, 0.3)
    seconds = [cost.seconds for cost in profiler.costs]
    assert seconds == sorted(seconds, reverse=True)
    first = kernel.fn.__code__.co_firstlineno
    assert {cost.line for cost in profiler.costs} - {0} <= set(range(first, first + 8))


@needs_samples
def test_workers_of_the_pool_are_sampled():
    """This thread blocks the signal: all samples are those of workers."""
    from tilewright.backends.cpu.driver.thread_pool import shared_pool

    kernel = hot_kernel()
    burn(kernel, 0.1)
    if shared_pool().threads < 2:
        pytest.skip("needs two processors")
    with Sampler() as sampler:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
        try:
            burn(kernel, 0.5)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    assert sum(sampler.counters.values()) > 10
    assert sampler.lost == 0


@needs_samples
def test_handlers_and_listeners_are_as_before():
    seen = []
    previous = signal.signal(signal.SIGPROF, lambda number, frame: seen.append(number))
    try:
        with LineProfiler({}):
            burn(hot_kernel(), 0.1)
        assert not seen
        assert not code_listeners
        assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
        signal.raise_signal(signal.SIGPROF)
        assert seen == [signal.SIGPROF]
    finally:
        signal.signal(signal.SIGPROF, previous)


@needs_samples
def test_an_error_of_the_program_ends_the_samples():
    with pytest.raises(ValueError, match="mine"), LineProfiler({}):
        raise ValueError("mine")
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_the_backend_names_its_profiler():
    make = backend_named("cpu").profiler
    assert make is not None
    assert isinstance(make({}), LineProfiler)


def test_elsewhere_the_note_says_what_is_needed(monkeypatch):
    monkeypatch.setattr(Sampler, "is_available", staticmethod(lambda: False))
    with LineProfiler({}) as profiler:
        burn(hot_kernel(), 0.05)
    assert profiler.costs == []
    assert profiler.note == "lines are sampled on Linux only"
    assert not code_listeners
