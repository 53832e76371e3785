"""What leaves a loop, and what has to stay."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.transforms.execute import lower, ops, unchanged_by
from tilewright.ir import Block, Function, Op
from tilewright.ops import DivOp, ForOp, LoadOp, MathOp, MulOp, ReduceOp, WhileOp
from tilewright.transforms import Canonicalize, Cse, Licm

PASSES = (Canonicalize(), Cse(), Licm())


def depth(op: Op) -> int:
    """How many loops and branches an op is in."""
    found, block = -1, op.parent
    while isinstance(block, Block):
        found += 1
        block = block.owner.parent if isinstance(block.owner, Op) else None
    return found


def depths(function: Function, kind: type[Op]) -> list[int]:
    return [depth(op) for op in ops(function, kind)]


def invariant(x, y, n, m):
    lanes = tl.arange(0, 8)
    v = tl.load(x + lanes)
    for i in range(n):
        for j in range(m):
            scaled = tl.sum(v * n, axis=0) * 2
            tl.store(y + (i * m + j) * 8 + lanes, v * i + scaled)


def test_code_leaves_all_loops_that_do_not_change_it():
    x = np.arange(8, dtype=np.int32)
    args = [x, np.zeros(64, np.int32), 3, 2]
    after = unchanged_by(PASSES, lower(invariant, args), args)
    assert depths(after, ReduceOp) == [0]
    in_inner = [op for op in ops(after, MulOp) if depth(op) == 2]
    assert len(in_inner) < len([op for op in ops(after, MulOp) if depth(op) < 2])


def dividing(y, n, m):
    for i in range(n):
        tl.store(y + i, 100 // m + n // 7 + i)


def test_division_by_what_may_be_zero_stays():
    args = [np.zeros(8, np.int32), 3, 4]
    after = unchanged_by([Licm()], lower(dividing, args), args)
    assert sorted(depths(after, DivOp)) == [0, 1]
    args = [np.zeros(8, np.int32), 0, 0]
    function = lower(dividing, args)
    Licm().run(function)
    assert sorted(depths(function, DivOp)) == [0, 1]


def dividing_surely(y, n, m):
    for i in tl.range(0, 3):
        tl.store(y + i, 100 // m + i)


def test_division_leaves_a_loop_that_surely_runs():
    args = [np.zeros(8, np.int32), 3, 4]
    after = unchanged_by([Licm()], lower(dividing_surely, args), args)
    assert depths(after, DivOp) == [0]


def loading(x, y, n, m):
    total = 0
    for i in tl.range(0, 3):
        total += tl.load(x + m) * i
    tl.store(y, total)


def loading_perhaps(x, y, n, m):
    total = 0
    for i in tl.range(0, n):
        total += tl.load(x + m) * i
    tl.store(y, total)


def loading_and_storing(x, y, n, m):
    for i in tl.range(0, 3):
        tl.store(y + i, tl.load(x + m))
        tl.store(x + m, i + 7)


@pytest.mark.parametrize(
    ("kernel", "expected"), [(loading, 0), (loading_perhaps, 1), (loading_and_storing, 1)]
)
def test_loads_leave_where_they_surely_run_and_nothing_is_written(kernel, expected: int):
    args = [np.arange(8, dtype=np.int32), np.zeros(8, np.int32), 3, 4]
    after = unchanged_by(PASSES, lower(kernel, args), args)
    assert depths(after, LoadOp) == [expected]


def volatile(x, y, n, m):
    total = 0
    for i in tl.range(0, 3):
        total += tl.load(x + m, volatile=True) * i
    tl.store(y, total)


def test_volatile_loads_stay():
    args = [np.arange(8, dtype=np.int32), np.zeros(8, np.int32), 3, 4]
    after = unchanged_by(PASSES, lower(volatile, args), args)
    assert depths(after, LoadOp) == [1]


def forbidden(y, n, m):
    for i in tl.range(0, n, disable_licm=True):
        tl.store(y + i, tl.exp(m.to(tl.float32)))


def allowed(y, n, m):
    for i in tl.range(0, n):
        tl.store(y + i, tl.exp(m.to(tl.float32)))


@pytest.mark.parametrize(("kernel", "expected"), [(forbidden, 1), (allowed, 0)])
def test_a_loop_may_forbid_it(kernel, expected: int):
    args = [np.zeros(8, np.float32), 3, 4]
    after = unchanged_by(PASSES, lower(kernel, args), args)
    assert depths(after, MathOp) == [expected]


def branching(y, n, m):
    for i in range(n):
        if i == m:
            tl.store(y + i, tl.exp(m.to(tl.float32)))


def test_branches_keep_their_code():
    args = [np.zeros(8, np.float32), 6, 4]
    after = unchanged_by(PASSES, lower(branching, args), args)
    assert depths(after, MathOp) == [2]


def until(y, n, m):
    i = 0
    while i < n * m:
        tl.store(y + i, 1000 // (n + m))
        i += 100 // m


def test_while():
    args = [np.zeros(64, np.int32), 3, 9]
    after = unchanged_by([Licm()], lower(until, args), args)
    (loop,) = ops(after, WhileOp)
    assert not any(isinstance(op, MulOp) for op in loop.before)
    assert depths(after, DivOp) == [1, 1]
    assert not ops(after, ForOp)
