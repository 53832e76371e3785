"""Variants that declared arguments reach, compiled before a launch."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.aot.kernels import plain, scale, shifted
from tilewright.aot import KernelSpec, Precompiled, compile_variants
from tilewright.backends import GPUTarget
from tilewright.runtime import JITFunction
from tilewright.support import errors, kernel_hooks, settings


def of_n(**declared: Any) -> list[str]:
    return [s.arguments["n"] for s in scale.variants(x="*fp32:16", factor="fp32", **declared)]


def test_a_range_reaches_one_class_for_each_divisor_and_1() -> None:
    found = of_n(n=range(1, 1 << 20), BLOCK=32)
    bounds = ">=1,<1048576"
    assert found == ["i32=1", f"i32:{bounds}", f"i32:8,{bounds}", f"i32:16,{bounds}"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (range(16, 4097, 16), ["i32:16,>=16,<4097"]),
        (range(3, 4), ["i32:>=3,<4"]),
        (range(-8, 9, 8), ["i32:8,>=-8,<-7", "i32:16,>=0,<1", "i32:8,>=8,<9"]),
        (range(9, -1, -8), ["i32=1", "i32:>=9,<10"]),
        (
            range((1 << 31) - 16, 1 << 32, 16),
            ["i32:16,>=2147483632,<2147483633", "i64:16,>=2147483648,<4294967281"],
        ),
        ([1, 2, 1 << 40, None], ["i32=1", "i32:>=0", "i64:16,>=0"]),
        ("i32:16,>=0", ["i32:16,>=0,<2147483633"]),
        ("i32=1", ["i32=1"]),
    ],
)  # fmt: skip
def test_classes_of_integers(values: object, texts: list[str]) -> None:
    found = scale.variants(x="*fp32:16", n=values, factor="fp32", BLOCK=32)
    assert [s.arguments["n"] for s in found if "n" in s.arguments] == texts


def test_alternatives_and_alignments() -> None:
    specs = scale.variants(x=["fp16:16", "*fp32"], n=16, factor=2.0, BLOCK=[32, 64], num_warps=8)
    assert [s.arguments["x"] for s in specs] == ["*fp16:16"] * 2 + ["*fp32:16"] * 2 + ["*fp32"] * 2
    assert [s.constexprs["BLOCK"] for s in specs] == [32, 64] * 3
    assert all(s.options == {"num_warps": 8} for s in specs)


def test_parameters_that_are_not_specialized_have_one_class() -> None:
    (spec,) = plain.variants(x="*fp32:16", n=range(-5, 1 << 20))
    assert spec.arguments["n"] == "i32:>=-5,<1048576"


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        ({"m": 1}, errors.UnknownArgument, "no parameter 'm'"),
        ({"n": range(0)}, errors.InvalidArgumentText, "declares no value"),
        ({"n": []}, errors.InvalidArgumentText, "declares no value"),
        ({"n": "i32:>=0,<0"}, errors.InvalidArgumentText, "its range is empty"),
        ({"n": range(1 << 70)}, errors.IntegerTooLarge, "more than 64 bits"),
        ({"n": {}}, errors.UnsupportedArgument, "argument 'n' is a dict"),
    ],
)
def test_bad_declarations(declared: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        scale.variants(**{"x": "*fp32:16", "n": 1, "factor": 2.0, "BLOCK": 32, **declared})


# --- compiled before a launch ---------------------------------------------------------------------


def new_scale() -> JITFunction:
    return JITFunction(scale.fn)


class Counted:
    """Compilations, reads of the disk cache, and loads, by thread."""

    def __init__(self) -> None:
        self.compiled: list[int] = []
        self.read: list[int] = []
        self.loaded: list[int] = []

    def of(self, thread: int) -> tuple[int, int, int]:
        return tuple(found.count(thread) for found in (self.compiled, self.read, self.loaded))  # pyright: ignore[reportReturnType]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    count = Counted()

    def listen(cache_hit: bool, **_: Any) -> None:
        (count.read if cache_hit else count.compiled).append(threading.get_ident())

    def load(*_: Any) -> None:
        count.loaded.append(threading.get_ident())

    monkeypatch.setattr(kernel_hooks, "listener", listen)
    kernel_hooks.load_start.add(load)
    try:
        yield count
    finally:
        kernel_hooks.load_start.remove(load)


DECLARED: dict[str, Any] = {"x": "*fp32:16", "n": range(1, 1 << 20), "factor": "fp32"}


def test_ten_thousand_random_launches_compile_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = new_scale()
    built = kernel.precompile(**DECLARED, BLOCK=[16, 32])
    assert isinstance(built, Precompiled)
    assert "scale: 10 variants, about " in capsys.readouterr().err
    random, x = Random(3), np.ones(1 << 20, "f")
    wrong = 0
    assert x.ctypes.data % 16 == 0
    with counted(monkeypatch) as count:
        for _ in range(10_000):
            n, block = random.randrange(1, 1 << 20), random.choice((16, 32))
            x[:33], factor = 1, random.random()
            kernel[(1,)](x, n, factor, BLOCK=block)
            end = min(n, block)
            wrong += (x[0], x[end - 1], x[end]) != (np.float32(factor), np.float32(factor), 1)
    assert wrong == 0
    assert (count.compiled, count.read, count.loaded) == ([], [], [])
    with counted(monkeypatch) as count:
        kernel[(1,)](x[1:], 7, 2.0, BLOCK=16)
    assert len(count.compiled) + len(count.read) == 1


def test_variants_of_equal_code_are_merged_and_loaded_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @tilewright.jit
    def unmasked(x, n, BLOCK: tl.constexpr):
        tl.store(x + tl.arange(0, BLOCK), 1.0)

    with counted(monkeypatch) as count:
        built = unmasked.precompile(x="*fp32:16", n=range(2, 1 << 20), BLOCK=32)
    # n is not used: its class decides nothing; without facts, x may be unaligned
    assert len(built.specs) == 4
    assert len(built.groups) == len(count.loaded) <= 2
    assert f"have {len(built.groups)} kinds of machine code" in str(built)
    assert built.bytes < sum(len(kernel.kernel) for kernel in built.kernels)


def test_many_variants_want_a_confirmation(tmp_path: Path) -> None:
    kernel = new_scale()
    with pytest.raises(errors.TooManyVariants, match=r"scale: \d+ variants are more than 256"):
        kernel.precompile(**DECLARED, BLOCK=list(range(1, 101)))
    with (
        settings().cache.scope(max_variants=4),
        pytest.raises(errors.TooManyVariants, match="set TILEWRIGHT_MAX_VARIANTS"),
    ):
        kernel.precompile(**DECLARED, BLOCK=[16, 32])


def test_threads_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = new_scale()
    with ThreadPoolExecutor(2) as pool, counted(monkeypatch) as count:
        with settings().cache.scope(dir=tmp_path):
            kernel.precompile(**DECLARED, BLOCK=16, executor=pool)
        assert len(count.compiled) == 5
        assert count.compiled.count(threading.get_ident()) == 1


def test_threads_compile_for_the_device_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of an executor have a current device of their own."""
    caller = threading.get_ident()

    def by_thread() -> str:
        return "" if threading.get_ident() == caller else "cuda:7"

    devices = list[str]()

    def noted(self: KernelSpec, device: str | None = None) -> Any:
        devices.append(by_thread() if device is None else device)
        return compile_(self, "")

    compile_ = KernelSpec.compile_for_launches
    monkeypatch.setattr(compile_variants, "current_device", by_thread)
    monkeypatch.setattr(KernelSpec, "compile_for_launches", noted)
    with ThreadPoolExecutor(2) as pool:
        new_scale().precompile(**DECLARED, BLOCK=16, executor=pool)
    assert devices == [""] * 5


def test_an_error_gives_up_variants_that_have_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, is_over, compile_ = list[str](), threading.Event(), KernelSpec.compile_for_launches

    def compiled(self: KernelSpec, device: str | None = None) -> Any:
        tried.append(self.arguments.get("n", ""))
        if len(tried) == 2:
            raise errors.CompilerCrashed("scale", "planted")
        if len(tried) > 2:
            assert is_over.wait(60)
        return compile_(self, device)

    monkeypatch.setattr(KernelSpec, "compile_for_launches", compiled)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(errors.CompilerCrashed, match="planted"):
            new_scale().precompile(**DECLARED, BLOCK=[16, 32], executor=pool)
        is_over.set()
    assert len(tried) <= 3


class FarExecutor(Executor):
    """Runs jobs at once, and notes them."""

    def __init__(self) -> None:
        self.jobs: list[str] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        future: Future[Any] = Future()
        self.jobs.append(args[0])
        future.set_result(fn(*args, **kwargs))
        return future


def test_other_executors_compile_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far, kernel = FarExecutor(), new_scale()
    with settings().cache.scope(dir=tmp_path), counted(monkeypatch) as count:
        built = kernel.precompile(**DECLARED, BLOCK=8, executor=far)
    # the first variant is compiled here, for its size
    assert len(far.jobs) == 4
    assert all(json.loads(job)["name"] == "scale" for job in far.jobs)
    assert len(count.compiled) == 5
    assert len(list((tmp_path / "kernels").iterdir())) == 5
    with settings().cache.scope(dir=tmp_path / "other"):
        again = new_scale().precompile(**DECLARED, BLOCK=8)
    assert [k.kernel for k in again.kernels] == [k.kernel for k in built.kernels]


def test_another_target_is_compiled_and_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as count:
        built = scale.precompile(
            x="*fp32:16", n=16, factor=2.0, BLOCK=256, target=GPUTarget("cuda", 90, 32)
        )
    assert count.loaded == []
    assert [kernel.asm["cubin"][:4] for kernel in built.kernels] == [b"\x7fELF"] * 2


def test_overlapping_arguments_are_declared_as_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = JITFunction(shifted.fn)
    declared: dict[str, Any] = {"x": "*fp32", "out": "*fp32", "BLOCK": 64}
    kernel.precompile(**declared, may_overlap=[False, True])
    x = np.arange(128, dtype="f")
    with counted(monkeypatch) as count, pytest.warns(tilewright.OverlapWarning):
        kernel[(2,)](x, x[1:], BLOCK=64)
    assert (count.compiled, count.read, count.loaded) == ([], [], [])


def test_each_device_has_its_own_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = JITFunction(scale.fn)
    for index in (0, 1):
        name = "tilewright.aot.compile_variants.current_device"
        monkeypatch.setattr(name, lambda i=index: f"cuda:{i}")
        kernel.precompile(x="*fp32:16", n=16, factor=2.0, BLOCK=16)
    assert len(kernel.variant_cache.kernels.made) == 4


def test_recorded_specs_are_compiled() -> None:
    kernel = new_scale()
    spec = KernelSpec(kernel, {"x": "*fp32:16", "n": "i32=1", "factor": "fp32"}, {"BLOCK": 16})
    built = kernel.precompile([spec])
    launched = kernel[(1,)](np.zeros(16, "f"), 1, 2.0, BLOCK=16)
    assert launched is built.kernels[1]
