"""`tilewright.distributed.agree` under torchrun, with gloo (needs torch)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.distributed.rank_processes import ROOT

pytestmark = pytest.mark.torch

GROUPS = 7
"""Of configurations with equal code: a CPU ignores the number of warps."""
DEFAULT = "BLOCK: 32, num_warps: 2, num_ctas: 1, num_stages: 3"


def run(cache: Path, count: int, *options: str) -> list[dict[str, Any]]:
    """What each rank reports, by rank."""
    module = "tests.unit.distributed.agreeing_ranks"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, f"--nproc-per-node={count}", "-m", module, "--cache", str(cache)]
    path = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    environment["TILEWRIGHT_CPU_THREADS"] = "1"
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, env=environment, check=False
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert rows, done.stderr
    return sorted(rows, key=lambda row: row["rank"])


def test_ranks_choose_alike_though_one_is_slower(tmp_path: Path) -> None:
    rows = run(tmp_path, 4, "--buckets", "20", "--slow", "3")
    assert [row["rank"] for row in rows] == [0, 1, 2, 3]
    assert all(row["chosen"] == rows[0]["chosen"] for row in rows)
    assert len(rows[0]["chosen"]) == 20
    most = 1 + -(-GROUPS // 4)
    assert all(count <= most for row in rows for count in row["measured"])
    # Each rank has the timings of all configurations: another autotuner measures none.
    assert all(row["again"] == row["chosen"] for row in rows)
    assert all(row["measured_again"] == 0 for row in rows)


def test_a_rank_that_raises_or_dies_leaves_the_default(tmp_path: Path) -> None:
    options = ["--fail", "raise", "1", "1", "--fail", "exit", "1", "2", "--timeout", "3"]
    (row,) = run(tmp_path, 2, "--buckets", "4", *options)
    assert row["chosen"][1:] == [DEFAULT] * 3
    failed, lost = row["warnings"]
    assert "failed on rank 1 (Planted: planted)" in failed
    assert "rank 1 made no progress for 3 s" in lost
    assert row["longest"] < 30
