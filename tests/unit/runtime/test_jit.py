"""Launching: results, variants, keywords, warm-up, hooks, threads, attributes."""

# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportUndefinedVariable=false

from __future__ import annotations

import inspect
import os
import threading
import timeit
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.runtime.kernels import add, new_empty, new_value
from tilewright.compiler import CompiledKernel
from tilewright.runtime import JITFunction, MockTensor, cdiv, driver, jit, launch_hooks
from tilewright.support import (
    ListRecorder,
    VariantAdded,
    errors,
    recording,
    settings,
)

Point = namedtuple("Point", "x y")
FACTOR = tl.constexpr(3)


@pytest.fixture(autouse=True)
def cpu() -> Iterator[None]:
    """Launches without arrays go to the CPU."""
    driver.set_active_to_cpu()
    yield
    driver.reset_active()


def reasons(launches: Callable[[], object]) -> list[str]:
    """Why each new variant was needed."""
    events = ListRecorder()
    with recording(events):
        launches()
    return [event.reason for event in events.of(VariantAdded)]


def test_results_and_what_a_launch_returns() -> None:
    x, y = np.arange(1000, dtype="f"), np.ones(1000, "f")
    out = np.zeros_like(x)
    kernel = add[lambda meta: (cdiv(meta["n"], meta["BLOCK"]),)](x, y, out, 1000, BLOCK=128)
    assert np.array_equal(out, x + y)
    assert isinstance(kernel, CompiledKernel)
    assert kernel is add[8](x, y, out, 1000, BLOCK=128)
    assert kernel is add.run(x, y, out, 1000, 128, grid=[8])
    assert kernel is not add[8](x, y, out, 992, BLOCK=128)


@pytest.mark.parametrize("grid", [2, (2,), [2], (2, 1), (2, 1, 1), np.int64(2), (np.int32(2),)])
def test_forms_of_a_grid(grid: object) -> None:
    x = np.arange(32, dtype="f")
    out = np.zeros_like(x)
    add[grid](x, x, out, 32, BLOCK=16)
    assert np.array_equal(out, 2 * x)


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("grid", [0, (0,), (3, 0), [1, 0, 2], lambda meta: (meta["number"] - 4,)])
def test_an_empty_grid_launches_nothing(grid: object, interpret: bool) -> None:
    kernel, out = JITFunction(new_value().fn, interpret=interpret), np.zeros(1, "f")
    kernel[grid](out, 4)
    assert out[0] == 0
    kernel[1](out, 4)
    assert out[0] == 4


def test_a_compiled_kernel_takes_the_grids_of_a_launch() -> None:
    out = np.zeros(1, "f")
    kernel = new_value()[0](out, 4)
    for empty in (0, (0,), (2, 0), [1, 1, 0]):
        kernel[empty](out, 5)
    kernel.launch(1, 0, 1, out, 5)
    assert out[0] == 0
    kernel[np.int64(1)](out, 5)
    assert out[0] == 5
    locked = np.zeros(1, "f")
    locked.flags.writeable = False
    with pytest.raises(errors.ReadOnlyArray, match="'#0' is a read-only array, but value stores"):
        kernel[1](locked, 5)
    with pytest.raises(errors.UnsupportedArgument, match="argument '#0' is a str"):
        kernel[1]("out", 5)
    for wrong in (-1, (1, -1), (1, 1, 1, 1), (), "all"):
        with pytest.raises(errors.BadGrid):
            kernel[wrong](out, 5)
    with pytest.raises(errors.BadGrid):
        kernel.launch(1, 1, -1, out, 5)


def test_a_grid_function_sees_all_arguments() -> None:
    seen: dict[str, Any] = {}

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.update(meta)
        return (1,)

    value = new_value()
    out = np.zeros(1, "f")
    for _ in range(2):
        seen.clear()
        value[grid](out, number=4, num_warps=2)
        assert seen == {"out": out, "number": 4, "num_warps": 2}


def test_variants_and_why_they_are_made() -> None:
    value = new_value()
    out, wide = np.zeros(4, "f"), np.zeros(4, "d")

    def launches() -> None:
        for number in (3, 5, 16, 32, 8, 24, -3, -16, -8, 1, 2**40, 2.5, True, None):
            if number is not None:
                value[1](out, number)
        value[1](wide, 3)
        value[1](out, 3, num_warps=8)
        value[1](out, 3)

    assert reasons(launches) == [
        "the first launch",
        "number: i32 -> i32/16",
        "number: i32 -> i32/8",
        "number: i32 -> -i32",
        "number: i32 -> -i32/16",
        "number: i32 -> -i32/8",
        "number: i32 -> 1",
        "number: i32 -> i64/16",
        "number: i32 -> fp32",
        "number: i32 -> u1",
        "out: *fp32/16 -> *fp64/16",
        "num_warps: not given -> 8",
    ]


def test_the_log_names_the_argument_and_the_property(capfd: pytest.CaptureFixture[str]) -> None:
    value, out = new_value(), np.zeros(4, "f")
    with settings().compilation.scope(log_recompiles=True):
        for number in (3, 16, 8, -3, 1, 2**40, 2.5):
            value[1](out, number)
        value[1](np.zeros(4, "d"), 3)
        value[1](out, 3, num_warps=8)
    lines = capfd.readouterr().err.splitlines()
    told = [line.partition(" is compiled again: ")[2] for line in lines if "again" in line]
    assert told == [
        "argument 'number' is divisible by 16, and was not",
        "argument 'number' is divisible by 8, and was not",
        "argument 'number' is negative, and was not",
        "argument 'number' is 1, compiled as a constant, and was a run-time i32",
        "argument 'number' is i64, and was i32; argument 'number' is divisible by 16, and was not",
        "argument 'number' is fp32, and was i32; argument 'number' is not negative, and was",
        "argument 'out' is *fp64, and was *fp32",
        "option 'num_warps' is 8, and was not given",
    ]
    assert (
        lines.count("  hint: @jit(do_not_specialize=['number']) makes one variant for all values")
        == 4
    )


def test_unspecialized_parameters() -> None:
    @jit(do_not_specialize=["n"], do_not_specialize_on_alignment=[2])
    def kernel(out, n, m):
        tl.store(out, n + m)

    out = np.zeros(1, np.int32)

    def launches() -> None:
        for n in (1, 2, 8, 16):
            for m in (1, 2, 8, 16):
                kernel[1](out, n, m)
                assert out[0] == n + m

    assert reasons(launches) == ["the first launch", "m: 1 -> i32"]
    assert len(kernel.device_caches[0][0]) == len(kernel.variant_cache.by_key) == 2


def test_annotations_fix_types() -> None:
    @jit
    def kernel(out, n: tl.int64, f: "fp64", p: "*fp32", q: tl.const):  # noqa: F722, F821, UP037
        tl.store(out, tl.load(p) + n + f + tl.load(q))

    x, out = np.full(4, 2.0, "f"), np.zeros(1)
    found = kernel[1](out, 1, 5, x.ctypes.data, x)
    assert out[0] == 10
    assert found.parameters == ("ptr<f64>", "i64", "f64", "ptr<f32>", "ptr<f32, const>")
    assert kernel[1](out, 16, 5, x, x).parameters == found.parameters


def test_constexprs_of_every_kind() -> None:
    @jit
    def kernel(out, A: tl.constexpr, B: tl.constexpr = 2, C=tl.constexpr(3)):  # noqa: B008
        tl.store(out, A * B + C)

    out = np.zeros(1, "f")
    for a, expected in ((2, 7), (True, 5), (1.5, 6), (np.int64(4), 11), (tl.constexpr(5), 13)):
        kernel[1](out, a)
        assert out[0] == expected
    kernel[1](out, 1, B=7, C=1)
    assert out[0] == 8


def test_equal_constants_of_different_type_are_different_variants() -> None:
    @jit
    def kernel(out, A: tl.constexpr):
        tl.store(out, A / 2 if A is True else A + 0.25)

    out = np.zeros(1, "f")
    for a, expected in ((1, 1.25), (True, 0.5), (1.0, 1.25), (float("nan"), np.nan)):
        kernel[1](out, a)
        assert np.array_equal(out[0], np.float32(expected), equal_nan=True)
    assert len(kernel.variant_cache.by_key) == 4
    kernel[1](out, float("nan"))
    assert len(kernel.variant_cache.by_key) == 4


def test_functions_and_dtypes_as_arguments() -> None:
    @jit
    def twice(x):
        return x * 2

    @jit
    def negated(x):
        return -x

    @jit
    def kernel(out, f, dtype: tl.constexpr):
        tl.store(out, f(tl.full((), 3, dtype)).to(tl.float32))

    out = np.zeros(1, "f")
    kernel[1](out, twice, tl.float16)
    assert out[0] == 6
    kernel[1](out, negated, dtype=tl.int8)
    assert out[0] == -3


def test_tuples_named_tuples_and_rest_arguments() -> None:
    @jit
    def kernel(out, pair, point, *rest, SCALE: tl.constexpr = 1):
        total = tl.load(pair[0]) + pair[1] + point.x * point.y
        for i in tl.static_range(len(rest)):
            total += rest[i]
        tl.store(out, total * SCALE)

    x, out = np.full(1, 2.0, "f"), np.zeros(1, "f")
    for _ in range(2):
        kernel[1](out, (x, 5), Point(2, 7))
        assert out[0] == 21
        kernel[1](out, (x, 1), Point(1, 7), 10, 20.0, SCALE=2)
        assert out[0] == 80
    assert len(kernel.variant_cache.by_key) == 2


def test_meta_keywords() -> None:
    @jit
    def kernel(out, **META):
        tl.store(out, META["A"] + META["B"])

    out = np.zeros(1, "f")
    for a, b in ((1, 2), (1.5, 2), (1, True), (True, True)):
        kernel[1](out, A=a, B=b, num_warps=2)
        assert out[0] == a + b
    assert len(kernel.variant_cache.by_key) == 4


def test_options_of_other_devices_are_accepted() -> None:
    value = new_value()
    out = np.zeros(1, "f")
    others = {"waves_per_eu": 2, "matrix_instr_nonkdim": 16, "enable_warp_specialization": True}
    kernel = value[1](out, 2, **others, kpack=1, num_stages=0)
    assert kernel.metadata.num_stages == 0
    assert value[1](out, 2, extern_libs={"a": "b"}).metadata.extern_libs == (("a", "b"),)


def test_a_constexpr_parameter_named_as_an_option_sets_it_by_keyword() -> None:
    @jit
    def kernel(out, num_warps: tl.constexpr):
        tl.store(out, num_warps)

    out = np.zeros(1, "f")
    assert kernel[1](out, num_warps=8).metadata.num_warps == 8
    assert kernel[1](out, 8).metadata.num_warps == 4, "by position it does not, nor in Triton"
    assert out[0] == 8


def test_debug_option_and_setting() -> None:
    out = np.zeros(1, "f")

    @jit(debug=True)
    def always(out):
        tl.device_assert(tl.load(out) > 0, "positive")

    @jit
    def sometimes(out):
        tl.device_assert(tl.load(out) > 0, "positive")

    with pytest.raises(errors.DeviceAssertionFailure, match="positive"):
        always[1](out)
    sometimes[1](out)
    with settings().compilation.scope(debug=True), pytest.raises(errors.DeviceAssertionFailure):
        sometimes[1](out)
    sometimes[1](out)


def test_ir_override(tmp_path: Path) -> None:
    value = new_value()
    out = np.zeros(1, "f")
    text = value[1](out, 2).asm["source"]
    (tmp_path / "value.source").write_text(text.replace("mem.store %out, ", "mem.store %out, "))
    changed = text.replace("arith.cast %number", "arith.constant {value = 9.0} : f32 //")
    (tmp_path / "value.source").write_text(changed)
    value[1](out, 2, ir_override=str(tmp_path / "value.source"))
    assert out[0] == 9


# --- warm-up --------------------------------------------------------------------------------------


def test_warmup_compiles_without_running() -> None:
    value = new_value()
    out = np.zeros(1, "f")
    kernel = value.warmup(out, 3, grid=(1,))
    assert out[0] == 0
    assert value[1](out, 3) is kernel
    assert value.run(out, 5, grid=(1,), warmup=True) is kernel
    assert out[0] == 3


@pytest.mark.parametrize(
    "stand_in", [tl.float32, np.float32, np.dtype("f"), MockTensor(tl.float32)]
)
def test_warmup_with_stand_ins(stand_in: object) -> None:
    value = new_value()
    kernel = value.warmup(stand_in, 3, grid=(1,))
    out = np.zeros(64, "f")
    out = out[-out.ctypes.data // 4 % 16 :]
    assert value[1](out, 3) is kernel
    if isinstance(stand_in, MockTensor):
        with pytest.raises(errors.UnsupportedArgument, match="warmup"):
            value[1](stand_in, 3)


# --- globals --------------------------------------------------------------------------------------


def test_a_changed_global_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    @jit
    def helper():
        return FACTOR

    @jit
    def kernel(out):
        tl.store(out, helper())

    out = np.zeros(1, "f")
    kernel[1](out)
    key = kernel.cache_key
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(3))
    kernel[1](out)
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(4))
    for _ in range(2):
        with pytest.raises(errors.ChangedGlobal, match="'FACTOR' was 3 when kernel was compiled"):
            kernel[1](out)
    monkeypatch.undo()
    kernel[1](out)
    assert kernel.cache_key == key
    assert [name for name, _ in kernel.used_global_vals] == ["FACTOR"]  # not the helper


def test_a_constexpr_that_is_assigned_to_is_noticed() -> None:
    factor = tl.constexpr(3)

    @jit
    def kernel(out):
        tl.store(out, factor)

    out = np.zeros(1, "f")
    for _ in range(3):  # from Python, and through machine code
        kernel[(1,)](out)
    factor.value = 4
    words: list[str] = []
    for _ in range(2):
        with pytest.raises(errors.ChangedGlobal, match="was 3 when kernel was compiled") as caught:
            kernel[(1,)](out)
        words.append(str(caught.value.triton_words))
    assert all(text.endswith("from constexpr[3] to constexpr[4]") for text in words)
    factor.value = 3
    kernel[(1,)](out)
    assert out[0] == 3


def test_a_global_that_is_only_a_default_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    @jit
    def helper(x, by: tl.constexpr = FACTOR):
        return x * by

    @jit
    def kernel(out, number: tl.constexpr = FACTOR):
        tl.store(out, helper(number) + number)

    out = np.zeros(1, "f")
    kernel[(1,)](out)
    before = out[0]
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(9))
    kernel[(1,)](out)
    assert out[0] == before == 3 * 3 + 3
    assert len(kernel.device_caches[0][0]) == 1


# --- hooks ----------------------------------------------------------------------------------------


def test_launch_hooks() -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    def enter(metadata: launch_hooks.LaunchMetadata) -> None:
        seen.append(("enter", metadata.get()))

    def leave(metadata: launch_hooks.LaunchMetadata) -> None:
        seen.append(("exit", metadata.get()))

    def named(proxy: SimpleNamespace) -> str:
        return f"set_{proxy.constants['number']}"

    def flops(grid: object, metadata: Any, arguments: dict[str, Any]) -> dict[str, object]:
        return {"flops32": arguments["number"] * 10}

    @jit(repr=named, launch_metadata=flops)
    def kernel(out, number: tl.constexpr):
        tl.store(out, number)

    out = np.zeros(1, "f")
    kernel[1](out, 4)
    launch_hooks.launch_enter.add(enter)
    launch_hooks.launch_enter.add(enter)
    launch_hooks.launch_exit.add(leave)
    try:
        kernel[2](out, 4)
    finally:
        launch_hooks.launch_enter.remove(enter)
        launch_hooks.launch_exit.remove(leave)
        launch_hooks.launch_exit.remove(leave)
    kernel[1](out, 4)
    assert [name for name, _ in seen] == ["enter", "exit"]
    told = seen[0][1]
    assert (told["name"], told["grid"], told["flops32"]) == ("set_4", (2, 1, 1), 40)


def test_pre_run_hooks() -> None:
    seen: list[object] = []
    value = new_value()
    value.add_pre_run_hook(lambda *args, **words: seen.append((args, words)))
    out = np.zeros(1, "f")
    value[1](out, number=3)
    assert seen == [((out,), {"number": 3})]


# --- the function object --------------------------------------------------------------------------


def test_attributes() -> None:
    assert isinstance(add, JITFunction)
    assert add.__name__ == "add"
    assert add.arg_names == ["x", "y", "out", "n", "BLOCK"]
    assert add.constexprs == [4]
    assert add.src.startswith("def add(x, y, out, n, BLOCK")
    assert isinstance(add.signature, inspect.Signature)
    assert len(add.cache_key) == 64
    assert add.fn.__module__ == "tests.unit.runtime.kernels"
    assert [param.name for param in add.params if param.is_constexpr] == ["BLOCK"]
    assert not add.params[0].has_default


def test_a_kernel_called_like_a_function() -> None:
    with pytest.raises(errors.InvalidOperation, match="outside of a kernel") as caught:
        add(1, 2)
    assert caught.value.hint == "launch it with add[grid](...), or call it from a kernel"


def test_parameters_named_like_the_runtime() -> None:
    @jit
    def launch(grid, self, order, launch, keys, words):
        tl.store(grid, self + order + launch + keys + words)

    out = np.zeros(1, "f")
    launch[1](out, 2, 3, 4, 5, 6)
    launch[1](out, self=2, order=3, launch=4, keys=5, words=6)
    assert out[0] == 20


def test_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    @jit(interpret=True)
    def kernel(out, n, BLOCK: tl.constexpr, **META):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        assert isinstance(i.handle.data, np.ndarray)
        tl.store(out + i, i * META["SCALE"], mask=i < n)

    out = np.zeros(8, np.int32)
    kernel[lambda meta: (cdiv(meta["n"], meta["BLOCK"]),)](out, 6, BLOCK=4, SCALE=2, num_warps=2)
    assert out.tolist() == [0, 2, 4, 6, 8, 10, 0, 0]
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "1")
    assert jit(lambda x: x).interpreted
    assert not jit(interpret=False)(lambda x: x).interpreted


# --- threads, cost --------------------------------------------------------------------------------


def test_threads_compile_a_variant_once() -> None:
    value = new_value()
    found: list[CompiledKernel] = []
    start = threading.Barrier(6)

    def launch() -> None:
        start.wait()
        out = np.zeros(64, "f")
        found.append(value[1](out[-out.ctypes.data // 4 % 16 :], 3))

    threads = [threading.Thread(target=launch) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(map(id, found))) == 1


def test_a_known_variant_takes_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = new_empty()
    x = np.zeros(4, "f")
    ro = x.copy()
    ro.flags.writeable = False
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x, x, x, 1, 2, 16, 2**40), {}),
        ((x, ro, None, 1.5, True, np.int32(3), (1, 2)), {"num_warps": 8}),
        ((x,), {"y": 1, "z": 2, "l": 3, "n": 4, "m": 5, "k": 6}),
    ]
    compiled = [kernel[1](*args, **words) for args, words in calls]

    def slow(*args: object) -> None:
        raise AssertionError("a known variant was looked for again")

    monkeypatch.setattr(kernel.variant_cache, "add_variant", slow)
    for (args, words), expected in zip(calls, compiled, strict=True):
        assert kernel[1](*args, **words) is expected


def test_a_launcher_that_is_kept_goes_the_way_of_later_ones() -> None:
    """It had built a dispatch table at each launch, if it was made before the second one."""
    kernel = new_empty()
    x, y, z = np.zeros(10, "f"), np.zeros(10, "f"), np.zeros(10, "f")
    args = x, y, z, 10, 2, 3, 4
    before_first = kernel[(1,)]
    compiled = before_first(*args)
    before_second = kernel[(1,)]
    ways: set[int] = set()
    for launcher in (before_second, before_first) * 2:
        assert launcher(*args) is compiled
        ways.add(id(kernel._launch))  # pyright: ignore[reportPrivateUsage]
    assert len(ways) == 1


@pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="timing")
def test_a_launch_is_cheap() -> None:
    kernel = new_empty()
    x, y, z = np.zeros(10, "f"), np.zeros(10, "f"), np.zeros(10, "f")
    kernel[(1,)](x, y, z, 10, 2, 3, 4)
    seconds = min(timeit.repeat(lambda: kernel[(1,)](x, y, z, 10, 2, 3, 4), number=2000, repeat=9))
    assert seconds / 2000 < 20e-6


def test_the_variable_for_debugging_wins_over_options(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> JITFunction:
        @jit(debug=False)
        def checked(out):
            tl.device_assert(tl.load(out) > 0, "positive")

        return checked

    out = np.zeros(1, "f")
    check()[(1,)](out, debug=False)
    monkeypatch.setenv("TRITON_DEBUG", "1")
    for options in ({}, {"debug": False}, {"debug": True}):
        with pytest.raises(errors.DeviceAssertionFailure, match="positive"):
            check()[(1,)](out, **options)
    monkeypatch.setenv("TRITON_DEBUG", "0")
    check()[(1,)](out, debug=False)
    with pytest.raises(errors.DeviceAssertionFailure, match="positive"):
        check()[(1,)](out, debug=True)
