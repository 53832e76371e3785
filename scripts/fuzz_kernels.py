"""Fuzzes whole kernels on several devices in many processes, and keeps what fails as test files.

    python scripts/fuzz_kernels.py --count 100000 --processes 60 --devices interpreter,cpu,nvidia

Program number n is the same everywhere. Each failure is made small and written to `--out` as a test
that runs by itself; a process that crashes or hangs is a failure too. SIGINT (Ctrl-C), SIGTERM and
`--seconds` end early; the summary of what was done is printed, and written to `--out`, too.
`tests/fuzz/__init__.py` tells how it works.
"""

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    sys.exit(importlib.import_module("tests.fuzz.command").main(sys.argv[1:]))
