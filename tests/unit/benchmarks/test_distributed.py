"""The benchmark of kernels over several devices: its checks pass on CPU ranks beside gloo."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[3]
CHECKS = ["check-reduce", "check-matmul", "check-ring"]


def test_checks_of_four_ranks_are_right_beside_gloo(tmp_path: Path) -> None:
    """More runs: torchrun --nproc-per-node 4 -m benchmarks.gpu distributed --cpu --runs 1000"""
    table = tmp_path / "run.csv"
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", "4", "-m", "benchmarks.gpu", "distributed", "--cpu",
            "--runs", "10", *CHECKS, "--csv", str(table),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["ratio"] for row in rows] == ["ok"] * 4
    assert all(row["contestant"].startswith("10 runs") for row in rows)
