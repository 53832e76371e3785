"""`tilewright.testing` is cheap to import and exports what Triton's users look for."""

from __future__ import annotations

import subprocess
import sys

import tilewright.testing


def test_importing_pulls_in_no_optional_package() -> None:
    program = (
        "import sys, tilewright.testing;"
        "print([m for m in ('torch', 'pandas', 'matplotlib', 'pytest') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_exports() -> None:
    names = {"Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "perf_report"}
    assert names <= set(tilewright.testing.__all__)
    assert all(hasattr(tilewright.testing, name) for name in tilewright.testing.__all__)
