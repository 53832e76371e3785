"""The command that fuzzes tells what it has done, however it ends."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import Failure, program, save


def ignore_interrupts() -> None:
    """As a shell lets its background jobs begin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no groups of processes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_run_that_is_interrupted_prints_and_writes_its_summary(
    number: signal.Signals, tmp_path: Path
) -> None:
    words = ["--minutes", "10", "--devices", "interpreter", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True, preexec_fn=ignore_interrupts,
    )  # fmt: skip
    summary = tmp_path / "summary.txt"
    while not summary.exists() and process.poll() is None:
        time.sleep(0.05)
    if number is signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert "no failures" in output and "Traceback" not in output
    assert "no failures" in summary.read_text(encoding="utf-8")


def test_a_program_that_fails_is_saved_as_a_test_that_runs(tmp_path: Path) -> None:
    made = next(p for p in map(program, range(100)) if "memory" in p.features)
    place = save(tmp_path, made, Failure(made.seed, "cpu", "differs", "as told"))
    names: dict[str, Any] = runpy.run_path(str(place))
    for device in ("interpreter", "cpu", "emulated"):
        names["test_fuzzed"](device)
    wrong = {name: ~array for name, array in names["EXPECTED"].items() if array.dtype.kind in "iu"}
    names["EXPECTED"].update(wrong)
    with pytest.raises(AssertionError):
        names["test_fuzzed"]("cpu")


def test_devices_that_are_not_there_are_named() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--devices", "cpu,tpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no device 'tpu' here, only interpreter, cpu" in done.stderr
