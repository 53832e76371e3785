"""`python -m benchmarks.gpu [SUITE] [options of the suite]`; without a suite, `kernels`."""

from __future__ import annotations

import sys
from importlib import import_module

SUITES = {
    "kernels": "ready_made_kernels",
    "attention": "attention",
    "matmul": "matmul",
    "language": "language_functions",
    "warp-split": "warp_split",
    "kernel-tests": "kernel_tests",
    "users": "users",
    "compiled-users": "compiled_users",
    "distributed": "distributed",
}

suite, arguments = "kernels", sys.argv[1:]
if arguments and not arguments[0].startswith("-"):
    suite, *arguments = arguments
if suite not in SUITES:
    sys.exit(f"unknown suite {suite!r}; choose from {', '.join(SUITES)}")
sys.exit(import_module(f"benchmarks.gpu.{SUITES[suite]}").main(arguments))
