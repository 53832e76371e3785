"""`benchmarks/harness.py`: interleaving, ratios and their spread, threads, table and JSON."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import harness
from benchmarks.harness import Case, Timing, Work, interleave, spread_of
from tests.unit.testing.fake_clock import FakeClock
from tilewright.support import usable_cpus


@dataclass
class Bench:
    """Contestants that advance a fake clock, and a record of who was called when."""

    clock: FakeClock = field(default_factory=FakeClock)
    log: list[str] = field(default_factory=list[str])

    def contestant(self, name: str, ms: Callable[[], float]) -> Callable[[], None]:
        def call() -> None:
            self.log.append(name)
            self.clock.spend(ms())

        return call

    def constant(self, name: str, ms: float) -> Callable[[], None]:
        return self.contestant(name, lambda: ms)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(harness, "_preemptions", lambda: 0)
    return Bench()


def test_ratios_are_speeds_over_the_baseline(bench: Bench) -> None:
    ms = {"slow": 4.0, "base": 2.0, "fast": 0.5}
    case = interleave(
        {name: bench.constant(name, ms[name]) for name in ms},
        rounds=5, min_time=8, baseline="base", settle_ms=0, clock=bench.clock,
    )  # fmt: skip
    assert {name: ratio.median for name, ratio in case.ratios.items()} == {"slow": 0.5, "fast": 4.0}
    assert {name: timing.spread.median for name, timing in case.timings.items()} == ms
    calls = {name: timing.calls_per_sample for name, timing in case.timings.items()}
    assert calls == {"slow": 2, "base": 4, "fast": 16}
    assert {len(timing.samples_ms) for timing in case.timings.values()} == {5}
    assert not bench.clock.closed  # it is the caller's


def test_the_last_contestant_is_the_baseline_unless_named(bench: Bench) -> None:
    case = interleave(
        {"a": bench.constant("a", 1.0), "b": bench.constant("b", 1.0)},
        rounds=1, settle_ms=0, clock=bench.clock,
    )  # fmt: skip
    assert case.baseline == "b"


def order_of_rounds(bench: Bench, seed: int) -> list[tuple[str, str]]:
    bench.log.clear()
    interleave(
        {"a": bench.constant("a", 30.0), "b": bench.constant("b", 30.0)},
        rounds=16, settle_ms=0, seed=seed, clock=bench.clock,
    )  # fmt: skip
    calibration, measured = 2 * (1 + 3), bench.log[8:]
    assert sorted(bench.log[:calibration]) == ["a"] * 4 + ["b"] * 4
    # A sample is one untimed and one timed call of the same contestant.
    assert measured[::2] == measured[1::2]
    return list(zip(measured[::4], measured[2::4], strict=True))


def test_every_round_samples_everyone_in_a_shuffled_order(bench: Bench) -> None:
    rounds = order_of_rounds(bench, seed=0)
    assert len(rounds) == 16
    assert set(rounds) == {("a", "b"), ("b", "a")}


def test_the_order_depends_on_the_seed_alone(bench: Bench) -> None:
    assert order_of_rounds(bench, seed=1) == order_of_rounds(bench, seed=1)
    assert order_of_rounds(bench, seed=1) != order_of_rounds(bench, seed=2)


def test_a_drifting_machine_does_not_change_ratios(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    speed = [1.0]

    def slower(ms: float) -> Callable[[], float]:
        return lambda: ms * speed[0]

    def between_rounds() -> int:
        speed[0] *= 1.01  # this is read before and after each round
        return 0

    monkeypatch.setattr(harness, "_preemptions", between_rounds)
    case = interleave(
        {"a": bench.contestant("a", slower(2.0)), "b": bench.contestant("b", slower(3.0))},
        rounds=20, min_time=1, settle_ms=0, clock=bench.clock,
    )  # fmt: skip
    drift = case.timings["a"].samples_ms
    assert max(drift) > 1.4 * min(drift)
    ratio = case.ratios["a"]
    assert (ratio.low, ratio.median, ratio.high) == pytest.approx((1.5, 1.5, 1.5))


def test_flushing_times_single_calls_after_an_untimed_one(bench: Bench) -> None:
    case = interleave(
        {"a": bench.constant("a", 0.001), "b": bench.constant("b", 0.001)},
        rounds=3, min_time=100, settle_ms=0, flush_cache=True, clock=bench.clock,
    )  # fmt: skip
    assert bench.clock.flushes == 2 * 3
    assert case.timings["a"].calls_per_sample == 1


def test_calibrating_a_function_without_measurable_time_ends(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "MAX_CALLS", 4)
    sampler = harness.Sampler(bench.clock, settle_ms=0, flush_cache=False)
    assert sampler.calibrate(bench.constant("free", 0.0), min_sample_ms=1.0) == 4


@pytest.mark.parametrize(
    ("per_round", "kept", "preempted"),
    [
        ([0, 0], [1.0, 2.0], 0),  # both quiet
        ([0, 5, 0], [1.0, 3.0], 0),  # the second is measured again
        ([5, 3, 1, 2, 4, 6], [3.0, 4.0], 2),  # never quiet: the two best of three times two
    ],
)
def test_preempted_rounds_are_measured_again(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    per_round: list[int],
    kept: list[float],
    preempted: int,
) -> None:
    readings = chain.from_iterable((0, count) for count in per_round)
    reads: list[int] = []

    def preemptions() -> int:
        reads.append(next(readings))
        return reads[-1]

    monkeypatch.setattr(harness, "_preemptions", preemptions)
    case = interleave(
        # In round n, which begins with reading 2n - 1, a call takes n ms.
        {"a": bench.contestant("a", lambda: (len(reads) + 1) / 2), "b": bench.constant("b", 1.0)},
        rounds=2, min_time=0, settle_ms=0, clock=bench.clock,
    )  # fmt: skip
    assert len(reads) == 2 * len(per_round)
    assert list(case.timings["a"].samples_ms) == kept
    assert case.preempted_rounds == preempted


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["a"], {}),
        (["a", "b"], {"rounds": 0}),
        (["a", "b"], {"baseline": "c"}),
        (["a", "b"], {"goals": {"c": 1.0}}),
        (["a", "b"], {"goals": {"b": 1.0}}),
    ],
)
def test_impossible_comparisons_are_refused(names: list[str], options: dict[str, object]) -> None:
    def must_not_run() -> None:
        raise AssertionError("ran")

    with pytest.raises(ValueError, match=r"needs two contestants|contestants are a, b"):
        interleave(dict.fromkeys(names, must_not_run), **options)  # type: ignore[arg-type]


def test_spread() -> None:
    spread = spread_of([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (spread.q1, spread.median, spread.q3) == (2.0, 3.0, 4.0)
    assert 1.0 <= spread.low < spread.median < spread.high <= 5.0
    assert spread_of([5.0, 1.0, 2.0, 4.0, 3.0]) == spread
    assert spread_of([7.0]) == harness.Spread(7.0, 7.0, 7.0, 7.0, 7.0)


def test_the_interval_narrows_with_more_samples() -> None:
    few, many = spread_of([1.0, 2.0, 3.0, 4.0] * 2), spread_of([1.0, 2.0, 3.0, 4.0] * 200)
    assert many.high - many.low < few.high - few.low


CASE = Case(
    name="add [2**24]",
    baseline="torch",
    timings={
        "tilewright": Timing("tilewright", 4, (2.0, 2.0, 2.0)),
        "numpy": Timing("numpy", 1, (8.0, 8.0, 8.0)),
        "torch": Timing("torch", 2, (4.0, 4.0, 4.0)),
    },
    work=Work(0.2, "GB"),
    goals={"tilewright": 1.5, "numpy": 0.9},
    parameters={"n": 2**24},
)


def test_goals() -> None:
    assert {name: CASE.met(name) for name in CASE.timings} == {
        "tilewright": True,
        "numpy": False,
        "torch": None,
    }


def printed(*cases: Case) -> str:
    out = io.StringIO()
    harness.print_table(cases, "CPU", Console(file=out, width=80))
    return out.getvalue()


def test_the_table_shows_rates_ratios_and_goals_within_80_columns() -> None:
    rows = [line.split() for line in printed(CASE).splitlines()]
    assert ["add", "[2**24]"] in rows
    assert ["tilewright", "2", "100.0", "GB/s", "2.000", "2.00-2.00", "1.5", "met"] in rows
    assert ["numpy", "8", "25.0", "GB/s", "0.500", "0.50-0.50", "0.9", "MISSED"] in rows
    assert ["torch", "4", "50.0", "GB/s", "1"] in rows
    assert "Other programs" not in printed(CASE)


def test_the_table_tells_of_a_disturbed_run() -> None:
    disturbed = Case("mm", "b", {n: Timing(n, 1, (1.0, 1.0)) for n in "ab"}, preempted_rounds=1)
    text = printed(CASE, disturbed)
    assert "Other programs took the processor away in 1 of 2 cases" in text
    assert "mm: 1 of 2 rounds" in text


def test_results_name_machine_versions_date_and_figures(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cpu.json"
    harness.write_results(path, "CPU kernels", [CASE])
    record = json.loads(path.read_text())
    assert (record["schema"], record["title"]) == (1, "CPU kernels")
    assert record["date"].endswith("+00:00")
    assert record["machine"]["cpu"]
    assert record["machine"]["usable_cores"] >= 1
    assert record["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert record["versions"]["numpy"]
    assert set(record["threads"]) == {*harness.THREAD_VARIABLES, "torch"}
    (case,) = record["cases"]
    assert (case["name"], case["parameters"], case["rounds"]) == (CASE.name, {"n": 2**24}, 3)
    ours = case["contestants"]["tilewright"]
    assert ours["ms"] == dict.fromkeys(("median", "q1", "q3", "low95", "high95", "best"), 2.0)
    assert ours["ratio"]["median"] == 2.0
    assert ours["rate_per_s"] == pytest.approx(100.0)
    assert (ours["goal"], ours["met"], ours["calls_per_sample"]) == (1.5, True, 4)
    assert "ratio" not in case["contestants"]["torch"]
    assert list(path.parent.iterdir()) == [path]  # nothing partial is left


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC 9655\n", "AMD EPYC 9655"),
        ("Model\t\t: Raspberry Pi 5\n", "Raspberry Pi 5"),
    ],
)
def test_cpu_model_of_linux(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert harness.cpu_model(tmp_path / "cpuinfo") == expected


def test_cpu_model_elsewhere_is_never_empty(tmp_path: Path) -> None:
    assert harness.cpu_model(tmp_path / "missing")


def test_fix_threads_restarts_the_process_with_every_variable_set(tmp_path: Path) -> None:
    script = tmp_path / "bench.py"
    script.write_text(
        "import os, sys\n"
        "sys.modules['torch'] = None\n"  # as if it were not installed
        "from benchmarks import harness\n"
        "started = os.environ.setdefault('STARTS', '') + 'x'\n"
        "os.environ['STARTS'] = started\n"
        "harness.fix_threads(3)\n"
        "print(started, sys.argv[1:], sorted(harness.thread_counts().items(), key=str))\n"
    )
    root = Path(harness.__file__).parents[1]
    clean = {k: v for k, v in os.environ.items() if k not in harness.THREAD_VARIABLES}
    path = os.pathsep.join([str(root), *sys.path])
    done = subprocess.run(
        [sys.executable, str(script), "--rounds", "2"],
        env=clean | {"PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = {**dict.fromkeys(harness.THREAD_VARIABLES, 3), "torch": None}
    assert done.stdout.strip() == f"xx ['--rounds', '2'] {sorted(expected.items(), key=str)}"


@pytest.mark.skipif(sys.platform != "linux" or len(usable_cpus()) < 2, reason="needs two CPUs")
def test_threads_are_apart_for_a_while() -> None:
    end, usable = threading.Event(), set(usable_cpus())
    other = threading.Thread(target=end.wait)
    other.start()
    threads = threading.get_native_id(), other.native_id
    assert threads[1] is not None
    with harness.threads_apart():
        here, there = (os.sched_getaffinity(thread or 0) for thread in threads)
    after = [os.sched_getaffinity(thread or 0) for thread in threads]
    end.set()
    other.join()
    assert len(here) == 1 and here | there == usable and not here & there
    assert after == [usable, usable]
    with harness.threads_apart(Path("/nowhere")):
        assert os.sched_getaffinity(0) == usable
