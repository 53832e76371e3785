"""The trace of launches, compilations and tunings in Chrome's format."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.unit.runtime.kernels import launch_increment, new_increment
from tests.unit.runtime.tuned import Clock, scaled
from tilewright.runtime import LaunchTrace, launch_enter, launch_exit
from tilewright.support import DeviceEvent, kernel_hooks


def kinds(trace: LaunchTrace) -> list[str]:
    return [event["cat"] for event in trace.events if event["cat"] != "stage"]


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.usefixtures("empty_cache")
def test_launches_compilations_and_cache_hits_are_events() -> None:
    kernel = new_increment()
    with LaunchTrace() as trace:
        for _ in range(3):
            launch_increment(kernel)
        launch_increment(new_increment())  # the same code: in the disk cache
    assert kinds(trace) == ["compile", "launch", "launch", "launch", "disk cache", "launch"]
    named = [event["name"] for event in trace.events if event["cat"] == "launch"]
    code = kernel.fn.__code__
    place = f"{code.co_filename}:{code.co_firstlineno}"
    assert set(named) == {f"add ({place})"}
    assert trace.locations == {"add": place}
    assert trace.events[-1]["args"] == {"grid": "(1, 1, 1)"}


@pytest.mark.usefixtures("empty_cache")
def test_stages_lie_in_their_compilation() -> None:
    with LaunchTrace() as trace:
        launch_increment(new_increment())
    (compiled,) = [event for event in trace.events if event["cat"] == "compile"]
    stages = [event for event in trace.events if event["cat"] == "stage"]
    assert [stage["name"] for stage in stages] == ["front end", "ttir", "llir", "obj", "store"]
    place = compiled["ts"]
    for stage in stages:
        assert stage["ts"] == pytest.approx(place, abs=1)
        place = stage["ts"] + stage["dur"]
    assert place <= compiled["ts"] + compiled["dur"] + 1


@pytest.mark.usefixtures("empty_cache")
def test_tunings_are_events() -> None:
    clock = Clock({16: 2.0, 32: 1.0})
    with LaunchTrace() as trace:
        scaled(clock)[1](clock.out, 7)
    (tuned,) = [event for event in trace.events if event["cat"] == "tuning"]
    assert tuned["name"] == "tune kernel"
    assert tuned["args"]["best"].startswith("BLOCK: 32")
    assert sorted(tuned["args"]["milliseconds"].values()) == [1.0, 2.0]


def test_events_of_a_thread_do_not_overlap_unless_nested() -> None:
    kernel = new_increment()
    with LaunchTrace() as trace:
        launch_increment(kernel)
        threads = [threading.Thread(target=launch_increment, args=(kernel,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    launches = [event for event in trace.events if event["cat"] == "launch"]
    assert len({event["tid"] for event in launches}) >= 2
    for tid in {event["tid"] for event in trace.events}:
        spans = sorted(
            (event["ts"], -event["dur"]) for event in trace.events if event["tid"] == tid
        )
        ends: list[float] = []
        for begin, negative in spans:
            while ends and ends[-1] <= begin + 1:
                ends.pop()
            assert not ends or begin - negative <= ends[-1] + 1
            ends.append(begin - negative)


def test_hooks_are_as_before_and_others_are_called() -> None:
    seen: list[str] = []
    kernel_hooks.listener = lambda **found: seen.append(found["src"].name)
    try:
        with LaunchTrace():
            launch_increment(new_increment())
        assert seen == ["add"]
        assert kernel_hooks.listener is not None
        assert kernel_hooks.tuned is None
    finally:
        kernel_hooks.listener = None
    assert not launch_enter
    assert not launch_exit


def test_the_file_has_chrome_s_format(tmp_path: Path) -> None:
    with LaunchTrace() as trace:
        launch_increment(new_increment())
    name = next(iter(trace.locations))
    trace.write(tmp_path / "trace.json", [DeviceEvent(name, 3, 1_000, 5_000)])
    written = json.loads((tmp_path / "trace.json").read_text())
    events = written["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == [
        "host", "GPU, by stream",
    ]  # fmt: skip
    for event in events:
        if event["ph"] == "X":
            assert event.keys() == {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}
            assert event["dur"] >= 0
    (device,) = [event for event in events if event.get("cat") == "gpu"]
    assert (device["ts"], device["dur"], device["tid"]) == (1.0, 4.0, 3)
    assert device["name"] == f"add ({trace.locations[name]})"
