"""The work of front end and passes grows as the number of accesses in sequence does.

Calls are counted, not time: the count is the same on each machine and in each run.
"""

from cProfile import Profile
from typing import Any

import pytest

import tilewright.language as tl
from tilewright import jit
from tilewright.backends import GPUTarget, StageContext, backend_named
from tilewright.compiler import ASTSource, frontend_options, options_of
from tilewright.support import collection_paused

FEW = 80
MOST_GROWTH = 2.2
"""Ratio of the calls after the number of accesses is doubled."""


@jit
def copies(x, y, n, N: tl.constexpr):
    at = tl.program_id(0) * 1024 * N + tl.arange(0, 1024)
    for i in tl.static_range(N):
        mask = at + i * 1024 < n
        tl.store(y + at + i * 1024, tl.load(x + at + i * 1024, mask) * 2, mask)


@jit
def in_place(x, y, n, N: tl.constexpr):
    at = tl.program_id(0) * 1024 * N + tl.arange(0, 1024)
    for i in tl.static_range(N):
        tl.store(x + at + i * 1024, tl.load(x + at + i * n) * 2)


@jit
def atomics(x, y, n, N: tl.constexpr):
    at = tl.program_id(0) * 1024 * N + tl.arange(0, 1024)
    for i in tl.static_range(N):
        tl.atomic_add(y + at + i * 1024, tl.load(x + at + i * 1024))


@jit
def branches(x, y, n, N: tl.constexpr):
    at = tl.program_id(0) * 1024 * N + tl.arange(0, 1024)
    for i in tl.static_range(N):
        if n > i:
            tl.store(y + at + i * 1024, tl.load(x + at + i * 1024) + 1)


@jit
def stencil(x, y, n, N: tl.constexpr):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    total = tl.zeros((1024,), tl.float32)
    for i in tl.static_range(N):
        total += tl.load(x + at + i) * (i + 1)
    tl.store(y + at, total)


@jit
def loops(x, y, n, N: tl.constexpr):
    at = tl.arange(0, 1024)
    for i in tl.static_range(N):
        total = tl.zeros((1024,), tl.float32)
        for k in range(n):
            total += tl.load(x + at + k * 1024)
        tl.store(y + at + i * 1024, total)


@jit
def sums(x, y, n, N: tl.constexpr):
    at = tl.program_id(0) * 1024 * N + tl.arange(0, 1024)
    for i in tl.static_range(N):
        tl.store(y + i * n, tl.sum(tl.load(x + at + i * 1024), 0))


def calls(kernel: Any, target: GPUTarget, count: int) -> dict[str, int]:
    """The number of calls in each stage up to LLVM IR."""
    backend = backend_named(target.backend)
    options = options_of(backend, {})
    types = {"x": "*fp32", "y": "*fp32", "n": "i32", "N": "constexpr"}
    source = ASTSource(kernel, types, {"N": count})
    found: dict[str, int] = {}

    def counted(stage: str, run: Any, *args: Any) -> Any:
        profile = Profile()
        made = profile.runcall(run, *args)
        entries: Any = profile.getstats()
        found[stage] = sum(entry.callcount for entry in entries)
        return made

    with collection_paused():
        made = counted("frontend", source.lower, frontend_options(backend, options, target))
        context = StageContext(target, options, {"name": ""})
        for stage in backend.stages:
            made = counted(stage.extension, stage.run, made, context)
            if stage.extension == "llir":
                return found
    raise AssertionError("no stage makes LLVM IR")


KERNELS = (copies, in_place, atomics, branches, stencil, loops, sums)


@pytest.mark.parametrize(
    ("backend", "kernel"),
    [*(("cuda", kernel) for kernel in KERNELS), ("cpu", copies), ("cpu", branches)],
)
def test_twice_the_accesses_take_twice_the_work(backend: str, kernel: Any) -> None:
    cpu = backend_named("cpu").target()
    target = GPUTarget("cuda", 90, 32) if backend == "cuda" else cpu
    calls(kernel, target, 2)  # imports, and fills caches
    some, twice = (calls(kernel, target, count) for count in (FEW, 2 * FEW))
    growth = {stage: twice[stage] / some[stage] for stage in some}
    assert max(growth.values()) <= MOST_GROWTH, growth
