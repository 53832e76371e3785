"""The table of times, from events."""

import io

from rich.console import Console

from tilewright.support import PassEnded, RuleFired, Timing
from tilewright.tools.event_report import times_table


def shown(events):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(times_table(events))
    return [line.split() for line in console.export_text().splitlines() if line.strip()]


def ended(name, seconds, changed):
    return PassEnded(name, "f", seconds, changed, lambda: "")


def test_stages_and_passes_are_added_up_in_the_order_of_their_first_run():
    lines = shown(
        [
            Timing("frontend", 0.001),
            ended("cse", 0.001, True),
            ended("dce", 0.0005, False),
            ended("cse", 0.001, False),
            RuleFired("add_zero", "arith.py:1", "arith.add"),
            Timing("stage ttir", 0.003),
        ]
    )
    assert ["frontend", "1", "1.00", "25%"] in lines
    assert ["stage", "ttir", "1", "3.00", "75%"] in lines
    assert ["pass", "cse", "2", "1", "2.00", "50%"] in lines
    assert ["pass", "dce", "1", "0", "0.50", "12%"] in lines
    places = [lines.index(line) for line in lines if line[0] in ("frontend", "stage", "pass")]
    assert [lines[i][0] for i in places] == ["frontend", "stage", "pass", "pass"]
    assert lines[-1] == ["rules", "fired:", "1"]


def test_no_events():
    assert shown([])[0] == ["Where", "the", "time", "went"]


def test_passes_alone_are_shares_of_their_sum():
    lines = shown([ended("a", 0.001, True), ended("b", 0.003, True)])
    assert ["pass", "b", "1", "1", "3.00", "75%"] in lines
