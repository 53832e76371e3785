from tilewright.runtime.bench.clocks import (
    BenchClock,
    CpuClock,
    CudaEventClock,
    clock_for,
    register_clock,
)
from tilewright.runtime.bench.measure import do_bench, do_bench_cudagraph
from tilewright.runtime.bench.progress import Bar, Step, step_bar
from tilewright.runtime.bench.unavailable import NotAvailableError

__all__ = [
    "Bar",
    "BenchClock",
    "CpuClock",
    "CudaEventClock",
    "NotAvailableError",
    "Step",
    "clock_for",
    "do_bench",
    "do_bench_cudagraph",
    "register_clock",
    "step_bar",
]
