"""An op's time budget holds, with a factor of 3 for slow and shared machines."""

from benchmarks.compile_time.ir_ops import BUDGET, PROGRAMS, measure, table

SLACK = 3.0


def test_ops_stay_within_their_time_budget() -> None:
    figures = measure(count=2000, rounds=5)
    assert {f.step for f in figures} == BUDGET.keys()
    assert {f.program for f in figures} == PROGRAMS.keys()
    over = [f for f in figures if f.microseconds > SLACK * f.budget]
    assert not over, f"over {SLACK} times the budget\n{table(over)}"
