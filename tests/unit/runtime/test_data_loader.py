"""Kernels inside torch's data loaders: workers have a thread each, and none waits for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

SCRIPT = """
import sys, torch
from tilewright import kernels
from tilewright.support import thread_count

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, number):
        x = torch.arange(64 * 300.0).reshape(64, 300) * number / 300
        error = (kernels.softmax(x, torch.empty_like(x)) - torch.softmax(x, 1)).abs().max()
        return torch.tensor([float(error), thread_count()])

if __name__ == "__main__":
    Rows()[1]  # the parent's threads have run
    loader = torch.utils.data.DataLoader(
        Rows(), batch_size=2, num_workers=2, multiprocessing_context=sys.argv[1])
    found = torch.cat(list(loader))
    assert found.shape == (6, 2) and found[:, 0].max() < 1e-6, found
    print("threads", found[:, 1].unique().tolist())
    Rows()[1]
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_data_loader_have_a_thread_each(start: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "loads_data.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), start],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "threads [1.0]"
