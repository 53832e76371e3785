"""Grids that the caller runs alone, since waking a thread would take longer."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as tl
from tests.unit.backends.cpu.textual import function_of
from tilewright.backends.cpu.driver.thread_pool import NativePool, shared_pool
from tilewright.backends.cpu.lower.program_cost import programs_alone

HEAD = """func @k(%X: ptr<f32>, %n: i32) {
      %pid = cf.program_id {axis = 0} : i32
      %i = tile.range {start = 0, end = 1024} : tile<1024xi32>
      %s = tile.splat %X {shape = [1024]} : tile<1024xptr<f32>>
      %p = mem.offset %s, %i : tile<1024xptr<f32>>
      %x = mem.load %p : tile<1024xf32>"""
TAIL = "\n mem.store %p, %x\n cf.return\n}"


def alone(body: str, bits: int = 512) -> int:
    return programs_alone(function_of(HEAD + body + TAIL), bits)


def test_twice_the_instructions_are_worth_half_the_programs():
    doubled = "\n".join(f"%y{n} = arith.add %x, %x : tile<1024xf32>" for n in range(2))
    assert alone("") == 2 * alone(doubled) == 2 * alone("", bits=256) > 8


def test_a_quotient_counts_as_several_sums():
    quotient, total = (f"\n%y = arith.{op} %x, %x : tile<1024xf32>" for op in ("div", "add"))
    assert alone(quotient) == alone(total) // 2


def test_indices_cost_nothing():
    assert alone("\n%j = arith.add %i, %i : tile<1024xi32>") == alone("")


@tw.jit
def double_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


@tw.jit
def repeat_kernel(x_ptr, n):
    for _ in range(n):
        tl.store(x_ptr, tl.load(x_ptr) + 1)


def test_a_small_grid_wakes_nobody():
    with tw.settings().cpu.scope(threads=3):
        x = np.ones(1 << 20, np.float32)
        double_kernel[(4,)](x, 256, BLOCK=64)
        pool = shared_pool(3)
        assert isinstance(pool, NativePool)
        assert pool.workers == 0
        double_kernel[(1 << 14,)](x, 1 << 20, BLOCK=64)
        assert pool.workers == 2
        assert (x[:256] == 4).all()
        assert (x[256:] == 2).all()


@pytest.mark.parametrize("n", [0, 3])
def test_loops_are_shared_out(n: int):
    x = np.zeros(1, np.float32)
    kernel = repeat_kernel[(1,)](x, n)
    assert kernel.metadata.alone == 0
    assert x[0] == n
