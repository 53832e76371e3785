"""Launches of Triton-C kernels are made by machine code, as those of Python kernels are."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.c import CKernel, kernel
from tilewright.runtime import Config, autotune, cdiv, jit
from tilewright.runtime.bench import Bar
from tilewright.support import errors, settings

SCALE = """
__global__ void scale(float *out, const float *x, int n, float factor) {
    int i[BLOCK] = get_program_id(0) * BLOCK + 0 ... BLOCK;
    *?(i < n) (out + i) = *?(i < n) (x + i) * factor;
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    with settings().cache.scope(dir=tmp_path):
        yield tmp_path


def scale(block: Any = 4, **words: Any) -> CKernel:
    return kernel(SCALE, {"BLOCK": block}, warmup=0, rep=0, **words)


def twin() -> Any:
    @jit
    def scale(out, x, n, factor, BLOCK: tl.constexpr = 4):  # pyright: ignore[reportArgumentType]
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n) * factor, i < n)

    return scale


def calls(launch: Callable[[], object], times: int = 5) -> list[str]:
    """The functions written in Python that run during the last of some launches."""
    for _ in range(times - 1):
        launch()
    seen: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        launch()
    finally:
        sys.setprofile(None)
    return seen[1:]  # without `launch` itself


def vectors(n: int = 8) -> tuple[Any, Any]:
    return np.zeros(n, np.float32), np.arange(n, dtype=np.float32)


@pytest.mark.parametrize("block", [4, [4], [4, 8]], ids=["no list", "one value", "two values"])
@pytest.mark.parametrize("warps", [4, [4, 8]], ids=["warps", "list of warps"])
def test_launches_pass_as_little_python_as_those_of_python_kernels(block: Any, warps: Any) -> None:
    k, python = scale(block, num_warps=warps), twin()
    out, x = vectors()
    expected = calls(lambda: python[(2,)](out, x, 8, 2.0))
    assert calls(lambda: k[(2,)](out, x, 8, 2.0)) == expected
    assert len(expected) < 5
    out[:] = 0
    k[(2,)](out, x, 8, 3.0)
    assert (out == 3 * x).all()
    assert k.best_config is not None and k.best_config.kwargs.get("BLOCK", 4) in (4, 8)


def test_without_lists_the_integers_may_change() -> None:
    k = scale()
    out, x = vectors()
    calls(lambda: k[(2,)](out, x, 8, 2.0))
    calls(lambda: k[(2,)](out, x, 7, 2.0))
    before = calls(lambda: k[(2,)](out, x, 6, 2.0))
    for n in (2, 3, 5, 6, 7):
        out[:] = 0
        seen = calls(lambda n=n: k[(2,)](out, x, n, 2.0), 1)
        assert (out == np.where(np.arange(8) < n, 2 * x, 0)).all()
        assert seen == before


def test_with_lists_the_integers_decide_and_a_dropped_choice_is_made_again() -> None:
    k = scale([4, 8])
    out, x = vectors()
    grids: list[int] = []

    def grid(chosen: Any) -> tuple[int]:
        grids.append(chosen["BLOCK"])
        return (cdiv(8, chosen["BLOCK"]),)

    for n in (8, 7, 8, 7, 8, 7, 8, 7):
        out[:] = 0
        k[grid](out, x, n, 2.0)
        assert (out[:n] == 2 * x[:n]).all()
    assert {key[0] for key in k.cache} == {7, 8}
    key = next(key for key in k.cache if key[0] == 7)
    other = next(config for config in k.configs if config != k.cache[key])
    k.cache[key] = other
    k[grid](out, x, 7, 2.0)
    assert k.best_config is other and grids[-1] == other.kwargs["BLOCK"]
    k.cache.clear()
    k[grid](out, x, 7, 2.0)
    assert key in k.cache


def test_the_last_choice_is_told() -> None:
    k = scale([4, 8])
    out, x = vectors()
    for n in (8, 7):
        for _ in range(3):
            k[(2,)](out, x, n, 2.0)
    first, second = k.configs[0], next(c for c in k.configs if c.kwargs["BLOCK"] == 8)
    keys = sorted(k.cache, key=str)
    k.cache[keys[0]], k.cache[keys[1]] = first, second
    for _ in range(3):
        k[(2,)](out, x, 7, 2.0)
        assert k.best_config is first
        k[(2,)](out, x, 8, 2.0)
        assert k.best_config is second


@pytest.mark.parametrize("declared", ["char", "short", "int", "unsigned char", "unsigned short",
                                      "unsigned", "long", "unsigned long"])  # fmt: skip
def test_machine_code_refuses_what_the_declaration_does(declared: str) -> None:
    name = declared.rpartition(" ")[2].replace("unsigned", "int")
    bits = {"char": 8, "short": 16, "int": 32, "long": 64}[name]
    low = 0 if "unsigned" in declared else -(1 << bits - 1)
    high = low + (1 << bits) - 1
    source = f"__global__ void k({declared} *out, {declared} x) {{ *out = x; }}"
    k = kernel(source)
    out = np.zeros(1, f"{'u' if 'unsigned' in declared else 'i'}{bits // 8}")
    for number in [
        0,
        5,
        16,
        24,
        low,
        high,
        high - 15,
        high - 7,
        1,
        *(max(low, -n) for n in (5, 16, 8)),
    ] * 3:
        k[(1,)](out, number)
        assert out[0] == number
    for number in (low - 1, high + 1, low - 16, high + 17, 1 << 64):
        with pytest.raises(errors.UnsupportedArgument, match="too large"):
            k[(1,)](out, number)


def test_machine_code_checks_multiples_and_alignment() -> None:
    source = """
        __global__ void k(int *out __aligned(8), int n __multipleof(24)) { *out = n; }
    """
    k = kernel(source)
    room = np.zeros(8, np.int32)
    start = (-room.ctypes.data % 8) // 4
    for n in (24, 48, 0, -24) * 3:
        k[(1,)](room[start:], n)
        assert room[start] == n
    with pytest.raises(errors.UnsupportedArgument, match="a multiple of 24"):
        k[(1,)](room[start:], 32)
    with pytest.raises(errors.UnsupportedArgument, match="not aligned to 8 bytes"):
        k[(1,)](room[start + 1 :], 48)


def test_integers_are_specialized_as_in_python() -> None:
    k = kernel("__global__ void k(int *out, long n) { *out = n; }")
    out = np.zeros(4, np.int32)
    heads = {n: k[(1,)](out, n).asm["ttir"].partition("%n: ")[2].partition(")")[0]
             for n in (5, 8, -24, 16, 1000)}  # fmt: skip
    eight = "i64 {multiple_of = 8, non_negative = 1}"
    assert heads == {
        5: "i64 {non_negative = 1}",
        8: eight,
        -24: "i64 {multiple_of = 8}",
        16: "i64 {multiple_of = 16, non_negative = 1}",
        1000: eight,
    }


def test_arguments_that_are_converted() -> None:
    source = "__global__ void k(double *out, double x, bool b, int n) { *out = b ? x : -n; }"
    k = kernel(source)
    out = np.zeros(1)
    for _ in range(4):
        for x, b, n, expected in (
            (2.5, True, 3, 2.5), (7, True, 3, 7), (1, 1, 3, 1), (np.float32(0.5), True, 1, 0.5),
            (2.5, False, 3, -3), (2.5, 0, True, -1), (2.5, False, 2.0, -2), (True, True, 1, 1),
            (2.5, False, False, 0), (2.5, None is None, np.int32(4), 2.5), (2**60, 5, 1, 2**60),
        ):  # fmt: skip
            k[(1,)](out, x, b, n)
            assert out[0] == expected
        with pytest.raises(errors.UnsupportedArgument):
            k[(1,)](out, out, True, 1)
        with pytest.raises(errors.UnsupportedArgument):
            k[(1,)](2.5, 1.0, True, 1)


@pytest.mark.parametrize("number", [2.5, np.float32(2.5), float("nan"), float("inf")])
def test_floats_that_are_no_integers_are_refused(number: float) -> None:
    k = kernel("__global__ void k(int *out, int n) { *out = n; }")
    with pytest.raises(errors.UnsupportedArgument, match="pass an integer"):
        k[(1,)](np.zeros(1, np.int32), number)


def test_addresses_and_arrays_of_another_type() -> None:
    k = scale()
    out, x = vectors()
    for _ in range(4):
        k[(2,)](out.ctypes.data, x, 8, 2.0)
        assert (out == 2 * x).all()
        out[:] = 0
        with pytest.raises(errors.UnsupportedArgument, match="double array"):
            k[(2,)](out, x.astype(np.float64), 8, 2.0)
        k[(2,)](out, x, 8, 2.0)
        assert (out == 2 * x).all()


def test_tuned_python_kernels_are_launched_so_too() -> None:
    python = twin()
    tuned = autotune([Config({"BLOCK": 4}), Config({"BLOCK": 8})], key=["n"], warmup=0, rep=0)(
        twin()
    )
    out, x = vectors()
    expected = calls(lambda: python[(2,)](out, x, 8, 2.0))
    assert calls(lambda: tuned[(2,)](out, x, 8, 2.0)) == expected
    with pytest.raises(errors.AutotunerError, match="also tuned"):
        tuned[(2,)](out, x, 8, 2.0, BLOCK=8)


def test_hooks_of_configurations_run_at_every_launch() -> None:
    seen: list[int] = []
    config = Config({"BLOCK": 4}, pre_hook=lambda arguments: seen.append(arguments["n"]))
    tuned = autotune([config], key=["n"])(twin())
    out, x = vectors()
    for n in (8, 8, 8, 8):
        tuned[(2,)](out, x, n, 2.0)
    assert seen == [8, 8, 8, 8]
    tuned.base_fn.add_pre_run_hook(lambda *args, **words: seen.append(0))
    tuned[(2,)](out, x, 8, 2.0)
    assert seen[4:] == [8, 0]


def test_choices_are_kept_on_disk_and_told(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, x = vectors()
    with settings().autotuning.scope(print=True):
        first = scale([4, 8])
        first[(2,)](out, x, 8, 2.0)
        assert "Autotuning of scale took" in capsys.readouterr().out
    assert len(list((cache / "autotune").glob("scale-*.json"))) == 1
    second = scale([4, 8])
    second[(2,)](out, x, 8, 2.0)
    assert second.bench_time == 0 and second.best_config == first.best_config
    third = scale([4, 16])
    third[(2,)](out, x, 8, 2.0)
    (file,) = (cache / "autotune").iterdir()
    measured = list(json.loads(file.read_text())["timings"])
    assert [f"BLOCK: {block}," in text for block, text in zip((4, 8, 16), measured, strict=False)]
    assert len({text.partition(",")[0] for text in measured}) == 3
    fourth = scale([16, 4, 8])
    fourth[(2,)](out, x, 8, 2.0)
    assert fourth.bench_time == 0


def test_tuning_advances_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each configuration is a step of the autotuner's bar (shown on terminals only)."""
    tuner = importlib.import_module("tilewright.runtime.tuning.measure_configs")
    shown: list[tuple[str, int]] = []
    steps: list[str] = []

    class Shown(Bar):
        def __init__(self) -> None:
            pass

        def __call__(self, text: str) -> None:
            steps.append(text)

        def show(self, text: str) -> None:
            pass

        def resize(self, steps: int) -> None:
            pass

    @contextmanager
    def bar(title: str, total: int) -> Iterator[Bar]:
        shown.append((title, total))
        yield Shown()

    monkeypatch.setattr(tuner, "step_bar", bar)
    out, x = vectors()
    scale([4, 8])[(2,)](out, x, 8, 2.0)
    assert shown == [("tuning scale", 2)]
    assert ["BLOCK: 4" in steps[0], "BLOCK: 8" in steps[1]] == [True, True]
