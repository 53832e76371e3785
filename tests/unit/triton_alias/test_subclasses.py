"""Classes of Triton that other packages derive from: constructors, attributes, what is called."""

# pyright: reportIncompatibleMethodOverride=false, reportIndexIssue=false

from __future__ import annotations

import inspect
from typing import Any, TypeVar

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.runtime import (
    Autotuner,
    Config,
    Heuristics,
    InterpretedFunction,
    JITFunction,
    KernelInterface,
    autotune,
    heuristics,
    jit,
)

T = TypeVar("T")


def stored(kernel: Any, *args: object, **keywords: object) -> float:
    out = np.zeros(1)
    kernel[(1,)](out, *args, **keywords)
    return float(out[0])


def product(out, n, STEP: tl.constexpr):
    tl.store(out, n * STEP)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (JITFunction, "fn version do_not_specialize do_not_specialize_on_alignment debug noinline "
                      "repr launch_metadata"),
        (Autotuner, "fn arg_names configs key reset_to_zero restore_value pre_hook post_hook "
                    "prune_configs_by warmup rep use_cuda_graph do_bench cache_results"),
        (Heuristics, "fn arg_names values"),
        (Config, "kwargs num_warps num_stages num_ctas maxnreg pre_hook ir_override"),
    ],
)  # fmt: skip
def test_constructors_have_triton_s_parameters_in_order(kind: type, parameters: str) -> None:
    wanted = parameters.split()
    assert list(inspect.signature(kind).parameters)[: len(wanted)] == wanted


class Counting(JITFunction):
    """Counts its launches, as profilers do."""

    launches = 0

    def run(self, *args: Any, grid: Any, warmup: bool = False, **keywords: Any) -> Any:
        self.launches += not warmup
        return super().run(*args, grid=grid, warmup=warmup, **keywords)


@pytest.mark.parametrize("interpret", [False, True])
def test_a_kernel_is_launched_by_the_run_of_its_subclass(interpret: bool) -> None:
    kernel = Counting(product, interpret=interpret)
    assert [stored(kernel, 3, STEP=4) for _ in range(4)] == [12.0] * 4
    assert kernel.launches == 4
    assert stored(heuristics({"STEP": lambda args: 5})(kernel), 3) == 15
    assert kernel.launches == 5


class Wrapper(KernelInterface[T]):
    """Launches another kernel with one more argument."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self.arg_names = fn.arg_names
        self.calls: list[tuple[object, bool]] = []

    def run(self, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
        self.calls.append((grid, warmup))
        return self.fn.run(*args, grid=grid, warmup=warmup, STEP=7, **keywords)


def test_a_kernel_interface_is_launched_and_warmed_up_by_its_run() -> None:
    wrapper = Wrapper(jit(product))
    assert stored(wrapper, 3) == 21
    compiled = wrapper.warmup(tl.float64, 3, grid=(2,))
    assert compiled.name == "product"
    assert wrapper.calls == [((1,), False), ((2,), True)]


def test_decorators_stand_in_front_of_wrappers_of_other_packages() -> None:
    wrapper = Wrapper(jit(product))
    tuned = autotune([Config({})], key=["n"])(heuristics({})(wrapper))
    assert stored(tuned, 4) == 28
    assert tuned.base_fn is wrapper.fn
    assert wrapper.calls == [((1,), False)]


class OwnTuner(Autotuner):
    """Chooses by itself, with its own way to measure."""

    def run(self, *args: Any, **keywords: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        timings = {c: self._bench(*args, config=c, **keywords) for c in self.configs}
        self.best_config = min(timings, key=lambda config: timings[config][0])
        return self.fn.run(*args, **keywords, **self.best_config.all_kwargs())


def bench(fn: Any, quantiles: Any) -> list[float]:
    fn()
    return [bench.times.pop(0)] * 3  # pyright: ignore[reportFunctionMemberAccess]


def test_an_autotuner_is_derived_from_with_triton_s_constructor() -> None:
    kernel = jit(product)
    configs = [Config({"STEP": 2}), Config({"STEP": 3}), Config({"STEP": 4})]
    seen: list[tuple[int, bool]] = []

    def before(arguments: dict[str, Any], reset_only: bool = False) -> None:
        seen.append((arguments["STEP"], reset_only))

    bench.times = [3.0, 1.0, 2.0]  # pyright: ignore[reportFunctionMemberAccess]
    tuner = OwnTuner(kernel, kernel.arg_names, configs, ["n"], None, None, before, do_bench=bench)
    assert stored(tuner, 5) == 15
    assert tuner.best_config is configs[1]
    assert seen == [(2, False), (3, False), (4, False)]


def test_the_hooks_of_an_autotuner_may_be_assigned() -> None:
    kernel = jit(product)
    configs = [Config({"STEP": 2}), Config({"STEP": 3})]
    tuner = OwnTuner(kernel, kernel.arg_names, configs, ["n"], ["out"], ["out"], do_bench=bench)
    assert not tuner.user_defined_pre_hook
    assert not tuner.user_defined_post_hook
    out = np.ones(1)
    tuner.pre_hook({"out": out})
    assert (out[0], tuner.restore_copies["out"][0]) == (0, 0)
    out[0] = 5
    tuner.post_hook({"out": out}, None)
    assert (out[0], tuner.restore_copies) == (0, {})
    calls: list[str] = []
    tuner.pre_hook = lambda arguments, reset_only=False: calls.append("before")
    tuner.post_hook = lambda arguments, exception: calls.append("after")
    bench.times = [1.0, 2.0]  # pyright: ignore[reportFunctionMemberAccess]
    assert stored(tuner, 5) == 10
    assert calls == ["before", "after"] * 2


def test_an_autotuner_has_triton_s_attributes() -> None:
    def early(configs: list[Config], arguments: dict[str, Any], **keywords: Any) -> list[Config]:
        return configs[:1]

    pruning = {"early_config_prune": early, "perf_model": len, "top_k": 3}
    tuner = autotune(
        [Config({"STEP": 2})], ["n"], pruning, ["out"], ["n"], warmup=5, use_cuda_graph=True
    )(jit(product))
    assert (tuner.early_config_prune, tuner.perf_model, tuner.configs_top_k) == (early, len, 3)
    assert (tuner.reset_to_zero, tuner.restore_value) == (["out"], ["n"])
    assert (tuner.num_warmups, tuner.num_reps, tuner.use_cuda_graph) == (5, None, True)
    assert (tuner.keys, tuner.arg_names, tuner.nargs) == (["n"], ["out", "n", "STEP"], None)
    assert tuner.cache == tuner.configs_timings == {}


def test_jit_makes_an_interpreted_function_in_the_interpreter() -> None:
    assert type(jit(interpret=True)(product)) is InterpretedFunction
    assert type(jit(interpret=False)(product)) is JITFunction
    assert stored(InterpretedFunction(product), 2, STEP=3) == 6


@pytest.mark.parametrize("interpret", [False, True])
def test_a_kernel_becomes_what_a_text_defines(interpret: bool) -> None:
    @jit(interpret=interpret)
    def kernel(out):
        tl.store(out, 1)

    kernel._unsafe_update_src("def kernel(out, n):\n    tl.store(out, n)\n")  # pyright: ignore[reportPrivateUsage]
    out = np.zeros(1, np.int32)
    kernel[(1,)](out, 7)
    assert out[0] == 7
    assert kernel.arg_names == ["out", "n"]
    assert kernel.src.startswith("def kernel(out, n)")


def test_a_kernel_has_triton_s_attributes() -> None:
    kernel = jit(product)
    assert kernel.module == __name__
    assert kernel.repr(None) == f"{__name__}.product"
    assert jit(repr=lambda specialization: f"k{specialization}")(product).repr(3) == "k3"
    assert kernel.raw_src[0] == "def product(out, n, STEP: tl.constexpr):\n"
    assert kernel.starting_line_number == product.__code__.co_firstlineno
    assert not kernel.is_gluon()
    assert JITFunction[Any] is JITFunction
