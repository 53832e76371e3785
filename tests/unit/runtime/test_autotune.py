"""Autotuning: what is measured, how the choice is made, kept and shown."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.forking import exit_code_of_child, needs_fork
from tests.unit.runtime.tuned import Clock, scaled
from tilewright.runtime import Autotuner, Config, autotune, heuristics, jit
from tilewright.support import (
    TilewrightWarning,
    errors,
    settings,
)
from tilewright.support.disk_cache import sealed


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    with settings().cache.scope(dir=tmp_path):
        yield tmp_path


def test_the_fastest_is_chosen_and_run() -> None:
    clock = Clock({16: 3.0, 32: 1.0, 64: 2.0})
    kernel = scaled(clock)
    grids: list[int] = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        grids.append(meta["BLOCK"])
        return (1,)

    kernel[grid](clock.out, 7)
    assert clock.measured == [16, 32, 64]
    assert clock.out[0] == 32
    assert grids == [16, 32, 64, 32]
    assert kernel.best_config is not None
    assert kernel.best_config.kwargs == {"BLOCK": 32}
    assert [timing[0] for timing in kernel.configs_timings.values()] == [3.0, 1.0, 2.0]
    assert kernel.bench_time > 0
    assert list(kernel.cache.values()) == [kernel.best_config]


def test_a_new_key_or_dtype_is_measured_anew() -> None:
    clock = Clock({16: 3.0, 32: 1.0})
    kernel = scaled(clock)
    for n in (7, 7, 8):
        kernel[1](clock.out, n)
    assert len(clock.measured) == 4
    kernel[1](np.zeros(1, "d"), 7)
    assert len(kernel.cache) == 3


class _Unshown(np.ndarray):
    def __repr__(self) -> str:
        raise AssertionError("an array was shown, which of a GPU's is slow")


def test_arrays_by_keyword_are_not_shown() -> None:
    clock = Clock({16: 3.0, 32: 1.0})
    clock.out = clock.out.view(_Unshown)
    scaled(clock)[1](out=clock.out, n=7)
    assert clock.measured == [16, 32]


def test_one_configuration_is_not_measured() -> None:
    clock = Clock({16: 1.0})
    kernel = scaled(clock)
    kernel[1](clock.out, 7)
    assert clock.measured == []
    assert clock.out[0] == 16
    plain = scaled(clock, configs=[Config({"BLOCK": 8})])
    plain[1](clock.out, 7)
    assert clock.out[0] == 8


def test_default_measuring() -> None:
    @autotune([Config({"B": 1}), Config({"B": 2})], key=[], warmup=0.1, rep=0.1)
    @jit
    def kernel(out, B: tl.constexpr):
        tl.store(out, B)

    out = np.zeros(1, "f")
    kernel[1](out)
    assert out[0] in (1, 2)
    assert all(len(timing) == 3 for timing in kernel.configs_timings.values())


# --- the disk -------------------------------------------------------------------------------------


def test_choices_are_kept_on_disk(cache: Path) -> None:
    clock = Clock({16: 3.0, 32: 1.0})
    scaled(clock)[1](clock.out, 7)
    again = scaled(clock)
    again[1](clock.out, 7)
    assert clock.measured == [16, 32]
    assert clock.out[0] == 32
    assert len(again.configs_timings) == 2
    (file,) = (cache / "autotune").iterdir()
    options = "num_warps: 4, num_ctas: 1, num_stages: 3"
    assert json.loads(file.read_text())["timings"] == {
        f"BLOCK: 16, {options}": [3.0] * 3,
        f"BLOCK: 32, {options}": [1.0] * 3,
    }


def test_a_further_configuration_is_measured_alone() -> None:
    clock = Clock({16: 3.0, 32: 2.0})
    scaled(clock)[1](clock.out, 7)
    more = Clock({64: 1.0, 16: 3.0, 32: 2.0})
    kernel = scaled(more)
    kernel[1](more.out, 7)
    assert more.measured == [64]
    assert more.out[0] == 64
    assert [timing[0] for timing in kernel.configs_timings.values()] == [3.0, 2.0, 1.0]
    fewer = Clock({16: 3.0, 32: 2.0})
    scaled(fewer)[1](fewer.out, 7)
    assert fewer.measured == []
    assert fewer.out[0] == 32


def test_launches_with_other_options_are_measured_anew() -> None:
    clock = Clock({16: 3.0, 32: 1.0})
    scaled(clock)[1](clock.out, 7)
    scaled(clock)[1](clock.out, 7, debug=True)
    assert clock.measured == [16, 32] * 2


def test_measuring_in_another_way_is_measuring_anew() -> None:
    clock = Clock({16: 3.0, 32: 1.0})
    for words in ({}, {"rep": 7}, {"use_cuda_graph": True}):
        scaled(clock, **words)[1](clock.out, 7)
    assert len(clock.measured) == 6


@needs_fork
def test_a_kill_keeps_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CPU_THREADS", "1")  # as children of a process have
    clock = Clock({16: 4.0, 32: 3.0, 64: 2.0, 128: 1.0})

    def work() -> None:
        killing = Clock(clock.milliseconds)
        kernel = scaled(killing)

        def bench(fn: Callable[[], object], *, quantiles: Sequence[float]) -> list[float]:
            if len(killing.measured) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return killing(fn, quantiles=quantiles)

        bench.__qualname__, bench.__module__ = Clock.__qualname__, Clock.__module__
        kernel.do_bench = bench
        kernel[1](killing.out, 7)

    assert exit_code_of_child(work) == -signal.SIGKILL
    scaled(clock)[1](clock.out, 7)
    assert clock.measured == [64, 128]
    assert clock.out[0] == 128


def holding(**members: object) -> Callable[[Path], object]:
    """Other members than timings have, under the name of the document."""
    return lambda file: file.write_bytes(sealed({"document": file.stem, **members}))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_text(""),
    "no JSON": lambda file: file.write_text("{"),
    "of an older version": holding(timings=[[0, [1.0]]]),
    "without timings": holding(x=1),
    "no numbers": holding(timings={"a": ["b"]}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_timings_are_measured_again(cache: Path, damage: str) -> None:
    clock = Clock({16: 3.0, 32: 1.0})
    scaled(clock)[1](clock.out, 7)
    (file,) = (cache / "autotune").iterdir()
    DAMAGE[damage](file)
    with pytest.warns(TilewrightWarning, match="is damaged") as told:
        scaled(clock)[1](clock.out, 7)
    assert len(told) == 1
    assert clock.measured == [16, 32] * 2
    scaled(clock)[1](clock.out, 7)
    assert len(clock.measured) == 4


def test_timings_with_hooks_are_kept_if_the_hooks_can_be_told_apart(cache: Path) -> None:
    def double(arguments: dict[str, Any]) -> None:
        arguments["out"][1] = 2

    def triple(arguments: dict[str, Any]) -> None:
        arguments["out"][1] = 3

    clock = Clock({16: 2.0, 32: 1.0})
    for hooks in ((double, triple), (double, triple), (triple, double)):
        configs = [Config({"BLOCK": 16 * i}, pre_hook=hooks[i - 1]) for i in (1, 2)]
        scaled(clock, configs)[1](clock.out, 7)
    assert clock.measured == [16, 32, 16, 32]
    (file,) = (cache / "autotune").iterdir()
    assert "triple" in file.read_text()
    unnamed = [Config({"BLOCK": b}, pre_hook=functools.partial(double)) for b in (16, 32)]
    scaled(clock, unnamed)[1](clock.out, 7)
    scaled(clock, unnamed)[1](clock.out, 7)
    assert clock.measured[4:] == [16, 32, 16, 32]


def test_keeping_can_be_turned_off(cache: Path) -> None:
    clock = Clock({16: 3.0, 32: 1.0})
    scaled(clock, cache_results=False)[1](clock.out, 7)
    with settings().autotuning.scope(cache=False):
        scaled(clock)[1](clock.out, 7)
    assert not (cache / "autotune").exists()
    scaled(clock, cache_results=True)[1](clock.out, 7)
    with settings().cache.scope(always_compile=True):
        scaled(clock)[1](clock.out, 7)
    assert len(clock.measured) == 8


# --- what cannot run ------------------------------------------------------------------------------


def test_configurations_that_do_not_fit_are_passed_over() -> None:
    def bench(fn: Callable[[], object], *, quantiles: Sequence[float]) -> list[float]:
        fn()
        if out[0] == 16:
            raise errors.OutOfResources(2, 1, "shared memory")
        if out[0] == 32:
            raise errors.PTXASError("too many registers")
        return [5.0, 4.0, 6.0]

    out = np.zeros(1, "f")
    configs = [Config({"BLOCK": block}) for block in (4, 16, 32, 64)]

    @autotune(configs, key=[], do_bench=bench)
    @jit
    def kernel(out, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK > 8, "too small")
        tl.store(out, BLOCK)

    kernel[1](out)
    assert out[0] == 64
    assert [timing[0] for timing in kernel.configs_timings.values()] == [float("inf")] * 3 + [5.0]


def test_nothing_fits() -> None:
    @autotune([Config({"BLOCK": 1}), Config({"BLOCK": 2})], key=[])
    @jit
    def kernel(out, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK > 8, "too small")

    with pytest.raises(errors.AutotunerError, match="no configuration of kernel can run"):
        kernel[1](np.zeros(1, "f"))


def test_mistakes_are_no_reason_to_pass_over() -> None:
    @autotune([Config({"BLOCK": 0}), Config({"BLOCK": 4})], key=[])
    @jit
    def kernel(out, BLOCK: tl.constexpr):
        tl.arange(0, BLOCK)

    with pytest.raises(errors.InvalidValue):
        kernel[1](np.zeros(1, "f"))


def test_that_nothing_fits_is_told_again_with_the_reason() -> None:
    for _ in range(2):

        @autotune([Config({"BLOCK": 1}), Config({"BLOCK": 2})], key=[])
        @jit
        def kernel(out, BLOCK: tl.constexpr):
            tl.static_assert(BLOCK > 8, "too small")

        with pytest.raises(
            errors.AutotunerError, match="can run: static assertion failed: too small"
        ):
            kernel[1](np.zeros(1, "f"))


# --- pruning --------------------------------------------------------------------------------------


def test_early_pruning() -> None:
    clock = Clock({16: 1.0, 32: 2.0, 64: 3.0})
    seen: list[Any] = []

    def early(configs: list[Config], named: dict[str, Any], **words: Any) -> list[Config]:
        seen.append(({**named, "out": None}, words))
        return configs[1:]

    pruning = {"early_config_prune": early}
    launch = {"grid": 1, "warmup": False}
    scaled(clock, prune_configs_by=pruning)[1](clock.out, 7, num_warps=2)
    assert clock.measured == [32, 64]
    assert seen == [({"out": None, "n": 7}, {"num_warps": 2, **launch})]
    # keywords are no positional arguments
    scaled(clock, prune_configs_by=pruning)[1](clock.out, n=7)
    assert seen[1] == ({"out": None}, {"n": 7, **launch})
    scaled(clock, prune_configs_by=pruning).warmup(clock.out, n=7, grid=1)
    assert seen[2] == ({"out": None}, {"n": 7, "grid": 1, "warmup": True})


@pytest.mark.parametrize(
    ("top_k", "measured"), [(2, [64, 32]), (0.5, [64, 32]), (1.0, [64, 32, 16, 8])]
)
def test_pruning_by_a_model(top_k: float, measured: list[int]) -> None:
    clock = Clock({8: 1.0, 16: 1.0, 32: 2.0, 64: 3.0})

    def model(BLOCK: int, n: int, **_: Any) -> float:
        return n / BLOCK

    pruning = {"perf_model": model, "top_k": top_k}
    scaled(clock, prune_configs_by=pruning)[1](clock.out, 64)
    assert clock.measured == measured


def test_pruning_to_one_or_none() -> None:
    clock = Clock({16: 1.0, 32: 2.0})
    one = scaled(clock, prune_configs_by={"early_config_prune": lambda c, _, **__: c[1:]})
    one[1](clock.out, 7)
    assert clock.measured == []
    assert clock.out[0] == 32
    none = scaled(clock, prune_configs_by={"early_config_prune": lambda *_, **__: []})
    with pytest.raises(errors.AutotunerError, match="returned no configuration"):
        none[1](clock.out, 7)
    with pytest.raises(errors.UnknownName, match="early_config_prune"):
        scaled(clock, prune_configs_by={"early": None})


# --- arrays that trials change, hooks -------------------------------------------------------------


def accumulating(**words: Any) -> tuple[Autotuner, Clock]:
    clock = Clock({1: 2.0, 2: 1.0})

    @autotune([Config({"STEP": 1}), Config({"STEP": 2})], key=[], do_bench=clock, **words)
    @jit
    def kernel(out, total, maybe, STEP: tl.constexpr):
        tl.store(out, STEP)
        tl.store(total, tl.load(total) + STEP)

    return kernel, clock


def test_reset_to_zero() -> None:
    kernel, clock = accumulating(reset_to_zero=["total", "maybe"])
    total = np.full(1, 5.0, "f")
    kernel[1](clock.out, total, None)
    assert total[0] == 2
    kernel[1](clock.out, total, None)
    assert total[0] == 4


def test_restore_value() -> None:
    kernel, clock = accumulating(restore_value=("total", "maybe"))
    total = np.full(1, 5.0, "f")
    kernel[1](clock.out, total, None)
    assert total[0] == 7


def test_only_arrays_can_be_reset() -> None:
    kernel, clock = accumulating(reset_to_zero=["maybe"])
    with pytest.raises(errors.UnsupportedArgument, match="'maybe' is an int"):
        kernel[1](clock.out, np.zeros(1, "f"), 3)


def test_hooks_of_the_tuner() -> None:
    seen: list[tuple[Any, ...]] = []

    def before(arguments: dict[str, Any], reset_only: bool = False) -> None:
        seen.append(("before", arguments.get("STEP"), reset_only))

    def after(arguments: dict[str, Any], exception: Exception | None) -> None:
        seen.append(("after", arguments["STEP"], exception))

    kernel, clock = accumulating(pre_hook=before, post_hook=after)
    kernel[1](clock.out, np.zeros(1, "f"), None)
    assert seen == [
        ("before", 1, False),
        ("after", 1, None),
        ("before", 2, False),
        ("after", 2, None),
        ("before", None, True),
    ]


def test_the_hook_of_a_configuration_runs_before_each_launch() -> None:
    seen: list[int] = []

    def hook(arguments: dict[str, Any]) -> None:
        seen.append(arguments["BLOCK"])
        arguments["out"][1] = 9

    clock = Clock({16: 2.0, 32: 1.0})
    kernel = scaled(clock, [Config({"BLOCK": b}, pre_hook=hook) for b in (16, 32)])
    kernel[1](clock.out, 7)
    kernel[1](clock.out, 7)
    assert seen == [16, 32, 32, 32]
    assert clock.out[1] == 9


# --- names, output, combinations ------------------------------------------------------------------


def test_names_are_checked() -> None:
    clock = Clock({16: 2.0, 32: 1.0})
    with pytest.raises(errors.UnknownArgument, match="'m'"):
        autotune([Config({})], key=["m"])(scaled(clock).base_fn)
    with pytest.raises(errors.UnknownArgument, match="'totl'"):
        accumulating(reset_to_zero=["totl"])
    with pytest.raises(errors.AutotunerError, match="'BLOCK' is given in the launch"):
        scaled(clock)[1](clock.out, 7, BLOCK=16)


def test_the_choice_is_printed_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock({16: 2.0, 32: 1.0})
    scaled(clock)[1](clock.out, 7)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("TILEWRIGHT_PRINT_AUTOTUNING", "1")
    scaled(clock)[1](clock.out, 8)
    printed = capsys.readouterr().out
    assert printed.startswith("Autotuning of kernel took ")
    first, *rows = printed.splitlines()
    assert "BLOCK: 32, num_warps: 4, num_ctas: 1, num_stages: 3" in first
    assert rows == ["    1.0000 ms  1.00x  BLOCK: 32", "    2.0000 ms  2.00x  BLOCK: 16"]


def test_configs() -> None:
    config = Config({"B": 2}, num_warps=8, maxnreg=32)
    assert config.all_kwargs() == {
        "B": 2, "num_warps": 8, "num_ctas": 1, "num_stages": 3, "maxnreg": 32,
    }  # fmt: skip
    assert config == Config({"B": 2}, num_warps=8, maxnreg=32)
    assert config != Config({"B": 2}, num_warps=8)
    assert len({config, Config({"B": 2}, 8, maxnreg=32), Config({"B": 3})}) == 2
    assert repr(config) == "Config(B: 2, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: 32)"


@pytest.mark.parametrize("tune_first", [False, True])
def test_heuristics_stack_in_either_order(tune_first: bool) -> None:
    clock = Clock({16: 2.0, 32: 1.0})
    configs = [Config({"BLOCK": 16}), Config({"BLOCK": 32})]

    @jit
    def kernel(out, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
        tl.store(out, BLOCK)
        tl.store(out + 1, 1.0 if EVEN else 0.0)

    tuned = autotune(configs, key=["n"], do_bench=clock)
    if tune_first:
        rule = heuristics({"EVEN": lambda args: args["n"] % 32 == 0})
        both = rule(tuned(kernel))
    else:
        rule = heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
        both = tuned(rule(kernel))
    assert both.base_fn is kernel
    assert both.__name__ == "kernel"
    both[1](clock.out, 64)
    assert clock.out[:2].tolist() == [32, 1]
    both[1](clock.out, 65)
    assert clock.out[:2].tolist() == [32, 0]


def test_heuristics_see_those_before_them() -> None:
    @heuristics({"A": lambda args: args["n"] + 1, "B": lambda args: args["A"] * 2})
    @jit
    def kernel(out, n, A: tl.constexpr, B: tl.constexpr):
        tl.store(out, A * 100 + B)

    out = np.zeros(1, "f")
    compiled = kernel[1](out, 4)
    assert out[0] == 510
    assert kernel.warmup(out, 4, grid=(1,)) is compiled


def test_warmup_compiles_every_configuration() -> None:
    clock = Clock({16: 2.0, 32: 1.0})
    kernels = scaled(clock).warmup(clock.out, 7)
    assert len({kernel.hash for kernel in kernels}) == 2
    assert clock.measured == []


def test_interpreted_kernels_are_not_measured() -> None:
    clock = Clock({16: 2.0, 32: 1.0})

    @autotune([Config({"B": 16}), Config({"B": 32})], key=[], do_bench=clock)
    @jit(interpret=True)
    def kernel(out, B: tl.constexpr):
        tl.store(out, B)

    kernel[1](clock.out)
    assert clock.out[0] == 16
    assert clock.measured == []
