"""The first launch of a process may be interpreted: nothing was compiled before it, so nothing that
only a compilation imports is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import sys

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def larger(a, b):
    if a > b:
        c = a
    else:
        c = b
    return c


@tilewright.jit
def after(x1, a1, x2, a2):
    return x1 * a2 + x2, a1 * a2


@tilewright.jit
def reduced(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), x * 0 + tl.reduce(x, 0, larger))


@tilewright.jit
def scanned(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    sums, _ = tl.associative_scan((x, x * 0 + 1), 0, after)
    tl.store(out_ptr + tl.arange(0, N), sums)


@tilewright.jit
def mapped(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), tl.map_elementwise(larger, x, x * 0))


x = np.arange(16, dtype=np.float32)
out = np.empty_like(x)
kernel = {"reduced": reduced, "scanned": scanned, "mapped": mapped}[sys.argv[1]]
expected = {"reduced": np.full_like(x, 15), "scanned": np.cumsum(x), "mapped": x}[sys.argv[1]]
kernel[(1,)](x, out, N=16)
assert np.array_equal(out, expected), out
"""


@pytest.mark.parametrize("kernel", ["reduced", "scanned", "mapped"])
def test_functions_of_elements_run_in_a_process_that_compiled_nothing(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "kernels.py"
    script.write_text(KERNELS)
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "1")
    found = subprocess.run([sys.executable, script, kernel], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
