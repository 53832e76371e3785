"""`tilewright tuning list`: what autotuners have measured, and where."""

import json
import sys

import pytest

from tests.unit.runtime.tuned import Clock, scaled
from tilewright.runtime import Config, timing_lines
from tilewright.tools.cli import main


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_CPU_THREADS", "3")
    return tmp_path / "cache"


def tune(*values):
    clock = Clock({16: 2.0, 32: 1.0, 64: float("inf")})
    configs = [Config({"BLOCK": block}, num_warps=w) for block in (16, 32, 64) for w in (4, 8)]
    for n in values:
        scaled(clock, configs)[1](clock.out, n)


def test_timings_are_listed_by_kernel_and_key(cache, capsys):
    assert main(["tuning", "list"]) == 0
    assert "no timings are on disk" in capsys.readouterr().out
    tune(7, 8)
    assert main(["tuning", "list"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    head, *rows = first.splitlines()
    assert head.startswith("kernel for n=7, float32 on ")
    assert head.endswith(" with 3 threads")
    assert rows == [
        "    1.0000 ms  1.00x  BLOCK: 32, num_warps: 4 (and 1 with equal code)",
        "    2.0000 ms  2.00x  BLOCK: 16, num_warps: 4 (and 1 with equal code)",
        "          cannot run  BLOCK: 64, num_warps: 4 (and 1 with equal code)",
    ]
    assert second.startswith("kernel for n=8, float32 on ")


def test_one_kernel_and_json(cache, capsys):
    tune(7)
    assert main(["tuning", "list", "kernel", "--json"]) == 0
    (kept,) = json.loads(capsys.readouterr().out)
    assert kept["key"] == "n=7, float32"
    assert [row["ms"] for row in kept["timings"]] == [1.0, 2.0, float("inf")]
    assert main(["tuning", "list", "other"]) == 1
    assert capsys.readouterr().err == "tilewright: no timings of 'other' are on disk\n"


def test_damaged_files_are_skipped(cache, capsys):
    tune(7)
    (file,) = (cache / "autotune").glob("*.json")
    file.write_bytes(file.read_bytes()[:-5])
    assert main(["tuning", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_rows_fit_a_narrow_terminal(cache, capsys, monkeypatch):
    tune(7)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["tuning", "list"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_equal_parts_are_left_out_and_values_may_have_commas():
    rows = timing_lines({"A: (1, 2), B: 3, c: 1": [2.0], "A: (1, 3), B: 3, c: 1": [1.0]})
    assert rows == ["    1.0000 ms  1.00x  A: (1, 3)", "    2.0000 ms  2.00x  A: (1, 2)"]
