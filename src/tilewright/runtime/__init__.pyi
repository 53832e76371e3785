from tilewright.language import cdiv, ceil_div, next_power_of_2
from tilewright.runtime import errors, launch_hooks
from tilewright.runtime.active_driver import ActiveDriver, Driver, driver, driver_class
from tilewright.runtime.arguments.kernel_parameters import Declared, KernelParam, kernel_parameters
from tilewright.runtime.arguments.key_rules import (
    Spec,
    address_divisor,
    argument_key,
    integer_spec,
    rules_of,
    spec,
)
from tilewright.runtime.arguments.mock_tensor import (
    MockTensor,
    TensorWrapper,
    dtype_of,
    mocked,
    reinterpret,
)
from tilewright.runtime.arguments.stated_arguments import Stated
from tilewright.runtime.async_compile import AsyncCompileMode, FutureKernel, active_mode
from tilewright.runtime.autotuner import Autotuner, autotune, is_on_host
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
from tilewright.runtime.jit import InterpretedFunction, JITFunction, jit
from tilewright.runtime.kernel_interface import KernelInterface
from tilewright.runtime.launch.bound_call import BoundCall, argument_spec
from tilewright.runtime.launch.compile_hooks import JitFunctionInfo
from tilewright.runtime.launch.generic_call import detached_call, generic_call, placed_call
from tilewright.runtime.launch.recompile_log import difference
from tilewright.runtime.launch.variant_cache import RecordedLaunch, Variant, VariantCache
from tilewright.runtime.launch_hooks import (
    LaunchMetadata,
    launch_enter,
    launch_exit,
    profiled_launches,
)
from tilewright.runtime.launch_trace import LaunchTrace
from tilewright.runtime.replaceable_functions import ConstexprFunction, FunctionText
from tilewright.runtime.scratch_allocator import set_allocator
from tilewright.runtime.tuning.heuristics import Heuristics, heuristics
from tilewright.runtime.tuning.kernel_wrapper import KernelWrapper
from tilewright.runtime.tuning.shared_choice import (
    SharedChoice,
    SharedTuning,
    Turn,
    together,
)
from tilewright.runtime.tuning.timing_store import KeptTimings, kept_timings
from tilewright.runtime.tuning.timing_table import timing_lines, timing_rows
from tilewright.runtime.tuning.tuning_config import Config
from tilewright.runtime.tuning.tuning_tables import TuningTable

__all__ = [
    "ActiveDriver",
    "AsyncCompileMode",
    "Autotuner",
    "BenchClock",
    "BoundCall",
    "Config",
    "ConstexprFunction",
    "CpuClock",
    "CudaEventClock",
    "Declared",
    "Driver",
    "FunctionText",
    "FutureKernel",
    "Heuristics",
    "InterpretedFunction",
    "JITFunction",
    "JitFunctionInfo",
    "KernelInterface",
    "KernelParam",
    "KernelWrapper",
    "KeptTimings",
    "LaunchMetadata",
    "LaunchTrace",
    "MockTensor",
    "NotAvailableError",
    "SharedChoice",
    "SharedTuning",
    "RecordedLaunch",
    "Spec",
    "Stated",
    "Step",
    "TensorWrapper",
    "TuningTable",
    "Turn",
    "Variant",
    "VariantCache",
    "active_mode",
    "address_divisor",
    "argument_key",
    "argument_spec",
    "autotune",
    "cdiv",
    "ceil_div",
    "clock_for",
    "detached_call",
    "difference",
    "do_bench",
    "do_bench_cudagraph",
    "driver",
    "driver_class",
    "dtype_of",
    "errors",
    "generic_call",
    "heuristics",
    "integer_spec",
    "launch_hooks",
    "is_on_host",
    "jit",
    "kept_timings",
    "kernel_parameters",
    "launch_enter",
    "mocked",
    "launch_exit",
    "placed_call",
    "profiled_launches",
    "next_power_of_2",
    "register_clock",
    "reinterpret",
    "rules_of",
    "set_allocator",
    "spec",
    "step_bar",
    "timing_lines",
    "timing_rows",
    "together",
]
