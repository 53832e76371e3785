"""Hooks around compiling and loading, names of kernels, compiling in other threads."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.runtime.kernels import launch_increment, new_increment, title_of
from tilewright.language import TensorDescriptor
from tilewright.runtime import (
    AsyncCompileMode,
    Config,
    FutureKernel,
    autotune,
    jit,
    launch_enter,
    launch_exit,
    profiled_launches,
)
from tilewright.support import TilewrightWarning, errors, kernel_hooks, settings


@pytest.fixture(autouse=True)
def without_hooks() -> Generator[None]:
    yield
    for name in ("listener", "jit_cache", "jit_post_compile", "stages", "tuned"):
        setattr(kernel_hooks, name, None)
    kernel_hooks.unload.clear()
    kernel_hooks.load_start.clear()
    kernel_hooks.load_end.clear()


# --- names ----------------------------------------------------------------------------------------


def test_repr_names_the_kernel_in_metadata_and_machine_code() -> None:
    seen: list[Any] = []

    def named(specialization: Any) -> str:
        seen.append(specialization)
        return f"add[{specialization.constants['BLOCK']}]"

    compiled = launch_increment(new_increment(repr=named))
    assert compiled.name == compiled.metadata.name == "add_8_"
    assert "@add_8_(" in compiled.asm["ttir"]
    assert "add_8_" in compiled.asm["llir"]
    assert seen[0].constants == {"BLOCK": 8}
    assert seen[0].signature == {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}


def test_kernels_that_differ_in_their_names_alone_are_compiled_apart() -> None:
    first = launch_increment(new_increment(repr=lambda specialization: "one"))
    second = launch_increment(new_increment(repr=lambda specialization: "two"))
    assert (first.name, second.name) == ("one", "two")
    assert first.hash != second.hash
    assert launch_increment(new_increment()).name == "add"


# --- hooks ----------------------------------------------------------------------------------------


def test_hooks_around_compiling_have_triton_s_arguments() -> None:
    calls: list[tuple[str, dict[str, Any]]] = []
    kernel_hooks.jit_cache = lambda **given: calls.append(("before", given))
    kernel_hooks.jit_post_compile = lambda **given: calls.append(("after", given))
    kernel = new_increment()
    launch_increment(kernel, num_warps=2)
    launch_increment(kernel, num_warps=2)
    kernel.warmup(tl.float32, tl.float32, 1, grid=(1,), BLOCK=16)
    assert [when for when, _ in calls] == ["before", "after"] * 2
    given = calls[0][1]
    assert given["fn"].jit_function is kernel
    assert (given["fn"].module, given["fn"].name) == (
        new_increment.__module__,
        "new_increment.<locals>.add",
    )
    assert given["repr"].startswith("new_increment.<locals>.add[num_warps=2, num_ctas=1, ")
    assert given["repr"].endswith("(x: *fp32, out: *fp32, n: i32, BLOCK: constexpr)")
    assert (given["is_manual_warmup"], given["already_compiled"]) == (False, False)
    compiled = given["compile"]
    assert compiled["key"] == given["key"] != calls[2][1]["key"]
    assert compiled["signature"] == {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    assert compiled["constants"] == {"BLOCK": 8}
    assert (compiled["num_warps"], compiled["device"], compiled["is_warmup"]) == (2, 0, False)
    assert compiled["configs"] == [
        {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
    ]
    warm = calls[2][1]["compile"]
    assert (warm["is_warmup"], warm["constants"]) == (True, {"n": 1, "BLOCK": 16})


def test_what_a_hook_is_told_compiles_the_variant_again() -> None:
    told: list[str] = []
    kernel_hooks.jit_cache = lambda **given: told.append(given["compile"]["specialization_data"])
    kernel = new_increment()
    compiled = launch_increment(kernel)
    assert json.loads(told[0])["constexprs"] == {"BLOCK": 8}
    again = new_increment().preload(told[0])
    assert (
        again.asm["ttir"] == compiled.asm["ttir"].replace(", non_negative = 1", "")
        or again.parameters == compiled.parameters
    )


def test_a_hook_may_keep_a_variant_from_being_compiled() -> None:
    kernel_hooks.jit_cache = lambda **given: True
    kernel = new_increment()
    assert launch_increment(kernel) is None
    assert kernel.warmup(tl.float32, tl.float32, 5, grid=(1,), BLOCK=8) is None
    kernel_hooks.jit_cache = None
    assert launch_increment(kernel).name == "add"


def test_loading_is_surrounded_by_hooks() -> None:
    calls: list[tuple[Any, ...]] = []
    kernel_hooks.load_start.add(lambda *given: calls.append(("start", *given)))
    kernel_hooks.load_end.add(lambda *given: calls.append(("end", *given)))
    compiled = launch_increment(new_increment())
    start, end = calls
    files = start[4]
    assert start == ("start", None, None, "add", files, compiled.hash)
    assert end == ("end", compiled.module, compiled.function, "add", files, compiled.hash)
    assert Path(files["add.ttir"]).read_text() == compiled.asm["ttir"]
    stages = {stage.extension for stage in compiled.backend.stages}
    assert {Path(name).suffix[1:] for name in files} == {"json", *stages}


def test_a_listener_hears_of_each_compilation_and_its_times() -> None:
    heard: list[dict[str, Any]] = []
    kernel_hooks.listener = lambda **given: heard.append(given)
    with settings().cache.scope(always_compile=True):
        compiled = launch_increment(new_increment())
    assert heard[0]["src"] is compiled.src
    assert heard[0]["metadata"]["name"] == "add"
    assert heard[0]["cache_hit"] is False
    assert Path(heard[0]["metadata_group"]["add.llir"]).read_text() == compiled.asm["llir"]
    times = heard[0]["times"]
    assert [stage for stage, _ in times.lowering_stages] == [
        s.extension for s in compiled.backend.stages
    ]
    assert times.ir_initialization > 0
    assert times.total_lowering == sum(time for _, time in times.lowering_stages) > 0
    assert times.total >= times.ir_initialization + times.total_lowering
    launch_increment(new_increment())
    assert heard[1]["cache_hit"] is True
    times = heard[1]["times"]
    assert times.total == times.ir_initialization > 0
    assert (times.total_lowering, times.store_results, times.lowering_stages) == (0, 0, [])


def test_hooks_hear_what_a_descriptor_describes() -> None:
    @jit
    def total(desc, padded, out):
        both = tl.sum(desc.load([0, 0])) + tl.sum(padded.load([0]))
        tl.store(out, both)

    told: list[dict[str, Any]] = []
    kernel_hooks.jit_cache = lambda **given: told.append(given)
    matrix, row = np.ones((8, 8), np.float32), np.ones(16, np.float16)
    described = TensorDescriptor.from_tensor(matrix, [4, 8])
    padded = TensorDescriptor(row, [16], [1], [8], padding="nan")
    out = np.zeros(1, np.float32)
    compiled = total[(1,)](described, padded, out)
    assert out[0] == 40
    (given,) = told
    signature = {
        "desc": "tensordesc<fp32[4, 8]>", "padded": "tensordesc<fp16[8],nan>", "out": "*fp32",
    }  # fmt: skip
    assert given["compile"]["signature"] == signature
    assert "desc: tensordesc<fp32[4, 8]>" in given["repr"]
    kernel_hooks.jit_cache = None
    again = total.preload(given["compile"]["specialization_data"])
    assert again.parameters == compiled.parameters


def test_a_hook_hears_of_a_kernel_that_is_no_longer_used() -> None:
    calls: list[tuple[Any, ...]] = []
    gc.collect()  # kernels of other tests
    kernel_hooks.unload.add(lambda *given: calls.append(given))
    never_loaded = new_increment().warmup(tl.float32, tl.float32, 5, grid=(1,), BLOCK=8)
    compiled = launch_increment(new_increment())
    expected = (compiled.module, compiled.function, "add", compiled.hash)
    del never_loaded, compiled
    gc.collect()
    assert [(*given[:3], given[4]) for given in calls] == [expected]
    assert Path(calls[0][3]["add.ttir"]).exists()


def test_a_hook_may_replace_stages_of_a_compilation() -> None:
    seen: list[Any] = []

    def two_for_one(
        backend: Any, stages: dict[str, Any], options: Any, language: Any, capability: Any
    ) -> None:
        seen.append((backend.name, list(stages), options.num_warps, language.name))
        lower = stages["llir"]

        def changed(artifact: Any, metadata: dict[str, Any]) -> str:
            assert metadata["name"] == "add"
            return lower(artifact, metadata).replace("0x3FF0000000000000", "0x4000000000000000")

        stages["llir"] = changed

    kernel_hooks.stages = two_for_one
    x, out = np.arange(5, dtype="f"), np.zeros(5, "f")
    compiled = new_increment()[(1,)](x, out, 5, BLOCK=8)
    np.testing.assert_array_equal(out, x + 2)
    names = [stage.extension for stage in compiled.backend.stages]
    assert seen == [(compiled.backend.name, names, 4, "TRITON")]
    kernel_hooks.stages = None
    launch_increment(new_increment())  # what a hook has changed is not kept on disk


def test_a_hook_leaves_no_stage_out() -> None:
    kernel_hooks.stages = lambda backend, stages, *more: stages.popitem()
    with pytest.raises(errors.InvalidOption, match="must be left with the stages .*llir"):
        launch_increment(new_increment())


def test_a_listener_hears_what_the_autotuner_has_chosen() -> None:
    heard: list[dict[str, Any]] = []
    kernel_hooks.tuned = lambda **given: heard.append(given)
    configs = [Config({"BLOCK": 8}), Config({"BLOCK": 16})]
    for _ in range(2):
        kernel = new_increment()
        tuned = autotune(configs, key=["n"], cache_results=True, warmup=1, rep=1)(kernel)
        tuned[(1,)](np.arange(5, dtype="f"), np.zeros(5, "f"), 5)
        tuned[(1,)](np.arange(5, dtype="f"), np.zeros(5, "f"), 5)
        assert heard[-1]["fn"] is kernel
        assert heard[-1]["best_config"] is tuned.best_config
        assert heard[-1]["configs_timings"].keys() == set(configs)
    assert [(h["key"], h["cache_hit"]) for h in heard] == [
        ((5, "float32", "float32"), False),
        ((5, "float32", "float32"), True),
    ]
    assert heard[0]["duration"] > 0 == heard[1]["duration"]


def test_a_compiled_kernel_is_launched_as_triton_s_launchers_do() -> None:
    def work(grid: Any, metadata: Any, arguments: dict[str, Any]) -> dict[str, object]:
        return {"bytes": arguments["n"] * 8, "warps": metadata.num_warps}

    compiled = launch_increment(new_increment(launch_metadata=work))
    x, out = np.arange(5, dtype="f"), np.zeros(5, "f")
    seen: list[tuple[str, Any]] = []
    told = compiled.launch_metadata((1, 1, 1), 0, x, out, 5, 8)
    compiled.run(
        1, 1, 1, 0, compiled.function, compiled.packed_metadata, told,
        lambda metadata: seen.append(("enter", metadata.get())),
        lambda metadata: seen.append(("exit", metadata.get())),
        x, out, 5, 8,
    )  # fmt: skip
    np.testing.assert_array_equal(out, x + 1)
    assert [when for when, _ in seen] == ["enter", "exit"]
    description = seen[0][1]
    assert (description["name"], description["grid"], description["stream"]) == (
        "add",
        (1, 1, 1),
        0,
    )
    assert (description["bytes"], description["warps"]) == (40, 4)
    compiled.run(1, 1, 1, 0, None, None, None, None, None, x, x, 5, 8)
    np.testing.assert_array_equal(x, out)


# --- compiling in other threads -------------------------------------------------------------------


def test_kernels_are_compiled_in_threads() -> None:
    kernel = new_increment()
    with ThreadPoolExecutor(2) as pool, AsyncCompileMode(pool) as mode:
        futures = [
            kernel.warmup(tl.float32, tl.float32, 5, grid=(1,), BLOCK=block)
            for block in (8, 16, 32, 16)
        ]
        assert all(isinstance(future, FutureKernel) for future in futures)
        assert futures[1] is futures[3]
        assert len(mode.raw_futures) == 3
    assert [f.result().asm["ttir"].count("tile<16xi32>") > 0 for f in futures] == [
        False, True, False, True,
    ]  # fmt: skip
    assert launch_increment(kernel).name == "add"
    assert kernel.warmup(tl.float32, tl.float32, 5, grid=(1,), BLOCK=8).name == "add"


def test_autotuners_are_warmed_up_in_threads() -> None:
    tuned = autotune([Config({"BLOCK": 8}), Config({"BLOCK": 16})], key=[])(new_increment())
    with ThreadPoolExecutor(2) as pool, AsyncCompileMode(pool):
        futures = tuned.warmup(tl.float32, tl.float32, 5, grid=(1,))
    assert [future.result().name for future in futures] == ["add", "add"]


@jit
def mistaken(out):
    tl.store(out + tl.arange(0, 2097152), 0)


def test_mistakes_are_raised_at_the_end_of_the_block_or_ignored() -> None:
    with pytest.raises(errors.BlockTooLarge), ThreadPoolExecutor(1) as pool:  # noqa: SIM117
        with AsyncCompileMode(pool):
            mistaken.warmup(tl.float32, grid=(1,))
    with ThreadPoolExecutor(1) as pool, AsyncCompileMode(pool, ignore_errors=True):
        future = mistaken.warmup(tl.float32, grid=(1,))
    assert future.result(ignore_errors=True) is None


def test_modes_do_not_nest() -> None:
    with ThreadPoolExecutor(1) as pool, AsyncCompileMode(pool):
        with pytest.raises(errors.InvalidOption, match="a mode is active already"):
            AsyncCompileMode(pool).__enter__()
    with ThreadPoolExecutor(1) as pool, AsyncCompileMode(pool) as mode:
        assert mode.raw_futures == []


def test_a_constexpr_that_is_not_to_be_specialized_is_pointed_out() -> None:
    with pytest.warns(TilewrightWarning, match=r"'BLOCK' of add is a constexpr") as caught:
        jit(do_not_specialize=["BLOCK", "n"])(new_increment().fn)
    assert caught[0].filename == __file__


@pytest.mark.torch
def test_launches_in_a_block_are_in_torch_s_profile() -> None:
    torch = pytest.importorskip("torch")
    kernel = new_increment()
    x, out = torch.arange(5, dtype=torch.float32), torch.zeros(5)

    def names(profiled: bool) -> set[str]:
        with torch.profiler.profile() as profile:
            for _ in range(3):  # by Python, then by machine code
                kernel[(1,)](x, out, 5, 8)
            if profiled:
                with profiled_launches():
                    kernel[(1,)](x, out, 5, 8)
        return {event.key for event in profile.key_averages()}

    title = title_of(kernel)
    assert title not in names(profiled=False)
    assert title in names(profiled=True)
    assert not launch_enter
    assert not launch_exit


@pytest.mark.torch
def test_launches_in_a_block_are_ranges_of_nvtx(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    told: list[str] = []

    @contextmanager
    def nvtx_range(name: str) -> Generator[None]:
        told.append(f"begin {name}")
        yield
        told.append(f"end {name}")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda.nvtx, "range", nvtx_range)
    kernel = new_increment()
    x, out = torch.arange(5, dtype=torch.float32), torch.zeros(5)
    with profiled_launches():
        kernel[(1,)](x, out, 5, 8)
    kernel[(1,)](x, out, 5, 8)
    title = title_of(kernel)
    assert told == [f"begin {title}", f"end {title}"]


def test_ranges_of_the_package_nvtx_need_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    @contextmanager
    def annotate(message: str) -> Generator[None]:
        told.append(f"begin {message}")
        yield
        told.append("end")

    nvtx = ModuleType("nvtx")
    vars(nvtx)["annotate"] = annotate
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    monkeypatch.setitem(sys.modules, "torch", None)
    kernel = new_increment()
    with profiled_launches():
        launch_increment(kernel)
        launch_increment(kernel)
    launch_increment(kernel)
    title = f"begin {title_of(kernel)}"
    assert told == [title, "end", title, "end"]
    assert not launch_enter


def test_without_torch_and_nvtx_ranges_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(errors.ToolMissing, match=r"tilewright\[profile\]"), profiled_launches():
        pass
    assert not launch_enter
