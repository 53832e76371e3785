"""The ptxas that the tables were made with: that of the wheel which the extra `test` pins."""

import importlib.metadata
import sys
from pathlib import Path

import pytest

PACKAGE = "nvidia-cuda-nvcc"
VERSION = "13.0.88"
"""As in pyproject.toml; register counts differ between versions."""


def pinned_ptxas() -> Path:
    """Its path. Skips the test where there is no such wheel, fails where it is not installed."""
    if sys.platform == "darwin":
        pytest.skip(f"there is no wheel of {PACKAGE} for this system")
    try:
        wheel = importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return pytest.fail(_advice("it is not installed"), pytrace=False)
    if wheel.version != VERSION:
        return pytest.fail(_advice(f"{wheel.version} is installed"), pytrace=False)
    programs = [file for file in wheel.files or () if file.stem == "ptxas"]
    assert programs, f"{PACKAGE} has no ptxas"
    return Path(str(wheel.locate_file(programs[0])))


def _advice(found: str) -> str:
    return (
        f"the tables of the corpus were made with {PACKAGE} {VERSION}; {found}: "
        f"pip install '{PACKAGE}=={VERSION}'"
    )
