"""The coefficients are what the committed script fits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "fit_polynomials.py"


@pytest.mark.slow
def test_the_committed_coefficients_are_those_that_the_script_fits() -> None:
    found = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
