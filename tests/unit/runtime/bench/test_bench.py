"""`do_bench` against a clock that only the timed function advances, so every number is exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count, repeat

import pytest

from tests.unit.testing.fake_clock import FakeClock
from tilewright.runtime.bench.measure import quantile, summarize
from tilewright.testing import NotAvailableError, do_bench, do_bench_cudagraph


@dataclass
class Work:
    """A function that takes the given milliseconds, the last one for ever."""

    clock: FakeClock
    durations: Iterator[float]
    calls: int = 0

    def __call__(self) -> None:
        self.calls += 1
        self.clock.spend(next(self.durations))


@dataclass
class Tensor:
    grad: object = "old"
    history: list[object] = field(default_factory=list[object])


UNTIMED_CALLS = 1 + 5  # to compile and to estimate


def test_warmup_and_rep_are_budgets_of_time() -> None:
    clock = FakeClock()
    work = Work(clock, repeat(2.0))
    samples = do_bench(work, warmup=10, rep=20, return_mode="all", clock=clock)
    assert samples == [2.0] * 10
    assert work.calls == UNTIMED_CALLS + 5 + 10


def test_slow_function_is_timed_at_least_once() -> None:
    clock = FakeClock()
    work = Work(clock, repeat(500.0))
    assert do_bench(work, warmup=25, rep=100, return_mode="all", clock=clock) == [500.0]
    assert work.calls == UNTIMED_CALLS + 1 + 1


def test_first_call_does_not_count() -> None:
    clock = FakeClock()
    work = Work(clock, chain([10_000.0], repeat(1.0)))
    assert do_bench(work, warmup=3, rep=4, clock=clock) == 1.0
    assert work.calls == UNTIMED_CALLS + 3 + 4


def test_caches_are_flushed_outside_the_timed_span_and_count_towards_the_budget() -> None:
    clock = FakeClock(flush_ms=3.0)
    work = Work(clock, repeat(1.0))
    samples = do_bench(work, warmup=0, rep=40, return_mode="all", clock=clock)
    assert samples == [1.0] * 10
    assert clock.flushes == 1 + 5 + 10


def test_flushing_can_be_switched_off() -> None:
    clock = FakeClock(flush_ms=3.0)
    samples = do_bench(
        Work(clock, repeat(1.0)),
        warmup=0, rep=40, return_mode="all", clock=clock, flush_cache=False,
    )  # fmt: skip
    assert samples == [1.0] * 40
    assert clock.flushes == 0


def test_short_functions_are_timed_several_at_a_time() -> None:
    clock = FakeClock(shortest_sample_ms=1.0)
    work = Work(clock, repeat(0.25))
    samples = do_bench(work, warmup=0, rep=3, return_mode="all", clock=clock)
    assert samples == [0.25] * 3
    assert work.calls == UNTIMED_CALLS + 1 + 3 * 4


def test_a_function_that_takes_no_measurable_time_ends() -> None:
    clock = FakeClock(shortest_sample_ms=1.0)
    assert do_bench(lambda: None, clock=clock) == 0.0


def test_gradients_are_cleared_before_each_timed_call_only() -> None:
    clock = FakeClock()
    tensor = Tensor()

    def fn() -> None:
        tensor.history.append(tensor.grad)
        tensor.grad = "accumulated"
        clock.spend(1.0)

    do_bench(fn, warmup=2, rep=3, grad_to_none=iter([tensor]), clock=clock)
    untimed = 1 + 5 + 2
    assert tensor.history[:untimed] == ["old"] + ["accumulated"] * (untimed - 1)
    assert tensor.history[untimed:] == [None] * 3


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("min", 1.0), ("max", 10.0), ("mean", 4.0), ("median", 2.5), ("all", [3.0, 1.0, 10.0, 2.0])],
)
def test_return_modes(mode: str, expected: object) -> None:
    clock = FakeClock()
    work = Work(clock, chain(repeat(1.0, UNTIMED_CALLS + 1), [3.0, 1.0, 10.0, 2.0]))
    assert do_bench(work, warmup=1, rep=4, return_mode=mode, clock=clock) == expected  # type: ignore[arg-type]


def test_quantiles_give_a_list_and_win_over_the_return_mode() -> None:
    clock = FakeClock()
    work = Work(clock, chain(repeat(1.0, UNTIMED_CALLS + 1), (float(i) for i in count(1))))
    result = do_bench(
        work, warmup=1, rep=5, quantiles=[0.5, 0.0, 0.9], return_mode="max", clock=clock
    )
    assert result == [3.0, 1.0, pytest.approx(4.6)]


def test_one_quantile_gives_a_number() -> None:
    assert summarize([1.0, 2.0, 4.0], quantiles=[0.75]) == 3.0


def test_quantile_is_linear_between_samples() -> None:
    assert [quantile([4.0, 0.0], q) for q in (0.0, 0.25, 0.5, 1.0)] == [0.0, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("bad", [{"return_mode": "average"}, {"quantiles": [0.5, 1.5]}])
def test_a_wrong_request_is_refused_before_anything_runs(bad: dict[str, object]) -> None:
    clock = FakeClock()
    work = Work(clock, repeat(1.0))
    with pytest.raises(ValueError, match=r"return_mode must be one of 'min', .*|between 0 and 1"):
        do_bench(work, clock=clock, **bad)  # type: ignore[arg-type]
    assert work.calls == 0


def test_a_clock_passed_in_stays_open() -> None:
    clock = FakeClock()
    do_bench(Work(clock, repeat(1.0)), clock=clock)
    assert not clock.closed


def test_the_cpu_clock_times_real_work() -> None:
    milliseconds = do_bench(lambda: sum(range(1000)), warmup=1, rep=5, device="cpu")
    assert 0.0 < milliseconds < 100.0


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(NotAvailableError, match="no clock is registered for it"):
        do_bench(lambda: None, device="abacus")


def test_cudagraph_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
    with pytest.raises(NotAvailableError, match="imported PyTorch that sees a CUDA device"):
        do_bench_cudagraph(lambda: None)
