"""`python -m benchmarks.keep_results`: one row per case, of each form that benchmarks write."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import keep_results

MOST_LINES = 3000
CASE: dict[str, Any] = {
    "name": "add",
    "baseline": "torch",
    "contestants": {
        "torch": {"ms": {"median": 0.5}},
        "tilewright": {
            "ms": {"median": 0.25},
            "ratio": {"median": 2.0, "low95": 1.9, "high95": 2.125},
        },
        "triton": {"ms": {"median": 0.4}, "ratio": {"median": 1.25}},
    },
}


def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Any) -> list[Any]:
    monkeypatch.setattr(keep_results, "RESULTS", tmp_path)
    run = tmp_path / "run.json"
    run.write_text(json.dumps(record))
    keep_results.main([str(run), "--suite", "s", "--machine", "m"])
    with (tmp_path / "s-m.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_case_of_the_harness_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"date": "2026-11-24T01:02:03+00:00", "commit": "abc", "cases": [CASE]}
    assert kept(tmp_path, monkeypatch, record) == [
        {
            "date": "2026-11-24", "commit": "abc", "case": "add", "baseline": "torch",
            "baseline_ms": "0.5", "tilewright_ms": "0.25", "ratio": "2", "low95": "1.9",
            "high95": "2.125", "others": "triton 1.25",
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"name": "DyT", "direction": "backward", "speed": 1.5, "low95": 1.25, "high95": 1.75,
          "ms": {"tilewright": 2.0, "triton": 3.0, "copy": 1.0}},
         ("DyT backward", "triton", "3", "2", "1.5", "1.25")),
        ({"name": "gelu", "speed": 1.25, "times": [{"call": 80.0}, {"call": 100.0}]},
         ("gelu", "inductor", "0.1", "0.08", "1.25", "")),
    ],
)  # fmt: skip
def test_other_forms_are_rows_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Any, expected: Any
) -> None:
    (found,) = kept(tmp_path, monkeypatch, {"runs": [{"rows": [row]}]})
    names = ("case", "baseline", "baseline_ms", "tilewright_ms", "ratio", "low95")
    assert tuple(found[name] for name in names) == expected


def test_first_launches_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = {
        "tilewright": [{"add": 40.0}, {"add": 50.0}, {"add": 90.0}],
        "triton": [{"add": 400.0}],
    }
    _, row = kept(tmp_path, monkeypatch, {"cases": [CASE], "first_launch_ms": sides})
    assert (row["case"], row["tilewright_ms"], row["baseline_ms"]) == (
        "first launch add",
        "50",
        "400",
    )
    assert row["ratio"] == "8"


def test_a_file_without_cases_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        kept(tmp_path, monkeypatch, {"cases": []})
    assert not (tmp_path / "s-m.csv").exists()


def test_results_stay_small_tables() -> None:
    files = sorted(keep_results.RESULTS.iterdir())
    assert {file.suffix for file in files} == {".csv"}
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) < MOST_LINES
