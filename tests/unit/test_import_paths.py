"""Names are where users of Triton look for them."""

import importlib
import inspect

import pytest

PLACES = {
    "tilewright": (
        "jit autotune heuristics Config cdiv next_power_of_2 compile constexpr_function "
        "JITFunction CompilationError OutOfResources InterpreterError TritonError MockTensor "
        "TensorWrapper reinterpret language testing runtime compiler backends __version__"
    ),
    "tilewright.language": "constexpr program_id arange load store dot sum max where float32",
    "tilewright.language.extra.libdevice": "tanh erf pow",
    "tilewright.testing": "do_bench do_bench_cudagraph perf_report Benchmark Mark assert_close",
    "tilewright.compiler": "compile ASTSource IRSource CompiledKernel",
    "tilewright.backends.compiler": "GPUTarget",
    "tilewright.tools.tensor_descriptor": "TensorDescriptor",
    "tilewright.runtime": "JITFunction jit autotune Autotuner heuristics Config driver",
    "tilewright.runtime.jit": "JITFunction jit",
}


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module in PLACES for name in PLACES[module].split()]
)
def test_name_is_there(module, name):
    assert getattr(importlib.import_module(module), name) is not None


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("autotune", "configs key prune_configs_by reset_to_zero restore_value pre_hook post_hook "
                     "warmup rep use_cuda_graph do_bench cache_results"),
        ("Config", "kwargs num_warps num_stages num_ctas maxnreg pre_hook ir_override"),
        ("heuristics", "values"),
        ("compile", "src target options"),
        ("testing.do_bench", "fn warmup rep grad_to_none quantiles return_mode"),
        ("testing.Benchmark", "x_names x_vals line_arg line_vals line_names plot_name args xlabel "
                              "ylabel x_log y_log styles"),
        ("testing.assert_close", "x y atol rtol err_msg"),
        ("compiler.ASTSource", "fn signature constexprs attrs"),
        ("backends.compiler.GPUTarget", "backend arch warp_size"),
    ],
)  # fmt: skip
def test_parameters_have_triton_s_names_and_order(name, parameters):
    *modules, last = name.split(".")
    found = getattr(importlib.import_module(".".join(["tilewright", *modules])), last)
    wanted = parameters.split()
    assert list(inspect.signature(found).parameters)[: len(wanted)] == wanted
