"""Variants in memory are bounded: those launched longest ago are dropped, but not under a launch,
and not what somebody holds."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import tilewright.language as tl
from tests.guarded_devices import OnGpu, address
from tilewright import settings
from tilewright.backends import GPUTarget, backend_named, manifest
from tilewright.compiler import ASTSource
from tilewright.compiler import compile as compile_module
from tilewright.llvm import compile_ir, elf_linker, host_target, load_object
from tilewright.llvm import object_loader as _jit
from tilewright.runtime import JITFunction, jit
from tilewright.runtime.launch import native_dispatch
from tilewright.support import operating_system

ROOT = Path(__file__).parents[4]
LIMIT = 10


@pytest.fixture(autouse=True)
def few(tmp_path: Path) -> Iterator[None]:
    """Ten variants stay in memory, and the disk cache is empty."""
    with settings().cache.scope(max_variants=LIMIT, dir=tmp_path):
        yield


def new_kernel() -> JITFunction:
    @jit
    def scaled(out, n, FACTOR: tl.constexpr):
        i = tl.arange(0, 16)
        tl.store(out + i, i * FACTOR + n)

    return scaled


OUT = np.arange(16)


def launch(kernel: JITFunction, factor: int, out: np.ndarray | None = None) -> Any:
    out = np.zeros(16, np.int32) if out is None else out
    compiled = kernel[(1,)](out, 3, FACTOR=factor)
    assert (out == OUT * factor + 3).all()
    return compiled


def in_memory(kernel: JITFunction) -> set[object]:
    """The FACTORs of the variants that launches find."""
    return {key[2] for key in kernel.variant_cache.by_key}


def count_python(kernel: JITFunction) -> list[object]:
    """The FACTORs of the launches that Python makes from here on."""
    seen: list[object] = []
    python: Callable[..., Any] = kernel.launch_compiled

    def counted(*args: Any, **words: Any) -> Any:
        seen.append(words["FACTOR"])
        return python(*args, **words)

    kernel.launch_compiled = counted
    return seen


def refuse_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(compile_module.__globals__["Compilation"], "run", fail)


# --- who is dropped -------------------------------------------------------------------------------


def test_one_more_than_the_limit_drops_the_one_launched_longest_ago() -> None:
    kernel = new_kernel()
    for factor in range(2, 2 + LIMIT):
        launch(kernel, factor)
    for factor in (2, 4, 3):
        launch(kernel, factor)
    for new, oldest in ((20, 5), (21, 6)):
        before = in_memory(kernel)
        launch(kernel, new)
        assert in_memory(kernel) == before - {oldest} | {new}
    for factor in range(7, 2 + LIMIT):
        launch(kernel, factor)
    for new, oldest in ((22, 2), (23, 4), (24, 3), (25, 20)):
        launch(kernel, new)
        assert oldest not in in_memory(kernel)
        assert len(kernel.variant_cache.by_key) == len(kernel.variant_cache.kernels.made) == LIMIT


def test_launches_by_machine_code_count_one_by_one() -> None:
    kernel, order = new_kernel(), list(range(2, 2 + LIMIT))
    launch(kernel, 2)
    seen = count_python(kernel)
    for factor in order * 2:
        launch(kernel, factor)
    del seen[:]
    random.Random(5).shuffle(order)
    for factor in order:
        launch(kernel, factor)
    assert seen == []
    for new, oldest in enumerate(order, 20):
        launch(kernel, new)
        assert oldest not in in_memory(kernel)
        assert len(kernel.variant_cache.by_key) == LIMIT


def test_machine_code_forgets_the_dropped_one_and_knows_the_others() -> None:
    kernel = new_kernel()
    launch(kernel, 2)
    seen = count_python(kernel)
    for factor in [*range(2, 2 + LIMIT)] * 2:
        launch(kernel, factor)
    launch(kernel, 20)
    del seen[:]
    for factor in range(3, 2 + LIMIT):
        launch(kernel, factor)
    assert seen == []
    launch(kernel, 2)
    assert seen == [2]
    launch(kernel, 2)
    assert seen == [2]


def test_machine_code_that_learned_enough_learns_again_after_a_drop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native_dispatch, "_MAX_ENTRIES", 4)
    kernel = new_kernel()
    launch(kernel, 2)
    seen = count_python(kernel)
    for factor in [*range(2, 8)] * 2:
        launch(kernel, factor)
    del seen[:]
    for _ in range(3):
        launch(kernel, 7)
    assert seen == [7, 7, 7]
    new = range(20, 20 + LIMIT)
    for factor in new:
        launch(kernel, factor)
    assert in_memory(kernel) == {*new}
    del seen[:]
    for factor in new:
        launch(kernel, factor)
    assert len(seen) == LIMIT - 4


def test_no_limit_and_a_limit_of_one() -> None:
    kernel = new_kernel()
    with settings().cache.scope(max_variants=0):
        for factor in range(2, 6 + LIMIT):
            launch(kernel, factor)
        assert len(kernel.variant_cache.by_key) == 4 + LIMIT
    with settings().cache.scope(max_variants=1):
        for factor in (2, 20, 2, 21):
            launch(kernel, factor)
            assert len(kernel.variant_cache.by_key) <= 4 + LIMIT
        assert in_memory(kernel) == {21}
        assert len(kernel.variant_cache.kernels.made) == 1


def test_compiled_but_never_launched_kernels_are_bounded_too() -> None:
    kernel, out = new_kernel(), np.zeros(16, np.int32)
    launch(kernel, 2)
    for factor in range(3, 6 + LIMIT):
        kernel.warmup(out, 3, FACTOR=factor, grid=(1,))
    assert len(kernel.variant_cache.kernels.made) == LIMIT
    assert in_memory(kernel) == {2}
    for factor in range(3, 2 + LIMIT):
        launch(kernel, factor)
    for factor in (50, 51, 52):
        newest = kernel.warmup(out, 3, FACTOR=factor, grid=(1,))
        assert len(kernel.variant_cache.kernels.made) == LIMIT + 1
    assert launch(kernel, 52) is newest
    assert 2 not in in_memory(kernel)


def test_the_default_is_a_thousand() -> None:
    settings().cache.reset("max_variants")
    assert "TILEWRIGHT_MAX_VARIANTS" in os.environ or settings().cache.max_variants == 1000


# --- what it frees --------------------------------------------------------------------------------


def test_what_is_dropped_is_freed_at_once_and_what_is_held_stays_usable() -> None:
    kernel = new_kernel()
    held = launch(kernel, 2)
    freed = weakref.ref(launch(kernel, 3))
    loaded = weakref.ref(held.launcher)
    for factor in (2, 3, 2, 3, 2, 3):
        launch(kernel, factor)
    gc.collect()
    gc.disable()
    try:
        for factor in range(20, 20 + LIMIT):
            launch(kernel, factor)
        assert freed() is None
    finally:
        gc.enable()
    assert in_memory(kernel).isdisjoint({2, 3})
    assert loaded() is held.launcher
    out = np.zeros(16, np.int32)
    held.launch(1, 1, 1, out, 5)
    assert (out == OUT * 2 + 5).all()
    held[(1,)](out, 6)
    assert (out == OUT * 2 + 6).all()
    assert "define" in held.asm["llir"]
    again = launch(kernel, 2)
    assert again is not held
    assert again.hash == held.hash


def test_a_dropped_variant_comes_back_from_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = new_kernel()
    first = launch(kernel, 2)
    texts = dict(first.asm)
    digest = first.hash
    del first
    for factor in range(20, 20 + LIMIT):
        launch(kernel, factor)
    refuse_to_compile(monkeypatch)
    again = launch(kernel, 2)
    assert again.hash == digest
    assert dict(again.asm) == texts


def test_texts_of_a_loaded_kernel_are_had_again_from_disk_or_by_compiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = launch(new_kernel(), 2)
    assert kernel.asm._artifacts == {}
    binary = kernel.kernel
    kernel.asm.forget()
    with pytest.MonkeyPatch.context() as patch:
        refuse_to_compile(patch)
        assert kernel.kernel == binary
    kernel.asm.forget()
    kernel._here.launcher = None
    for entry in tmp_path.rglob(kernel.hash):
        entry.rename(entry.with_suffix(".gone"))
    assert "define" in kernel.asm["llir"]


def test_texts_that_are_not_on_disk_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    with settings().cache.scope(dir=tmp_path / "file"), pytest.warns(UserWarning):
        kernel = launch(new_kernel(), 2)
        refuse_to_compile(monkeypatch)
        assert "define" in kernel.asm["llir"]


@pytest.mark.skipif(not operating_system.IS_LINUX_X86_64, reason="for Linux on x86-64")
def test_kernels_of_all_kinds_are_linked_here() -> None:
    """What takes memory for ever is LLVM's linker; see ADR 0018."""

    @jit(debug=True)
    def all_kinds(out, halves, table, n, SIZE: tl.constexpr):
        i = tl.arange(0, SIZE)
        x = tl.load(halves + i, i < n, other=0.0).to(tl.float32)
        grid = tl.load(table + i[:, None] * SIZE + i[None, :])
        product = tl.dot(grid, grid.to(tl.float16).to(tl.float32))
        x += tl.sum(product, 1) + tl.sin(x) + tl.exp(x) + tl.erf(x) + tl.sqrt(x) + x % 3.0
        x = tl.where(tl.cumsum(x, 0) > 1, x, tl.rand(7, i))
        tl.device_assert(n > 0, "n")
        tl.device_print("x", x)
        tl.atomic_add(out, 1.0)
        tl.atomic_max(out + 1 + i, x.to(tl.float64))
        tl.store(out + 1 + i, x / 3 if n > 5 else x, i < n)

    texts = {"out": "*fp64", "halves": "*bf16", "table": "*fp32", "n": "i32", "SIZE": "constexpr"}
    kernel = compile_module(ASTSource(all_kinds, texts, {"SIZE": 32}))
    assert elf_linker.laid_out(kernel.kernel, [kernel.name], _jit._lookup) is not None


# --- while others launch --------------------------------------------------------------------------


def test_threads_launch_while_variants_are_dropped() -> None:
    kernel = new_kernel()
    problems: list[BaseException] = []
    factors = range(2, 2 + 3 * LIMIT)
    for factor in factors:
        launch(kernel, factor)

    def work(seed: int) -> None:
        rng, out = random.Random(seed), np.zeros(16, np.int32)
        try:
            for _ in range(150):
                factor = rng.choice(factors)
                for _ in range(rng.choice((1, 4))):
                    launch(kernel, factor, out)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert problems == []
    launch(kernel, 99)
    assert len(kernel.variant_cache.by_key) <= LIMIT
    assert len(kernel.variant_cache.kernels.made) <= LIMIT


@pytest.mark.parametrize("by_machine_code", [False, True])
def test_code_that_runs_stays_where_it_is_when_its_variant_is_dropped(
    by_machine_code: bool,
) -> None:
    @jit
    def waits(out, flags, FACTOR: tl.constexpr):
        tl.atomic_add(flags, 1)
        while tl.atomic_add(flags + 1, 0) == 0:
            pass
        i = tl.arange(0, 16)
        tl.store(out + i, i * FACTOR)

    out, other, flags = np.zeros(16, np.int32), np.zeros(16, np.int32), np.ones(2, np.int32)
    for _ in range(4 if by_machine_code else 1):
        waits[(1,)](out, flags, FACTOR=2)
    out[:], flags[:] = 0, 0

    def until(happened: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not happened() and time.monotonic() < end:
            time.sleep(0.001)
        assert happened()

    running = threading.Thread(target=lambda: waits[(1,)](out, flags, FACTOR=2))
    behind = threading.Thread(target=lambda: waits[(1,)](other, flags, FACTOR=3))
    with settings().cache.scope(max_variants=1):
        running.start()
        try:
            until(lambda: flags[0] == 1)
            behind.start()  # it waits for the one that runs, but its variant is there before
            until(lambda: in_memory(waits) == {3})
            assert len(waits.variant_cache.kernels.made) == 1
            text = "define i64 @f(i64 %x) {\n ret i64 %x\n}\n"
            obj = compile_ir(text, host_target(), optimise=False)
            others = [load_object(obj, ["f"]) for _ in range(40)]
        finally:
            flags[1] = 1
            running.join()
            behind.join()
    assert (out == OUT * 2).all()
    assert (other == OUT * 3).all()
    assert len(others) == 40


def test_a_grid_that_launches_more_variants_may_drop_the_one_it_is_of() -> None:
    kernel, out = new_kernel(), np.zeros(16, np.int32)
    for _ in range(4):
        launch(kernel, 2)

    def grid(_: object) -> tuple[int]:
        for factor in range(20, 20 + LIMIT):
            launch(kernel, factor)
        assert 2 not in in_memory(kernel)
        gc.collect()
        return (1,)

    held = kernel[grid](out, 7, FACTOR=2)
    assert (out == OUT * 2 + 7).all()
    assert held.metadata.name == "scaled"


# --- crashes and the end of the process -----------------------------------------------------------

PROGRAM = """
import threading, time
import numpy as np
import tilewright, tilewright.language as tl

@tilewright.jit
def scaled(out, offset, FACTOR: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(out + offset + i, i * FACTOR)

out = np.zeros(16, np.int32)
for factor in (2, 3, 2, 2, 2, 3):
    scaled[(1,)](out, 0, FACTOR=factor)
"""


def run_program(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM + text)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT.parent / "src"), *sys.path]),
        "TILEWRIGHT_MAX_VARIANTS": "1",
        "PYTHONFAULTHANDLER": "",
    }
    command = [sys.executable, str(script)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no native pool")
def test_a_crash_in_a_variant_that_came_back_is_told(tmp_path: Path) -> None:
    done = run_program(tmp_path, "scaled[(1,)](out, 1 << 40, FACTOR=2)\n")
    assert done.returncode < 0
    assert "in the kernel 'scaled'" in done.stderr
    assert f"offset = {1 << 40}" in done.stderr


def test_threads_that_never_end_are_left_alone_at_the_end_of_the_process(tmp_path: Path) -> None:
    more = """
def grid(_):
    time.sleep(0.05)
    return (1,)

def forever():
    for factor in range(10**9):
        scaled[grid](out, 0, FACTOR=2 + factor % 2)

for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
"""
    done = run_program(tmp_path, more)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not operating_system.IS_LINUX_X86_64, reason="no other code that runs here")
def test_a_variant_of_an_overridden_architecture_does_not_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TRITON_OVERRIDE_ARCH set and unset again: the next launch is of the device's own code."""
    kernel = new_kernel()
    out = np.zeros(16, np.int32)

    def target() -> GPUTarget:
        own = cpu.target()
        chosen = settings().compilation.override_arch
        return own if chosen is None else replace(own, arch=chosen.replace("_", "-"))

    def variant() -> Any:
        call = kernel.bind(out, 3, FACTOR=2)
        vars(call)["backend"] = device
        return kernel.variant_cache.variant(call).kernel

    cpu = kernel.bind(out, 3, FACTOR=2).backend
    device = replace(cpu, target=target, memory=cast("Any", object()))
    monkeypatch.setenv("TRITON_OVERRIDE_ARCH", "x86_64")
    assert variant().target.arch == "x86-64"
    monkeypatch.delenv("TRITON_OVERRIDE_ARCH")
    assert variant().target == cpu.target()
    assert variant() is variant()


def test_backends_that_compile_for_one_target_share_no_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other one would launch it with memory that is not its own."""

    @jit
    def add_one(x, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(x + i, tl.load(x + i) + 1)

    cpu = backend_named("cpu")
    twin = replace(cpu, name="twin", target=cpu.target)
    monkeypatch.setitem(manifest._loaded, "twin", twin)  # pyright: ignore[reportPrivateUsage]
    x = np.zeros(16, np.int32)
    first = add_one[(1,)](x, N=16)
    second = add_one[(1,)](OnGpu(address(x), x.dtype, "twin:0"), N=16)
    assert first is not second and (x == 2).all()
