"""Records of CUPTI as costs and events, with a fake `cupti`; and without one."""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tilewright.backends import backend_named
from tilewright.backends.nvidia.driver.activity_profiler import ActivityProfiler

KERNEL, MEMCPY = 10, 1
NOW = 5_000_000_000
"""The reading of Python's clock during a test, in nanoseconds."""
AHEAD = 1_000_000
"""Nanoseconds by which the fake's clock is ahead of Python's."""


class FakeCupti(ModuleType):
    """The functions of `cupti.cupti` that the profiler calls."""

    ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=KERNEL)

    def __init__(self) -> None:
        super().__init__("cupti.cupti")
        self.records: list[Any] = []
        self.calls: list[str] = []

    def activity_enable(self, kind: int) -> None:
        self.calls.append(f"enable {kind}")

    def activity_disable(self, kind: int) -> None:
        self.calls.append(f"disable {kind}")

    def activity_register_callbacks(self, requested: Any, completed: Any) -> None:
        assert requested() == (8 << 20, 0)
        self.completed = completed

    def activity_flush_all(self, flag: int) -> None:
        self.completed(self.records)

    def get_timestamp(self) -> int:
        return NOW + AHEAD


@pytest.fixture
def cupti(monkeypatch: pytest.MonkeyPatch) -> FakeCupti:
    fake = FakeCupti()
    monkeypatch.setitem(sys.modules, "cupti", ModuleType("cupti"))
    monkeypatch.setitem(sys.modules, "cupti.cupti", fake)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: NOW)
    return fake


def record(name: str, start: int, end: int, kind: int = KERNEL, stream: int = 7) -> Any:
    return SimpleNamespace(kind=kind, name=name, start=start, end=end, stream_id=stream)


def test_runs_are_summed_by_kernel(cupti: FakeCupti) -> None:
    locations: dict[str, str] = {}
    with ActivityProfiler(locations) as profiler:
        locations["add"] = "program.py:12"  # as the trace fills it at launches
        cupti.records += [
            record("mul", NOW + AHEAD + 900, NOW + AHEAD + 1000),
            record("add", NOW + AHEAD, NOW + AHEAD + 400),
            record("add", NOW + AHEAD + 500, NOW + AHEAD + 800),
            record("copy", NOW, NOW + 10**9, MEMCPY),
        ]
    assert [(cost.kernel, cost.file, cost.line) for cost in profiler.costs] == [
        ("add (program.py:12)", "program.py", 12),
        ("mul", "", 0),
    ]
    assert [round(cost.seconds * 1e9) for cost in profiler.costs] == [700, 100]
    assert [event.kernel for event in profiler.events] == ["add", "add", "mul"]
    assert profiler.events[0].begin == NOW
    assert profiler.events[0].stream == 7
    assert cupti.calls == [f"enable {KERNEL}", f"disable {KERNEL}"]


def test_without_cupti_the_note_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)
    with ActivityProfiler({}) as profiler:
        pass
    assert profiler.costs == []
    assert "pip install 'tilewright[profile]'" in profiler.note


def test_the_backend_names_its_profiler() -> None:
    make = backend_named("cuda").profiler
    assert make is not None
    assert isinstance(make({}), ActivityProfiler)
