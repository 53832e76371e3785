"""Which memory `do_bench` drops from the caches: the arrays of the launches, if they stay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright
import tilewright.language as tl
from tests.unit.testing.fake_clock import FakeClock
from tilewright.runtime.arguments.memory_spans import Span, spans_of
from tilewright.runtime.bench import CpuClock, clocks
from tilewright.runtime.launch_hooks import launch_enter
from tilewright.testing import do_bench


@tilewright.jit
def double(x, out):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(x + i) * 2)


class DroppingClock(FakeClock):
    """Notes what it is to drop; each launch takes a millisecond."""

    def __init__(self, can_drop: bool = True) -> None:
        super().__init__()
        self.can_drop = can_drop
        self.dropped: list[Sequence[Span]] = []

    def drop_memory(self, spans: Sequence[Span]) -> bool:
        self.dropped.append(spans)
        return self.can_drop


X, OUT = np.ones(16, np.float32), np.zeros(16, np.float32)


def measure(clock: FakeClock, fn, **words) -> object:
    def timed() -> None:
        fn()
        clock.spend(1.0)

    result = do_bench(timed, warmup=2, rep=10, clock=clock, **words)
    assert not launch_enter  # nobody watches any more
    return result


def test_the_arrays_of_the_launches_are_dropped() -> None:
    clock = DroppingClock()
    measure(clock, lambda: double[(1,)](X, OUT))
    assert clock.flushes == 0
    assert clock.dropped == [spans_of([X, OUT])] * (1 + 5 + 10)


def test_all_launches_of_a_call_count() -> None:
    clock = DroppingClock()
    middle = np.zeros(16, np.float32)

    def twice() -> None:
        double[(1,)](X, middle)
        double[(1,)](middle, OUT)

    measure(clock, twice)
    assert clock.dropped[-1] == spans_of([X, middle, OUT])


def test_a_function_that_launches_nothing_gets_empty_caches() -> None:
    clock = DroppingClock()
    measure(clock, lambda: np.add(X, X, out=OUT))
    assert (clock.flushes, clock.dropped) == (1 + 5 + 10, [])


def test_arrays_that_are_made_in_each_call_cannot_be_known() -> None:
    clock = DroppingClock()
    measure(clock, lambda: double[(1,)](X, np.zeros(16, np.float32)))
    assert len(clock.dropped) == 2  # before the second call, which shows it
    assert clock.flushes == 4 + 10


def test_what_cannot_be_dropped_is_flushed() -> None:
    clock = DroppingClock(can_drop=False)
    measure(clock, lambda: double[(1,)](X, OUT))
    assert clock.flushes == len(clock.dropped) == 1 + 5 + 10


def test_an_array_that_moves_is_not_dropped_where_it_was() -> None:
    """Its memory may be gone; a call that moves it late is not watched any more."""
    clock = DroppingClock()
    out = np.zeros(16, np.float32)
    calls = 0

    def moving() -> None:
        nonlocal calls
        calls += 1
        if calls == 9:
            out.resize(1 << 20, refcheck=False)
        double[(1,)](X, out)

    measure(clock, moving)
    assert clock.flushes > 0
    assert len(clock.dropped) + clock.flushes == 1 + 5 + 10


def test_no_flushing() -> None:
    clock = DroppingClock()
    measure(clock, lambda: double[(1,)](X, OUT), flush_cache=False)
    assert (clock.flushes, clock.dropped) == (0, [])


def test_the_clock_of_the_cpu_leaves_large_memory_to_the_buffer(monkeypatch) -> None:
    double[(1,)](X, OUT)
    clock = CpuClock()
    dropped: list[Sequence[Span]] = []
    backend = clocks.backend_in_use("cpu")
    assert backend is not None

    class Backend:
        @staticmethod
        def drop_lines(spans: Sequence[Span]) -> bool:
            dropped.append(spans)
            return True

    monkeypatch.setattr(clocks, "backend_in_use", lambda name: Backend)
    monkeypatch.setattr(clocks, "buffer_bytes", lambda: 1000)
    assert clock.drop_memory([(0, 600), (4096, 400)])
    assert not clock.drop_memory([(0, 600), (4096, 401)])
    assert len(dropped) == 1
    monkeypatch.setattr(Backend, "drop_lines", None)
    assert not clock.drop_memory([(0, 1)])
    monkeypatch.setattr(clocks, "backend_in_use", lambda name: None)
    assert not clock.drop_memory([(0, 1)])


def test_a_kernel_is_measured_from_cold_arrays() -> None:
    times = do_bench(lambda: double[(1,)](X, OUT), warmup=1, rep=2, return_mode="all")
    assert isinstance(times, list)
    assert all(ms > 0 for ms in times)
