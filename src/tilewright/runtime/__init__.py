"""Launching: arguments, variants, grids, tuning."""

from tilewright.language import cdiv, next_power_of_2
from tilewright.runtime.bench import (
    BenchClock,
    CpuClock,
    CudaEventClock,
    NotAvailableError,
    Step,
    clock_for,
    do_bench,
    do_bench_cudagraph,
    register_clock,
    step_bar,
)
from tilewright.runtime.grid import normal_grid
from tilewright.runtime.hooks import HookChain, LaunchMetadata, launch_enter, launch_exit
from tilewright.runtime.jit import JITFunction, jit
from tilewright.runtime.mock import MockTensor, TensorWrapper, reinterpret
from tilewright.runtime.parameters import KernelParam

__all__ = [
    "BenchClock",
    "CpuClock",
    "CudaEventClock",
    "HookChain",
    "JITFunction",
    "KernelParam",
    "LaunchMetadata",
    "MockTensor",
    "NotAvailableError",
    "Step",
    "TensorWrapper",
    "cdiv",
    "clock_for",
    "do_bench",
    "do_bench_cudagraph",
    "jit",
    "launch_enter",
    "launch_exit",
    "next_power_of_2",
    "normal_grid",
    "register_clock",
    "reinterpret",
    "step_bar",
]
