"""Barriers stand where threads of a program may meet in global memory, and nowhere else."""

import pytest

import tilewright
import tilewright.language as tl
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, compile
from tilewright.runtime import JITFunction


@tilewright.jit
def in_place(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)


@tilewright.jit
def swapped(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(x + i, b)
    tl.store(y + i, a)


@tilewright.jit
def reversed_in_place(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + (BLOCK - 1 - i), tl.load(x + i))


@tilewright.jit
def read_back_elsewhere(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0)
    tl.store(y + i, tl.load(x + (BLOCK - 1 - i)))


@tilewright.jit
def read_back_after_barrier(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0)
    tl.debug_barrier()
    tl.store(y + i, tl.load(x + (BLOCK - 1 - i)))


@tilewright.jit
def one_element(x, y, n, BLOCK: tl.constexpr):
    tl.store(x, 5.0)
    tl.store(y + tl.arange(0, BLOCK), tl.load(x) + tl.arange(0, BLOCK))


@tilewright.jit
def sliding(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(x + k + i, tl.load(x + k + i) + 1)


@tilewright.jit
def copied_in_a_loop(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(y + k * BLOCK + i, tl.load(x + k * BLOCK + i))


@tilewright.jit
def stored_in_a_branch(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if n > 5:
        tl.store(x + i, 1.0)
    tl.store(y + i, tl.load(x + (BLOCK - 1 - i)))


@tilewright.jit
def counted(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + i, 1.0)
    tl.atomic_add(x + (BLOCK - 1 - i), 1.0)


@tilewright.jit
def read_after_atomics(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + i, 1.0)
    tl.store(y + i, tl.load(x + (BLOCK - 1 - i)))


@tilewright.jit
def chosen_pointer(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(tl.where(i < n, x + i, y + i), 1.0)
    tl.store(y + (BLOCK - 1 - i), 2.0)


BARRIERS: list[tuple[JITFunction, int]] = [
    (in_place, 0),
    (swapped, 0),
    (reversed_in_place, 1),
    (read_back_elsewhere, 1),
    (read_back_after_barrier, 1),
    (one_element, 1),
    (sliding, 1),
    (copied_in_a_loop, 0),
    (stored_in_a_branch, 1),
    (counted, 0),
    (read_after_atomics, 1),
    (chosen_pointer, 1),
]


@pytest.mark.parametrize(("kernel", "count"), BARRIERS, ids=lambda v: getattr(v, "__name__", v))
def test_barriers(kernel: JITFunction, count: int) -> None:
    types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(kernel, types, {"BLOCK": 256})
    made = compile(source, target=GPUTarget("cuda", 90, 32))
    assert str(made.asm["ttgir"]).count("mem.barrier") == count
