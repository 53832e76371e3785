"""A kernel that crashes the process says which it was, and with what, before the process dies."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no native pool")

ROOT = Path(__file__).parents[5]
PROGRAM = """
import faulthandler, sys
import numpy as np
import tilewright, tilewright.language as tl
{before}
@tilewright.jit
def far(out, offset, scale, small, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + offset + i, i * scale + small)

out = np.zeros(64, np.float32)
far[(4,)](out, 0, 0.5, -3, B=16)
assert out[2] == -2
print("address", hex(out.ctypes.data), flush=True)
{after}
far[({grid},)](out, 1 << 40, 0.5, -3, B=16)
print("still here")
"""


def crash(tmp_path: Path, grid: int = 4, threads: int = 2, before: str = "", after: str = ""):
    script = tmp_path / "far.py"
    script.write_text(PROGRAM.format(grid=grid, before=before, after=after))
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "TILEWRIGHT_CPU_THREADS": str(threads), "PYTHONFAULTHANDLER": "",
             "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
    )  # fmt: skip


@pytest.mark.parametrize(("grid", "threads"), [(1, 2), (4, 1), (4, 2), (1000, 3)])
def test_kernel_line_and_arguments_are_told(tmp_path: Path, grid: int, threads: int) -> None:
    done = crash(tmp_path, grid, threads)
    assert done.returncode == -signal.SIGSEGV
    address = done.stdout.split()[1]
    assert "still here" not in done.stdout
    report = done.stderr
    assert (
        "tilewright: SIGSEGV: an access to memory that is not there in the kernel 'far'" in report
    )
    assert f"{tmp_path / 'far.py'}:6)" in report
    assert f"of the grid ({grid}, 1, 1)" in report
    for line in (f"out = {address}", f"offset = {1 << 40}", "scale = 0.5", "small = -3"):
        assert f"  {line}\n" in report
    assert "TILEWRIGHT_INTERPRET=1" in report


@pytest.mark.parametrize(
    ("before", "after"), [("faulthandler.enable()", ""), ("", "faulthandler.enable()")]
)
def test_faulthandler_tells_its_part_too(tmp_path: Path, before: str, after: str) -> None:
    # One thread: the reports of two that crash at once are whole, but may be mixed.
    done = crash(tmp_path, threads=1, before=before, after=after)
    assert done.returncode == -signal.SIGSEGV
    assert "in the kernel 'far'" in done.stderr
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert "far.py" in done.stderr.partition("Fatal Python error")[2]


def test_a_crash_elsewhere_is_left_alone(tmp_path: Path) -> None:
    done = crash(tmp_path, after="import ctypes; ctypes.string_at(8)")
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr == ""
