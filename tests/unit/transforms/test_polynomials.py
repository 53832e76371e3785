"""The coefficients are what the committed script fits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "scripts" / "fit_polynomials.py"


def check(*names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--check", *names]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_some_committed_coefficients_are_those_that_the_script_fits() -> None:
    found = check("SIN_32", "LOG_32")
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count("degree") == 2


def test_all_committed_coefficients_are_those_that_the_script_fits() -> None:
    found = check()
    assert found.returncode == 0, found.stdout + found.stderr
