"""Kernels that other processes compile: equal to those compiled here, whatever happens there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.figures import source_of
from tests.corpus.variants import HERE, READY_MADE, Variant
from tests.unit.compiler.executors import EXECUTORS, Sabotaged, die, fail
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, compile_jobs, compile_many, far_compiler
from tilewright.runtime import AsyncCompileMode, Config, autotune, jit
from tilewright.support import TilewrightWarning, errors, settings

CPU = GPUTarget("cpu", "", 1)
SM_90 = GPUTarget("cuda", 90, 32)


@pytest.fixture(scope="module", params=list(EXECUTORS))
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    with EXECUTORS[request.param]() as pool:
        yield pool


@pytest.fixture(scope="module")
def spawned() -> Iterator[Executor]:
    with EXECUTORS["spawned"]() as pool:
        yield pool


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    with settings().cache.scope(dir=tmp_path, always_compile=True):
        yield tmp_path


@jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x + i, i < n)
    y = tl.exp(y) * BLOCK
    tl.store(out + i, y, i < n)


@jit
def refused(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 8)
    tl.store(x, BLOCK)


def source(block: int = 64) -> ASTSource:
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    return ASTSource(scale, signature, {"BLOCK": block})


def contents(kernel: Any) -> dict[str, Any]:
    """The artifacts of the stages, and the metadata."""
    stages = [stage.extension for stage in kernel.backend.stages]
    return {**{name: kernel.asm[name] for name in stages}, "metadata": kernel.metadata.as_dict()}


def one_of_each_kernel() -> list[Variant]:
    """A variant of each ready-made kernel."""
    found: dict[object, Variant] = {}
    for variants in READY_MADE.values():
        for variant in variants:
            if variant.capability == HERE:
                found.setdefault(variant.kernel, variant)
    return list(found.values())


def assert_equal_to_those_made_here(jobs: list[Any], executor: Executor) -> None:
    far = compile_many(jobs, executor)
    for job, kernel in zip(jobs, far, strict=True):
        assert contents(kernel) == contents(tilewright.compile(*job))


# --- any executor ---------------------------------------------------------------------------------


def test_artifacts_are_equal_byte_by_byte(executor: Executor) -> None:
    chosen = [
        v for v in one_of_each_kernel() if v.kernel.__name__ in ("add_kernel", "matmul_kernel")
    ]
    jobs = [(source_of(v), target, v.options) for v in chosen for target in (CPU, SM_90)]
    assert_equal_to_those_made_here(jobs, executor)


def test_launches_of_a_kernel_that_another_process_has_compiled(executor: Executor) -> None:
    with AsyncCompileMode(executor):
        futures = [
            scale.warmup(tl.float32, tl.float32, 100, BLOCK=block, grid=(1,)) for block in (32, 64)
        ]
    assert [future.result().metadata.name for future in futures] == ["scale", "scale"]


def test_tuning_by_an_executor(executor: Executor) -> None:
    @autotune([Config({"BLOCK": block}) for block in (16, 32, 64)], key=["n"], executor=executor)
    @jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, 2 * tl.load(x + i, i < n), i < n)

    x = np.arange(100, dtype=np.float32)
    out = np.zeros_like(x)
    kernel[lambda meta: (tilewright.cdiv(100, meta["BLOCK"]),)](x, out, 100)
    assert np.array_equal(out, 2 * x)
    assert len(kernel.configs_timings) == 3


def test_an_error_of_a_kernel_is_that_of_compiling_here(executor: Executor) -> None:
    jobs: list[Any] = [
        (source(16), CPU),
        (ASTSource(refused, {"x": "*fp32"}, {"BLOCK": 4}), CPU),
        (source(32), CPU),
    ]
    first, problem, third = compile_many(jobs, executor, return_errors=True)
    assert (first.name, third.name) == ("scale", "scale")
    assert isinstance(problem, errors.CompileTimeAssertionFailure)
    with pytest.raises(errors.CompileTimeAssertionFailure, match="static_assert"):
        compile_many(jobs, executor)


def test_a_job_that_fails_once_is_tried_again(executor: Executor) -> None:
    sabotaged = Sabotaged(executor, '"BLOCK": "32"', fail, times=1)
    kernels = compile_many([(source(16), CPU), (source(32), CPU)], sabotaged)
    assert [contents(kernel) for kernel in kernels] == [
        contents(tilewright.compile(source(block), CPU)) for block in (16, 32)
    ]
    assert len(sabotaged.sent) == 3


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spawned", "dask", "executorlib"])
def test_a_worker_that_dies_loses_its_own_kernel_only(kind: str) -> None:
    blocks = [16, 32, 64, 128]
    with EXECUTORS[kind]() as pool, pytest.warns(TilewrightWarning) as caught:
        sabotaged = Sabotaged(pool, '"BLOCK": "32"', die)
        kernels = compile_many([(source(block), CPU) for block in blocks], sabotaged)
    here = [contents(tilewright.compile(source(block), CPU)) for block in blocks]
    assert [contents(kernel) for kernel in kernels] == here
    messages = [str(one.message) for one in caught if "[TW516]" in str(one.message)]
    assert any("scale (BLOCK=32, num_warps=4" in message for message in messages)


def test_a_kernel_that_ends_every_process_is_named(
    spawned: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    monkeypatch.setattr(far_compiler, "_CHILD", crash)
    sabotaged = Sabotaged(spawned, '"BLOCK": "32"', fail)
    with pytest.warns(TilewrightWarning, match="no worker has compiled scale"):
        first, problem = compile_many(
            [(source(16), CPU), (source(32), CPU)], sabotaged, return_errors=True
        )
    assert first.name == "scale"
    assert isinstance(problem, errors.CompilerCrashed)
    assert problem.message.startswith("the compiler ends without a result for scale (BLOCK=32")
    assert "exit status -9" in problem.message


PRINTS = """
import os
from tilewright.compiler import compile_jobs
run = compile_jobs.run_job
compile_jobs.run_job = lambda job: (os.write(1, b"printed"), run(job))[1]
compile_jobs.main()
"""


def test_prints_of_the_compiler_are_no_result(
    spawned: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far_compiler, "_CHILD", PRINTS)
    sabotaged = Sabotaged(spawned, '"BLOCK": "32"', fail)
    with pytest.warns(TilewrightWarning, match="no worker has compiled scale"):
        (kernel,) = compile_many([(source(32), CPU)], sabotaged)
    assert contents(kernel) == contents(tilewright.compile(source(32), CPU))


def test_tuning_leaves_out_what_crashes(spawned: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far_compiler, "_CHILD", "import os; os._exit(7)")
    sabotaged = Sabotaged(spawned, '"BLOCK": "32"', fail)
    configs = [Config({"BLOCK": block}) for block in (16, 32, 64)]

    @autotune(configs, key=["n"], executor=sabotaged)
    @jit
    def tuned(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n), i < n)

    x = np.zeros(100, np.float32)
    with pytest.warns(TilewrightWarning, match="BLOCK=32"):
        tuned[lambda meta: (tilewright.cdiv(100, meta["BLOCK"]),)](x, np.zeros_like(x), 100)
    assert tuned.configs_timings[configs[1]] == [float("inf")] * 3
    assert tuned.best_config != configs[1]


def test_other_versions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = ThreadPoolExecutor(1)

    class Older(Executor):
        def submit(self, fn: Any, /, *args: Any, **words: Any) -> Any:
            job = json.loads(args[0])
            job["versions"]["tilewright"] = "0.0.1 (sources 0123456789ab)"
            return inner.submit(fn, json.dumps(job))

    with inner, pytest.raises(errors.OtherCompiler) as caught:
        compile_many([(source(), CPU)], Older())
    here = tilewright.__version__
    assert caught.value.message.startswith(f"this process compiles by tilewright {here} (sources ")
    assert f", and the worker by tilewright {here}" in caught.value.message


@pytest.mark.parametrize("result", [None, "text", b"not an object"])
def test_results_that_are_none_are_not_taken(result: object) -> None:
    class Wrong(Executor):
        def submit(self, fn: Any, /, *args: Any, **words: Any) -> Any:
            return pool.submit(lambda: result)

    with ThreadPoolExecutor(1) as pool, pytest.warns(TilewrightWarning, match="TW516"):
        (kernel,) = compile_many([(source(), CPU)], Wrong())
    assert contents(kernel) == contents(tilewright.compile(source(), CPU))


def test_a_worker_without_memory_is_a_failure_of_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unlike an error of the kernel, which is raised here without a warning."""

    class Full(Executor):
        def submit(self, fn: Any, /, *args: Any, **words: Any) -> Any:
            return pool.submit(fn, *args)

    def no_memory(*_: object) -> Any:
        raise MemoryError("planted")

    here = contents(tilewright.compile(source(), CPU))
    monkeypatch.setattr(compile_jobs, "_compiled", no_memory)
    with ThreadPoolExecutor(1) as pool, pytest.warns(TilewrightWarning) as caught:
        (kernel,) = compile_many([(source(), CPU)], Full())
    assert contents(kernel) == here
    assert "(MemoryError: planted); it is compiled here [TW516]" in str(caught[0].message)


def test_settings_travel(spawned: Executor) -> None:
    with settings().compilation.scope(line_info=True):
        assert_equal_to_those_made_here([(source(), SM_90)], spawned)
        (kernel,) = compile_many([(source(), SM_90)], spawned)
    assert ".loc" in kernel.asm["ptx"]
    (plain,) = compile_many([(source(), SM_90)], spawned)
    assert contents(plain) == contents(tilewright.compile(source(), SM_90))


def test_mistakes_of_the_call() -> None:
    with pytest.raises(errors.InvalidOption, match="option 'jobs' must be sources"):
        compile_many([(source(), CPU, {}, 3)])  # pyright: ignore[reportArgumentType]
    with pytest.raises(errors.UnknownName, match="no option 'warps'"):
        compile_many([(source(), CPU, {"warps": 3})])
    with pytest.raises(errors.InvalidOption, match="'executor' must be an executor, with a method"):
        compile_many([(source(), CPU)], 5)  # pyright: ignore[reportArgumentType]
    assert [kernel.name for kernel in compile_many([(source(), CPU)])] == ["scale"]


def test_the_package_imports_no_executor() -> None:
    code = (
        "import sys, tilewright, tilewright.compiler.far_compiler, tilewright.runtime.autotuner;"
        "print({'dask', 'distributed', 'executorlib', 'mpi4py'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


# --- every kernel ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spawned", "dask"])
@pytest.mark.parametrize("target", [CPU, SM_90], ids=["cpu", "sm_90"])
def test_every_ready_made_kernel_is_equal_byte_by_byte(kind: str, target: GPUTarget) -> None:
    jobs = [(source_of(variant), target, variant.options) for variant in one_of_each_kernel()]
    with EXECUTORS[kind]() as pool:
        assert_equal_to_those_made_here(jobs, pool)
