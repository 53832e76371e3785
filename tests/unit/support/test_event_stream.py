"""Events reach the recorder that is installed, and nobody when there is none."""

import threading

import pytest

from tilewright.support import (
    ListRecorder,
    RuleFired,
    StageText,
    TeeRecorder,
    Timing,
    current_recorder,
    recording,
    timed,
)


def test_off_by_default_and_after_the_block() -> None:
    assert current_recorder() is None
    outer, inner = ListRecorder(), ListRecorder()
    with recording(outer):
        with recording(inner):
            assert current_recorder() is inner
        with recording(None):
            assert current_recorder() is None
        assert current_recorder() is outer
    assert current_recorder() is None


def test_other_threads_are_not_recorded() -> None:
    seen: list[object] = []
    with recording(ListRecorder()):
        thread = threading.Thread(target=lambda: seen.append(current_recorder()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_list_recorder_filters_by_kind() -> None:
    events = ListRecorder()
    fired = RuleFired("add_zero", "arith.py", "arith.add")
    for event in (fired, StageText("ttir", "k", "...", "..."), Timing("parse", 0.5)):
        events.record(event)
    assert events.of(RuleFired) == [fired]
    assert len(events.events) == 3


def test_tee_passes_on_in_order() -> None:
    first, second = ListRecorder(), ListRecorder()
    TeeRecorder((first, second)).record(Timing("x", 1.0))
    assert first.events == second.events == [Timing("x", 1.0)]


def test_timed_measures_also_what_raises() -> None:
    events = ListRecorder()
    with recording(events), pytest.raises(ZeroDivisionError), timed("division"):
        _ = 1 // 0
    (timing,) = events.of(Timing)
    assert timing.name == "division" and timing.seconds >= 0
