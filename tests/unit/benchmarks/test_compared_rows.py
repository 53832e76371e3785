"""Rows of two sides: their comparison, and the file that a later run continues."""

from pathlib import Path

from benchmarks.compared_rows import RowsFile, comparison, failures, summary


def test_a_speed_is_the_median_of_the_ratios_of_rounds() -> None:
    row = comparison(("ours", "theirs"), {"ours": [1.0, 2.0, 4.0], "theirs": [2.0, 2.0, 6.0]})
    assert row["speed"] == 1.5
    assert row["ms"] == {"ours": 2.0, "theirs": 2.0}
    assert row["sides"] == ["ours", "theirs"]


def test_a_run_continues_where_the_file_ends(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    first = RowsFile(file, "title")
    assert first.missing(["a", "b", "c"]) == ["a", "b", "c"]
    first.add([{"name": "b", "speed": 1.0}])
    second = RowsFile(file, "title")
    assert second.missing(["a", "b", "c"]) == ["a", "c"]
    second.add([{"name": "a", "speed": 2.0}])
    assert [row["speed"] for row in RowsFile(file, "title").of(["a", "b"])] == [1.0, 2.0]


def test_rows_without_a_file_are_those_of_this_run() -> None:
    rows = RowsFile(None, "title")
    rows.add([{"name": "a"}])
    assert rows.of(["a"]) == [{"name": "a"}] and rows.missing(["a"]) == []


def test_sides_that_failed_are_named_with_the_reason() -> None:
    assert failures({"ours": {"errors": []}, "theirs": {"failed": "ValueError: x"}}) == {
        "theirs": "ValueError: x"
    }


def test_the_summary_counts_rows_below_the_goal() -> None:
    assert summary([0.5, 2.0], 0.95) == "2 rows, geometric mean 1.000, least 0.500, 1 below 0.95"
