"""Public helpers to test and time kernels."""

from tilewright.testing.bench import do_bench, do_bench_cudagraph
from tilewright.testing.benchmark import Benchmark
from tilewright.testing.clocks import (
    BenchClock,
    CpuClock,
    CudaEventClock,
    clock_for,
    register_clock,
)
from tilewright.testing.compare import assert_close, relative_error
from tilewright.testing.progress import step_bar
from tilewright.testing.report import Mark, perf_report
from tilewright.testing.unavailable import NotAvailableError

__all__ = [
    "BenchClock",
    "Benchmark",
    "CpuClock",
    "CudaEventClock",
    "Mark",
    "NotAvailableError",
    "assert_close",
    "clock_for",
    "do_bench",
    "do_bench_cudagraph",
    "perf_report",
    "register_clock",
    "relative_error",
    "step_bar",
]
