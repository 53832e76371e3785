"""Carried tiles that move uniformly: what becomes a total; the kernel computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.transforms.execute import carried_tiles, lower, ops, unchanged_by
from tilewright.ir import Function
from tilewright.ir.types import PointerType, element_of, i8, i64
from tilewright.ops import AddOp, ForOp, IfOp, MulOp, WhileOp
from tilewright.transforms import SHARED, Canonicalize, Cse, Licm, StrengthReduce

PASSES = (Canonicalize(), Cse(), Licm(), StrengthReduce())


def carried(function: Function) -> list[str]:
    return [str(result.type) for op in ops(function, ForOp) for result in op.results]


def numbers(size: int, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    return np.arange(size, dtype=dtype) * 3 + 1


def row_sums(x, y, n, stride, BLOCK: tl.constexpr):
    p = x + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for _ in range(n):
        total += tl.load(p)
        p += stride
    tl.store(y + tl.arange(0, BLOCK), total)
    tl.store(y + BLOCK + tl.arange(0, BLOCK), tl.load(p - stride))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_pointers_move_by_a_scalar(n: int):
    args = [numbers(64), np.zeros(16, np.int32), n, 8]
    after = unchanged_by(PASSES, lower(row_sums, args, BLOCK=8), args)
    assert carried(after) == ["tile<8xi32>", "i64"]


def test_no_iteration_leaves_the_initial_pointers():
    args = [numbers(64), np.zeros(16, np.int32), 0, -4]
    after = unchanged_by(PASSES, lower(row_sums, args, BLOCK=8), args)
    assert carried(after) == ["tile<8xi32>", "i64"]


def back_and_forth(x, y, n, step):
    p = x + tl.arange(0, 8)
    for i in range(n):
        first = tl.load(p)
        p += step
        second = tl.load(p)
        p -= 1
        third = tl.load(p)
        p = 2 + p
        tl.store(y + i * 8 + tl.arange(0, 8), first + second * 100 + third * 10000)
    tl.store(y + n * 8 + tl.arange(0, 8), tl.load(p))


def test_several_updates_with_uses_in_between():
    args = [numbers(128), np.zeros(64, np.int32), 6, 7]
    after = unchanged_by(PASSES, lower(back_and_forth, args), args)
    assert carried(after) == ["i64"]


def far_away(x, y, n, step):
    p = x + tl.arange(0, 8)
    for _ in range(n):
        p += step
    back = (step.to(tl.int64)) * n
    tl.store(y + tl.arange(0, 8), tl.load(p - back))


def test_offsets_of_pointers_add_up_in_64_bits():
    args = [numbers(8), np.zeros(8, np.int32), 5, 2**31 - 1]
    after = unchanged_by(PASSES, lower(far_away, args), args)
    assert carried(after) == ["i64"]


UNSIGNED = """
func @f(%x: ptr<i32>, %y: ptr<i32>, %n: i32, %step: u32) {
  %r = tile.range {start = 0, end = 8} : tile<8xi32>
  %xs = tile.splat %x {shape = [8]} : tile<8xptr<i32>>
  %p = mem.offset %xs, %r : tile<8xptr<i32>>
  %zero = arith.constant {value = 0} : i32
  %one = arith.constant {value = 1} : i32
  %end = cf.for %zero, %n, %one, %p : tile<8xptr<i32>> (%i: i32, %q: tile<8xptr<i32>>) {
    %s = tile.splat %step {shape = [8]} : tile<8xu32>
    %q2 = mem.offset %q, %s : tile<8xptr<i32>>
    cf.yield %q2
  }
  %wide = arith.cast %step : i64
  %wide_n = arith.cast %n : i64
  %way = arith.mul %wide, %wide_n : i64
  %back = arith.neg %way : i64
  %backs = tile.splat %back {shape = [8]} : tile<8xi64>
  %home = mem.offset %end, %backs : tile<8xptr<i32>>
  %v = mem.load %home : tile<8xi32>
  %ys = tile.splat %y {shape = [8]} : tile<8xptr<i32>>
  %py = mem.offset %ys, %r : tile<8xptr<i32>>
  mem.store %py, %v
  cf.return
}"""


def test_unsigned_amounts_are_not_sign_extended():
    args = [numbers(8), np.zeros(8, np.int32), 3, 2**32 - 1]
    after = unchanged_by([StrengthReduce()], UNSIGNED, args)
    assert carried(after) == ["i64"]


def wrapping(y, n, step):
    offsets = tl.arange(0, 8).to(tl.int8)
    for i in range(n):
        offsets += 100
        tl.store(y + i * 8 + tl.arange(0, 8), offsets)
    tl.store(y + n * 8 + tl.arange(0, 8), offsets)


def test_integers_wrap_in_their_own_type():
    args = [np.zeros(64, np.int8), 6, 3]
    after = unchanged_by(PASSES, lower(wrapping, args), args)
    (loop,) = ops(after, ForOp)
    assert [result.type for result in loop.results] == [i8]


def growing(x, y, n, step):
    p = x + tl.arange(0, 8)
    for i in range(n):
        p += tl.load(x + i)
        tl.store(y + i * 8 + tl.arange(0, 8), tl.load(p))


def test_the_amount_may_differ_from_iteration_to_iteration():
    steps = np.zeros(64, np.int32)
    steps[:5] = [3, 1, 4, 1, 5]
    args = [steps, np.zeros(64, np.int32), 5, 0]
    after = unchanged_by(PASSES, lower(growing, args), args)
    assert carried(after) == ["i64"]


def skewed(x, y, n, step):
    lanes = tl.arange(0, 8)
    p = x + lanes
    k = lanes.to(tl.int16)
    for i in range(n):
        tl.store(y + i * 8 + lanes, tl.load(p) + k)
        p += lanes * step
        k -= (lanes * lanes * 1000).to(tl.int16)
    tl.store(y + n * 8 + lanes, tl.load(p) + k)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_invariant_tiles_are_multiplied_by_the_count(n: int):
    args = [numbers(256), np.zeros(64, np.int32), n, 3]
    after = unchanged_by(PASSES, lower(skewed, args), args)
    assert carried(after) == ["i64", "i16"]
    assert ops(after, MulOp)


def nested(x, y, n, m, step):
    p = x + tl.arange(0, 8)
    total = tl.zeros((8,), tl.int32)
    for _ in range(n):
        for _ in range(m):
            total += tl.load(p)
            p += step
        p += 1
    tl.store(y + tl.arange(0, 8), total)
    tl.store(y + 8 + tl.arange(0, 8), tl.load(p))


@pytest.mark.parametrize("passes", [PASSES, SHARED])
def test_inner_loops_move_what_outer_loops_carry(passes: Any):
    args = [numbers(256), np.zeros(16, np.int32), 3, 4, 5]
    after = unchanged_by(passes, lower(nested, args), args)
    assert carried(after) == ["tile<8xi32>", "i64"] * 2


def waiting(x, y, n, step):
    p = x + tl.arange(0, 8)
    rest = n
    while rest > 0:
        tl.store(y + rest * 8 + tl.arange(0, 8), tl.load(p))
        p += step
        rest -= step // 4
    tl.store(y + tl.arange(0, 8), tl.load(p))


@pytest.mark.parametrize("n", [0, 5])
def test_while(n: int):
    args = [numbers(128), np.zeros(64, np.int32), n, 9]
    after = unchanged_by(PASSES, lower(waiting, args), args)
    assert carried_tiles(after, WhileOp) == []
    (loop,) = ops(after, WhileOp)
    assert i64 in [result.type for result in loop.results]


def single(x, y, n, step):
    p = x
    for i in range(n):
        p += step
        tl.store(y + i, tl.load(p))
    tl.store(y + n, tl.load(p - 1))


def test_scalar_pointers():
    args = [numbers(128), np.zeros(64, np.int32), 5, 9]
    after = unchanged_by(PASSES, lower(single, args), args)
    assert carried(after) == ["i64"]


def sometimes(x, y, n, step):
    p = x + tl.arange(0, 8)
    for i in range(n):
        if i == step:
            p += 5
        tl.store(y + i * 8 + tl.arange(0, 8), tl.load(p))


def swapped(x, y, n, step):
    p, q = x + tl.arange(0, 8), x + 9 + tl.arange(0, 8)
    for i in range(n):
        p, q = q + 1, p + 1
        tl.store(y + i * 8 + tl.arange(0, 8), tl.load(p) * 10 + tl.load(q))


def chasing(x, y, n, step):
    p = x + tl.arange(0, 8)
    for i in range(n):
        p += tl.load(p)
        tl.store(y + i * 8 + tl.arange(0, 8), tl.load(p))


def halving(x, y, n, step):
    p = tl.arange(0, 8) * step
    for i in range(n):
        p = p // 2
        tl.store(y + i * 8 + tl.arange(0, 8), tl.load(x + p))


@pytest.mark.parametrize("kernel", [sometimes, swapped, chasing, halving])
def test_other_movements_stay(kernel: Any):
    x = np.ones(128, np.int32) * 2
    x[::3] = 4
    args = [x, np.zeros(64, np.int32), 5, 3]
    after = unchanged_by(PASSES, lower(kernel, args), args)
    assert carried_tiles(after, ForOp)
    assert len(ops(after, IfOp)) == (kernel is sometimes)


def moving_floats(x, y, n, step):
    v = tl.load(x + tl.arange(0, 8))
    for _ in range(n):
        v += 0.1
    tl.store(y + tl.arange(0, 8), v)


def test_floats_stay_since_their_sums_depend_on_the_order():
    args = [numbers(8, np.float32), np.zeros(8, np.float32), 9, 3]
    after = unchanged_by(PASSES, lower(moving_floats, args), args)
    assert carried(after) == ["tile<8xf32>"]


def test_pointers_are_no_longer_carried_by_a_matrix_product():
    def product(a, b, c, k, sak, sbk):
        i, j, m = tl.arange(0, 8), tl.arange(0, 8), tl.arange(0, 4)
        pa = a + i[:, None] * 16 + m[None, :] * sak
        pb = b + m[:, None] * sbk + j[None, :]
        acc = tl.zeros((8, 8), tl.float32)
        for _ in range(0, k, 4):
            acc += tl.dot(tl.load(pa), tl.load(pb))
            pa += 4 * sak
            pb += 4 * sbk
        tl.store(c + i[:, None] * 8 + j[None, :], acc)

    rng = np.random.default_rng(1)
    a = rng.integers(-9, 9, (8, 16)).astype(np.float32)
    b = rng.integers(-9, 9, (16, 8)).astype(np.float32)
    c = np.zeros((8, 8), np.float32)
    args = [a, b, c, 16, 1, 8]
    after = unchanged_by(SHARED, lower(product, args), args)
    (loop,) = ops(after, ForOp)
    pointers = [r for r in loop.results if isinstance(element_of(r.type), PointerType)]
    assert not pointers
    assert not [op for op in ops(after, AddOp) if op.type is loop.results[0].type]
