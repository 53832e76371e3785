"""Where the kernels of this folder run: their host code gets torch's tensors and launches as usual.

`device` is the torch device of a test's tensors. On "interpreter", "cpu" and "emulated" that is the
CPU: what differs is who executes a launch.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Generator
from functools import cache
from typing import Any

import pytest

import tilewright
from tests.emulator.launch import run_once
from tests.guarded_devices import OnGpu, exact_products
from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.language import TensorDescriptor
from tilewright.runtime import autotuner
from tilewright.runtime.jit import JITFunction

RUN = JITFunction.run
EXECUTIONS = ["interpreter", "cpu", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(autouse=True)
def _as_its_users_run() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """With triton importable, as where the kernels' modules were imported; repeatable."""
    importlib.import_module("torch").manual_seed(0)
    with triton_alias():
        yield


@pytest.fixture(params=EXECUTIONS)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """The torch device of tensors, while launches are executed in one of four ways."""
    # each configuration runs once, so that all are tried and none is timed
    monkeypatch.setattr(autotuner, "do_bench", run_once)
    if request.param in LAUNCHES:
        replace_launches(monkeypatch, LAUNCHES[request.param])
    with exact_products():
        yield "cuda" if request.param == "cuda" else "cpu"


def replace_launches(monkeypatch: pytest.MonkeyPatch, launch: Any) -> None:
    """`launch(kernel, grid, args, keywords)` is what launches of kernels do."""

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **keywords: Any) -> Any:
        assert not warmup
        return launch(kernel, grid, args, keywords)

    def item(kernel: Any, grid: Any) -> Any:
        return lambda *args, **keywords: launch(kernel, grid, args, keywords)

    monkeypatch.setattr(JITFunction, "run", run)
    monkeypatch.setattr(JITFunction, "warmup", lambda *args, **keywords: None)
    monkeypatch.setattr(JITFunction, "__getitem__", item)


@cache
def interpreted(kernel: Any) -> Any:
    """The kernel as the interpreter runs it, with the checks that none of these kernels should
    fail; that for elements which masks leave out is not among them, since some rely on these."""
    return tilewright.jit(kernel.fn, interpret=True, check="bounds,race,overflow")


def interpret(kernel: Any, grid: Any, args: Any, keywords: Any) -> Any:
    return RUN(interpreted(kernel), *args, grid=grid, **keywords)


def emulate(kernel: Any, grid: Any, args: Any, keywords: Any) -> Any:
    """A launch that may access the memory of the tensors among its arguments, and no other."""
    emulator = importlib.import_module("tests.emulator")
    ranges: list[tuple[int, int]] = []

    def moved(value: Any) -> Any:
        if isinstance(value, tuple):
            items = [moved(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, TensorDescriptor):
            return dataclasses.replace(value, base=moved(value.base))
        if not hasattr(value, "untyped_storage"):
            return value
        storage = value.untyped_storage()
        ranges.append((storage.data_ptr(), storage.data_ptr() + storage.nbytes()))
        return OnGpu(value.data_ptr(), value.dtype, "emulated:0")

    args, keywords = moved(tuple(args)), {name: moved(k) for name, k in keywords.items()}
    with emulator.accessible(ranges):
        return kernel.launch_compiled(grid, *args, **keywords)


LAUNCHES = {"interpreter": interpret, "emulated": emulate}
