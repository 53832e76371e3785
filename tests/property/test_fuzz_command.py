"""The command that fuzzes tells what it has done, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz_kernels.py"
PATIENCE = 120.0
"""Seconds for the first program, on a machine that is busy."""


def ignore_interrupts() -> None:
    """As a shell lets its background jobs begin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no groups of processes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_run_that_is_interrupted_prints_and_writes_its_summary(
    number: signal.Signals, tmp_path: Path
) -> None:
    words = ["--count", "1000000", "--devices", "interpreter", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True, preexec_fn=ignore_interrupts,
    )  # fmt: skip
    summary = tmp_path / "summary.txt"
    deadline = time.monotonic() + PATIENCE
    while not summary.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if number is signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    assert "no failures" in output and "Traceback" not in output
    assert "no failures" in summary.read_text(encoding="utf-8")
