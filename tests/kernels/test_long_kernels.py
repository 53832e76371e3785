"""Kernels of thousands of dependent steps compile, and their code grows as their length.

Each kernel runs at two lengths; what is compared is not time, which depends on the machine, but
the Python calls that the compiler makes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def scalars(o, x, v, N: tl.constexpr):
    acc = 0.0
    for _ in tl.static_range(N):
        acc = acc * v + 1.0
    tl.store(o, acc)


@tilewright.jit
def tiles(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    for _ in tl.static_range(N):
        acc = acc * v + 1.0
    tl.store(o + i, acc)


@tilewright.jit
def masks(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 1024)
    holds = i < 1000
    for j in tl.static_range(N):
        holds = holds & (i < 1000 + j)
    tl.store(o + i, tl.where(holds, 2.0, 0.0), holds)


@tilewright.jit
def choices(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    for _ in tl.static_range(N):
        acc = tl.where(acc > 1.5, acc * v, acc + 1.0)
    tl.store(o + i, acc)


@tilewright.jit
def shapes(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    for _ in tl.static_range(N):
        acc = tl.reshape(tl.trans(tl.reshape(acc, (4, 4))), (16,)) + 1.0
    tl.store(o + i, acc)


@tilewright.jit
def powers_of_two(o, x, v, N: tl.constexpr):
    """Each step uses the one before twice: 2^N paths through N operations."""
    i = tl.arange(0, 16)
    acc = i
    for _ in tl.static_range(N):
        acc = (acc + acc) & 0xFFFF
    tl.store(o + i, tl.load(x + i, (i < acc + 16) & (acc < i + 16), 0.0))


@tilewright.jit
def stores(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    for j in tl.static_range(N):
        acc = acc * v + 1.0
        tl.store(o + 16 * j + i, acc)


@tilewright.jit
def integers(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = i
    for j in tl.static_range(N):
        acc = (acc * 3) ^ i
        tl.store(o + 16 * j + i, acc)


@tilewright.jit
def pointers(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    at = o + i
    step = (v * 32).to(tl.int32)
    for j in tl.static_range(N):
        tl.store(at, 1.0 * j)
        at += step


@tilewright.jit
def loads_and_stores(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(o + i)
    for j in tl.static_range(N):
        acc = acc * v + tl.load(o + 16 * j + i)
    for j in tl.static_range(N):
        tl.store(o + 16 * j + i, acc)


@tilewright.jit
def reductions(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    total = 0.0
    for _ in tl.static_range(N):
        acc = acc * v
        total += tl.sum(acc, 0)
    tl.store(o, total)


KERNELS = (scalars, tiles, masks, choices, shapes, powers_of_two, stores, integers, pointers,
           loads_and_stores, reductions)  # fmt: skip


def launch(kernel: Any, steps: int) -> np.ndarray:
    out = np.zeros(16 * steps + 1024, np.float32)
    kernel[(1,)](out, np.zeros(16, np.float32), 0.5, N=steps)
    return out


def calls(work: Callable[[], object]) -> int:
    """Python calls that `work` makes."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_work_grows_as_the_kernel(kernel):
    launch(kernel, 1)
    short = calls(lambda: launch(kernel, 150))
    long = calls(lambda: launch(kernel, 450))
    assert long < 3.9 * short  # a square would be 9


@pytest.mark.parametrize("kernel", [scalars, tiles, choices], ids=lambda kernel: kernel.__name__)
def test_a_thousand_steps_give_what_the_interpreter_gives(kernel):
    found = launch(kernel, 1000)
    reference = launch(tilewright.jit(kernel.fn, interpret=True), 1000)
    np.testing.assert_array_equal(found, reference)


def test_a_long_row_of_stores_writes_every_one():
    out = launch(pointers, 700)
    assert out[: 16 * 700 : 16].tolist() == [float(j) for j in range(700)]


def test_ten_thousand_steps():
    assert launch(tiles, 10_000)[:16].tolist() == [2.0] * 16
