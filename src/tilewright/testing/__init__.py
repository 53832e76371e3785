"""Public helpers to test and time kernels."""

from tilewright.runtime import (
    BenchClock,
    CpuClock,
    CudaEventClock,
    NotAvailableError,
    clock_for,
    do_bench,
    do_bench_cudagraph,
    register_clock,
    step_bar,
)
from tilewright.testing.benchmark import Benchmark
from tilewright.testing.closeness import assert_close, relative_error
from tilewright.testing.device_rates import (
    get_dram_gbps,
    get_max_simd_tflops,
    get_max_tensorcore_tflops,
    nvsmi,
)
from tilewright.testing.performance_report import Mark, perf_report

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
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
    "register_clock",
    "relative_error",
    "step_bar",
]


def __dir__() -> list[str]:
    return __all__
