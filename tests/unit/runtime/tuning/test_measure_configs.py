"""Autotuning: each code is measured once, for a bounded time, under a bar that says what."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.runtime.tuned import Clock, scaled
from tilewright.runtime import Autotuner, Config, autotune, heuristics, jit
from tilewright.runtime.bench import Bar
from tilewright.support import (
    ListRecorder,
    StageText,
    TilewrightWarning,
    errors,
    recording,
    settings,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    with settings().cache.scope(dir=tmp_path):
        yield tmp_path


# --- configurations that come to the same ---------------------------------------------------------


def products(blocks: Sequence[int], **options: Sequence[int]) -> list[Config]:
    rows = itertools.product(*options.values())
    words = [dict(zip(options, row, strict=True)) for row in rows]
    return [Config({"BLOCK": block}, **some) for block in blocks for some in words]


def test_options_that_mean_nothing_on_a_cpu_are_neither_compiled_nor_measured() -> None:
    clock = Clock({16: 3.0, 32: 1.0})
    configs = products([16, 32], num_warps=[2, 4, 8], num_stages=[1, 2, 3])
    kernel = scaled(clock, configs)
    events = ListRecorder()
    with recording(events):
        kernel[1](clock.out, 7)
    assert clock.measured == [16, 32]
    assert len([event for event in events.of(StageText) if event.stage == "obj"]) == 0
    assert len([event for event in events.of(StageText) if event.stage == "llir"]) == 2
    assert kernel.configs_timings.keys() == set(configs)
    assert kernel.best_config == configs[9]
    again = Clock({16: 3.0, 32: 1.0})
    scaled(again, products([16, 32], num_warps=[16]))[1](again.out, 7)
    assert again.measured == [16, 32]  # these are not on disk
    scaled(again, [*configs, *products([32], num_warps=[32])])[1](again.out, 7)
    assert again.measured == [16, 32]  # this one is like one that is


def test_a_choice_among_equals_is_not_measured() -> None:
    clock = Clock({16: 3.0})
    kernel = scaled(clock, products([16], num_warps=[2, 4, 8]))
    kernel[1](clock.out, 7)
    assert clock.measured == []
    assert clock.out[0] == 16


def test_an_option_that_the_kernel_sees_means_something() -> None:
    clock = Clock({2: 2.0, 4: 1.0})

    @autotune([Config({}, num_warps=2), Config({}, num_warps=4)], key=[], do_bench=clock)
    @jit
    def kernel(out, num_warps: tl.constexpr):
        tl.store(out, num_warps)

    kernel[1](clock.out)
    assert clock.measured == [2, 4]


def counted(configs: Sequence[Config], kernel: Any, clock: list[float]) -> Autotuner:
    """A tuned kernel; each measurement takes the next time."""

    def bench(fn: Callable[[], object], *, quantiles: Sequence[float]) -> list[float]:
        fn()
        return [clock.pop(0)] * 3

    return autotune(configs, key=[], do_bench=bench)(kernel)


@jit
def ignoring(out, n, UNUSED: tl.constexpr):
    tl.store(out + tl.program_id(0), n)


@jit
def asserting(out, n, UNUSED: tl.constexpr):
    tl.device_assert(n > 0)
    tl.store(out, n)


UNUSED = [Config({"UNUSED": value}) for value in (1, 2, 3)]


def test_what_compiles_to_the_same_code_is_measured_once() -> None:
    clock = [1.0, 2.0, 3.0]
    out = np.zeros(8, "f")
    counted(UNUSED, ignoring, clock)[1](out, 5)
    assert clock == [1.0, 2.0, 3.0]  # there is no choice
    some = [*UNUSED, Config({"UNUSED": 4, "debug": True}), Config({"UNUSED": 5, "debug": True})]
    tuned = counted(some, asserting, clock)
    tuned[1](out, 5)
    assert clock == [3.0]
    assert [timing[0] for timing in tuned.configs_timings.values()] == [1.0, 1.0, 1.0, 2.0, 2.0]


def test_the_same_code_on_another_grid_is_another_launch() -> None:
    clock = [3.0, 2.0, 1.0]
    out = np.zeros(8, "f")
    tuned = counted(UNUSED, ignoring, clock)
    tuned[lambda meta: (meta["UNUSED"],)](out, 5)
    assert clock == []
    assert out.tolist() == [5, 5, 5, 0, 0, 0, 0, 0]


def test_the_same_code_with_other_arguments_is_another_launch() -> None:
    clock = [3.0, 2.0]
    out = np.zeros(8, "f")
    tuned = counted([Config({"n": n, "UNUSED": 1}) for n in (5, 6)], ignoring, clock)
    tuned[1](out)
    assert clock == []
    assert out[0] == 6


def test_the_same_code_after_another_hook_is_another_launch() -> None:
    clock = [3.0, 2.0]
    hooks = [lambda arguments: None, lambda arguments: arguments["out"].fill(9)]
    tuned = counted([Config({"UNUSED": 1}, pre_hook=h) for h in hooks], ignoring, clock)
    out = np.zeros(8, "f")
    tuned[1](out, 5)
    assert clock == []
    assert out[1] == 9


def test_heuristics_take_part_in_what_is_the_same() -> None:
    clock = [3.0, 2.0]
    rule = heuristics({"n": lambda args: args["UNUSED"] + 4})
    out = np.zeros(8, "f")
    counted([Config({"UNUSED": value}) for value in (1, 2)], rule(ignoring), clock)[1](out)
    assert clock == []
    assert out[0] == 6


# --- the time that tuning may take, and the bar ---------------------------------------------------


class Seconds:
    """Stands for the module `time`: each measurement of a `SlowClock` takes ten."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class SlowClock(Clock):
    def __init__(self, milliseconds: dict[int, float], seconds: Seconds) -> None:
        super().__init__(milliseconds)
        self.seconds = seconds

    def __call__(self, fn: Callable[[], object], *, quantiles: Sequence[float]) -> list[float]:
        self.seconds.now += 10
        return super().__call__(fn, quantiles=quantiles)


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    seconds = Seconds()
    monkeypatch.setattr(
        importlib.import_module("tilewright.runtime.tuning.measure_configs"), "time", seconds
    )
    return seconds


def test_when_the_time_is_over_the_best_so_far_is_used(seconds: Seconds) -> None:
    clock = SlowClock({16: 3.0, 32: 2.0, 64: 4.0, 128: 1.0}, seconds)
    kernel = scaled(clock, seconds=25)
    with pytest.warns(TilewrightWarning, match="ended after 25 s, before 1 of 4") as told:
        kernel[1](clock.out, 7)
        kernel[1](clock.out, 7)
    assert len(told) == 1
    assert clock.measured == [16, 32, 64]
    assert clock.out[0] == 32
    scaled(clock)[1](clock.out, 7)  # the next process goes on
    assert clock.measured == [16, 32, 64, 128]
    assert clock.out[0] == 128


def test_something_that_can_run_is_found_whatever_the_time(seconds: Seconds) -> None:
    def bench(fn: Callable[[], object], *, quantiles: Sequence[float]) -> list[float]:
        seconds.now += 10
        fn()
        if out[0] < 64:
            raise errors.OutOfResources(2, 1, "shared memory")
        return [5.0] * 3

    out = np.zeros(1, "f")

    @autotune([Config({"BLOCK": 16 << i}) for i in range(5)], key=[], do_bench=bench, seconds=1)
    @jit
    def kernel(out, BLOCK: tl.constexpr):
        tl.store(out, BLOCK)

    with pytest.warns(TilewrightWarning, match="before 2 of 5"):
        kernel[1](out)
    assert out[0] == 64


def test_no_limit_and_the_setting(seconds: Seconds, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SlowClock({16: 3.0, 32: 2.0, 64: 1.0}, seconds)
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE_SECONDS", "0.5")
    scaled(clock, seconds=0)[1](clock.out, 7)
    assert len(clock.measured) == 3
    with pytest.warns(TilewrightWarning, match=r"0.5 s, before 2 of 3"):
        scaled(clock)[1](clock.out, 8)
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE_SECONDS", "-1")
    with pytest.raises(errors.BadSetting, match="a number of seconds"):
        scaled(clock)[1](clock.out, 9)


def test_compiling_may_take_half_of_the_time() -> None:
    """What is not compiled then is measured last."""
    clock = Clock({16: 1.0, 32: 2.0, 64: 3.0})
    kernel = scaled(clock, seconds=1e-6)
    with pytest.warns(TilewrightWarning, match="best of the others"):
        kernel[1](clock.out, 7)
    assert len(clock.measured) == 1


class Shown(Bar):
    """A bar that keeps what it says."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.steps: list[int] = []

    def __call__(self, text: str) -> None:
        self.texts.append(text)

    def show(self, text: str) -> None:
        self.texts.append(text)

    def resize(self, steps: int) -> None:
        self.steps.append(steps)


def test_the_bar_names_the_configuration_and_the_best_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = Shown()

    @contextmanager
    def bar(title: str, steps: int) -> Iterator[Bar]:
        shown.texts.append(title)
        yield shown

    monkeypatch.setattr(
        importlib.import_module("tilewright.runtime.tuning.measure_configs"), "step_bar", bar
    )
    clock = Clock({16: 3.0, 32: 1.0, 64: 2.0})
    scaled(clock, products([16, 32, 64], num_warps=[4, 8]))[1](clock.out, 7)
    assert shown.steps == [3]
    assert shown.texts[:2] == ["tuning kernel", "compiling 3 configurations"]
    assert shown.texts[2:5] == [f"compiled {n} of 3" for n in (1, 2, 3)]
    assert shown.texts[5:] == [
        "BLOCK: 16",
        "BLOCK: 32\nbest 3.0000 ms: BLOCK: 16",
        "BLOCK: 64\nbest 1.0000 ms: BLOCK: 32",
    ]
