"""Launches whose variant is not in memory: `on_miss`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.kernels.devices import EmulatedNvidia
from tests.unit.aot.kernels import scale
from tests.unit.aot.test_variants import counted
from tilewright.aot import KernelSpec
from tilewright.aot.misses import LaunchMisses, add_work, worker_process
from tilewright.aot.worker_process import WorkerProcess
from tilewright.compiler import run_job
from tilewright.compiler.run_stages import Run
from tilewright.runtime import BoundCall, JITFunction, RecordedLaunch
from tilewright.support import (
    ListRecorder,
    TilewrightWarning,
    VariantMissed,
    errors,
    recording,
    settings,
)

ME = threading.get_ident()
X = np.ones(1 << 12, "f")


def new_scale(on_miss: str) -> JITFunction:
    """A kernel whose variants without facts are in memory."""
    kernel = JITFunction(scale.fn, on_miss=on_miss)
    arguments = {"x": "*fp32:16", "n": "i32:>=0", "factor": "fp32"}
    kernel.precompile([KernelSpec(kernel, arguments, {"BLOCK": 32})])
    return kernel


def pending(kernel: JITFunction) -> int:
    """Launches that are served without facts."""
    misses = kernel.variant_cache.misses
    return misses.pending if isinstance(misses, LaunchMisses) else 0


def wait(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_launches_are_served_without_facts_until_the_variant_is_loaded(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with settings().cache.scope(dir=tmp_path):
        kernel = new_scale("generic")
        generic = kernel.warmup("*fp32", "i32", "fp32", BLOCK=32)
        (ready,) = kernel.variant_cache.by_key.values()
        assert ready.kernel is generic
        events = ListRecorder()
        with counted(monkeypatch) as count, recording(events):
            used = set[str]()
            for n in (16, 1, 24, 48, -3, 5):
                x = X.copy()
                launched = kernel[(max(n, 1),)](x, n, 3.0, BLOCK=32)
                used.add(launched.hash)
                assert (x[: max(n, 0)] == 3).all()
                assert (x[max(n, 0) :] == 1).all()
            wait(lambda: not pending(kernel))
            for n in (16, 1, 24, 48, -3, 5):
                used.add(kernel[(1,)](x, n, 3.0, BLOCK=32).hash)
    assert count.of(ME) == (0, 0, 0)
    assert generic.hash in used
    # 1; multiples of 16, of 8, others, -3: 5 was precompiled as the class of 2
    assert len(used) == 1 + 5
    assert [event.served for event in events.of(VariantMissed)] == [True] * 4


def test_the_compiler_runs_in_another_process(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, run = list[int](), Run.run

    def counted_run(self: Run, *args: Any) -> Any:
        ran.append(threading.get_ident())
        return run(self, *args)

    monkeypatch.setattr(Run, "run", counted_run)
    with settings().cache.scope(dir=tmp_path), counted(monkeypatch) as count:
        kernel = JITFunction(scale.fn, on_miss="generic")
        kernel[(1,)](X.copy(), 16, 2.0, BLOCK=64)
        wait(lambda: not pending(kernel))
    # the variant without facts was not precompiled; the other one came from the worker
    assert count.of(ME) == (1, 0, 1)
    assert len(count.compiled) == 2
    assert ran == [ME]


def test_a_backend_of_this_process_alone_is_compiled_here(tmp_path: Any) -> None:
    """The emulated GPU, which the worker does not have."""
    kernel, device = JITFunction(scale.fn, on_miss="generic"), EmulatedNvidia()
    x = device.array(np.ones(64, np.float32))
    with settings().cache.scope(dir=tmp_path):
        first = device.launch(kernel, (2,), x, 48, 2.0, BLOCK=32)
        wait(lambda: not pending(kernel))
        later = device.launch(kernel, (2,), x, 48, 2.0, BLOCK=32)
    assert np.asarray(x).tolist() == [4.0] * 48 + [1.0] * 16
    assert first.hash != later.hash
    assert "i32" in first.src.signature["n"]


def test_a_worker_that_dies_is_replaced(tmp_path: Any) -> None:
    with settings().cache.scope(dir=tmp_path):
        kernel = new_scale("generic")
        kernel[(2,)](X.copy(), 16, 2.0, BLOCK=32)
        wait(lambda: not pending(kernel))
        worker_process().stop()
        served = kernel[(2,)](X.copy(), 8, 2.0, BLOCK=32)
        wait(lambda: not pending(kernel))
        assert kernel[(2,)](X.copy(), 8, 2.0, BLOCK=32).hash != served.hash


def test_a_process_that_cannot_start_is_the_error_of_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that starts it ahead of the first job has to survive."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    process = WorkerProcess()
    process.start()
    with pytest.raises(RuntimeError, match="has ended: FileNotFoundError"):
        process.submit(run_job, "{}").result()


def test_entries_of_native_dispatch_are_replaced(tmp_path: Any) -> None:
    with settings().cache.scope(dir=tmp_path):
        kernel = new_scale("generic")
        first = [kernel[(2,)](X.copy(), 16, 2.0, BLOCK=32).hash for _ in range(4)]
        wait(lambda: not pending(kernel))
        time.sleep(0.05)  # the worker replaces the entry last
        x, entered = X.copy(), list[str]()
        sys.setprofile(
            lambda frame, event, _: (
                entered.append(frame.f_code.co_name) if event == "call" else None
            )
        )
        launched = kernel[(2,)](x, 16, 2.0, BLOCK=32)
        sys.setprofile(None)
        later = [launched.hash, kernel[(2,)](x, 16, 2.0, BLOCK=32).hash]
    assert entered == ["__getitem__"]
    assert first[0] != later[-1]
    assert len(set(later)) == 1
    assert kernel.warmup("*fp32:16", "i32:16,>=0", "fp32", BLOCK=32).hash == later[0]


def test_entries_of_tuned_kernels_are_made_again(tmp_path: Any) -> None:
    with settings().cache.scope(dir=tmp_path):
        kernel = new_scale("generic")
        tuned = tilewright.autotune([tilewright.Config({"BLOCK": 32})], key=[])(kernel)
        assert isinstance(tuned, tilewright.Autotuner)
        launch = tuned[(2,)]
        first = [launch(X.copy(), 16, 2.0).hash for _ in range(4)]
        wait(lambda: not pending(kernel))
        time.sleep(0.05)
        later = {launch(X.copy(), 16, 2.0).hash for _ in range(4)}
    assert later == {kernel.warmup("*fp32:16", "i32:16,>=0", "fp32", BLOCK=32).hash}
    assert first[0] not in later


def test_trials_of_tuning_run_what_they_measure(tmp_path: Any) -> None:
    with settings().cache.scope(dir=tmp_path):
        kernel = new_scale("generic")
        configs = [tilewright.Config({"BLOCK": 32}), tilewright.Config({"BLOCK": 64})]
        tuned = tilewright.autotune(configs, key=[], rep=1, warmup=1)(kernel)
        assert isinstance(tuned, tilewright.Autotuner)
        events = ListRecorder()
        with recording(events):
            launched = tuned[(2,)](X.copy(), 16, 2.0)
    assert events.of(VariantMissed) == []
    block = tuned.best_config.kwargs["BLOCK"]
    special = kernel.warmup("*fp32:16", "i32:16,>=0", "fp32", BLOCK=block)
    assert launched.hash == special.hash


def test_a_variant_that_is_loaded_before_the_entry_exists_is_found(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with settings().cache.scope(dir=tmp_path):
        kernel = new_scale("generic")
        for _ in range(3):
            kernel[(2,)](X.copy(), 3, 2.0, BLOCK=32)
        find, seen = kernel.variant_cache.recorded, list[bool]()

        def recorded(call: BoundCall) -> RecordedLaunch | None:
            found = find(call)
            if not seen:  # the first query is answered before the worker is done
                wait(lambda: not pending(kernel))
            seen.append(found is not None and found.served is not None)
            return found

        monkeypatch.setattr(kernel.variant_cache, "recorded", recorded)
        hashes = [kernel[(2,)](X.copy(), 16, 2.0, BLOCK=32).hash for _ in range(3)]
    assert seen == [True, False]
    assert hashes[0] != hashes[1] == hashes[2]


def test_native_entries_without_facts_pass_integers_that_are_1(tmp_path: Any) -> None:
    kernel = new_scale("generic")
    kernel.variant_cache.misses = None
    stuck = threading.Event()
    add_work(lambda: [stuck.wait()].clear())
    try:
        for _ in range(5):
            x = X.copy()
            kernel[(1,)](x, 1, 7.0, BLOCK=32)
            assert x[0] == 7
            assert (x[1:] == 1).all()
    finally:
        stuck.set()


def test_error_names_the_difference() -> None:
    kernel = new_scale("error")
    kernel[(1,)](X.copy(), 3, 2.0, BLOCK=32)
    with pytest.raises(errors.MissingVariant) as caught:
        kernel[(1,)](X.copy(), 16, 2.0, BLOCK=32)
    assert "scale has no compiled variant for this launch: n: i32 -> i32/16" in str(caught.value)
    assert "on_miss='generic'" in str(caught.value)


def test_log_prints_and_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = new_scale("log")
    x = X.copy()
    kernel[(1,)](x, 16, 2.0, BLOCK=32)
    assert "tilewright: scale is compiled for a launch: n: i32 -> i32/16" in capsys.readouterr().err
    assert x[0] == 2
    kernel[(1,)](x, 32, 2.0, BLOCK=32)
    assert capsys.readouterr().err == ""


def declared_scale(mode: str) -> JITFunction:
    """A kernel that machine code has launched before its range was declared."""
    kernel = JITFunction(scale.fn)
    for n in (16, 32, 16, 32):
        kernel[(1,)](X.copy(), n, 2.0, BLOCK=32)
    kernel.on_miss = mode
    kernel.precompile(x="*fp32:16", n=range(16, 1025, 16), factor="fp32", BLOCK=32)
    return kernel


@pytest.mark.parametrize("mode", ["compile", "generic", "log"])
def test_values_outside_of_declared_ranges_are_misses(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where their class is in memory, and after machine code has launched the class."""
    kernel, events = declared_scale(mode), ListRecorder()
    with recording(events), counted(monkeypatch) as count:
        for n in (16, 1024, 512, 16, 32):
            kernel[(1,)](X.copy(), n, 2.0, BLOCK=32)
        assert not events.of(VariantMissed)
        for n in (1040, 2048):
            x = X.copy()
            kernel[(1,)](x, n, 2.0, BLOCK=32)
            assert (x[:32] == 2).all()
    assert len(events.of(VariantMissed)) == (mode != "compile")
    assert count.compiled == []


def test_values_outside_of_declared_ranges_are_errors() -> None:
    kernel, x = declared_scale("error"), X.copy()
    for n in (16, 1024, 512, 16, 32):
        kernel[(1,)](x, n, 1.0, BLOCK=32)
    for n in (1040, 2048, 1040):
        with pytest.raises(errors.MissingVariant, match="'n' is outside of the declared range"):
            kernel[(1,)](x, n, 2.0, BLOCK=32)
    assert (x == 1).all()
    # a further declaration widens the range; one without bounds removes it
    kernel.precompile(x="*fp32:16", n=range(1040, 1041), factor="fp32", BLOCK=32)
    kernel[(1,)](x, 1040, 2.0, BLOCK=32)
    with pytest.raises(errors.MissingVariant):
        kernel[(1,)](x, 1056, 2.0, BLOCK=32)
    arguments = {"x": "*fp32:16", "n": "i32:16,>=0", "factor": "fp32"}
    kernel.precompile([KernelSpec(kernel, arguments, {"BLOCK": 32})])
    kernel[(1,)](x, 1056, 2.0, BLOCK=32)


def test_a_checked_kernel_compiles() -> None:
    kernel = JITFunction(scale.fn, on_miss="generic", check="bounds")
    x, events = X.copy(), ListRecorder()
    with recording(events):
        kernel[(1,)](x, 1, 2.0, BLOCK=32)
    assert events.of(VariantMissed) == []
    assert x[0] == 2
    with pytest.raises(errors.OutOfBounds):
        kernel[(129,)](X.copy(), 1 << 13, 2.0, BLOCK=32)


def test_the_setting_is_for_the_process() -> None:
    kernel = JITFunction(scale.fn)
    assert kernel.on_miss == "compile"
    with settings().cache.scope(on_miss="error"):
        assert kernel.on_miss == "error"
        with pytest.raises(errors.MissingVariant, match="the first launch"):
            kernel[(1,)](X.copy(), 16, 2.0, BLOCK=128)
        kernel.on_miss = "compile"
        kernel[(1,)](X.copy(), 16, 2.0, BLOCK=128)
    with pytest.raises(errors.InvalidOption, match="on_miss"):
        kernel.on_miss = "wait"


def test_a_variant_that_does_not_compile_leaves_the_other_one(tmp_path: Any) -> None:
    @tilewright.jit(on_miss="generic")
    def only_one(x, n):
        tl.store(x + tl.arange(0, 4 * n), 1.0)  # a constant only if n is 1

    x = np.zeros(8, "f")
    assert only_one.precompile(x=x, n=1).generic == 0
    only_one[(1,)](x, 1)
    assert x.tolist() == [1] * 4 + [0] * 4
    with pytest.raises(errors.CompilationError):
        only_one[(1,)](x, 2)


def test_a_kernel_without_a_name_is_served_too(monkeypatch: pytest.MonkeyPatch) -> None:
    @tilewright.jit(on_miss="generic")
    def local(x, n, V: tl.constexpr):
        tl.store(x + n, V)

    x = np.zeros(64, "f")
    local.precompile(x=x, n=range(2, 3), V=11)
    with counted(monkeypatch) as count:
        local[(1,)](x, 16, V=11)
        wait(lambda: not pending(local))
    assert x[16] == 11
    assert count.of(ME) == (0, 0, 0)


@pytest.mark.parametrize("kind", [OSError, AssertionError])
def test_a_worker_that_fails_is_reported_once(
    kind: type[Exception], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later misses are served, also after a mistake in the compiler."""
    kernel = new_scale("generic")

    def fail(*_: object) -> None:
        raise kind("no disk")

    monkeypatch.setattr("tilewright.aot.misses._activate", fail)
    seen = list[tuple[object, object]]()
    monkeypatch.setattr("warnings.warn_explicit", lambda *given: seen.append(given[:2]))
    for _ in range(5):
        kernel[(1,)](X.copy(), 16, 2.0, BLOCK=32)
    wait(lambda: seen)
    time.sleep(0.05)
    assert seen == [("scale stays without facts: no disk", TilewrightWarning)]
    monkeypatch.undo()
    kernel[(1,)](X.copy(), 8, 2.0, BLOCK=32)
    wait(lambda: pending(kernel) == 1)
