"""What goes because nothing needs it, slot by slot, and what stays for its effects."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.transforms.execute import lower, ops, unchanged_by
from tilewright.ir import Function
from tilewright.ops import ForOp, IfOp, LoadOp, MathOp, PrintOp, ReduceOp, StoreOp, WhileOp
from tilewright.transforms import Dce

DCE = [Dce()]


def unneeded(x, y, n, m):
    lanes = tl.arange(0, 8)
    v = tl.load(x + lanes)
    tl.sum(tl.exp(v.to(tl.float32)), axis=0)
    for i in range(n):
        _ = v * i
    if n > m:
        _ = v - 1
    tl.store(y + lanes, v)


def test_pure_code_loads_and_empty_structure_go():
    args = [np.arange(8, dtype=np.int32), np.ones(8, np.int32), 3, 4]
    after = unchanged_by(DCE, lower(unneeded, args), args)
    for kind in (MathOp, ReduceOp, ForOp, IfOp):
        assert not ops(after, kind)
    assert len(ops(after, LoadOp)) == 1


def carrying(y, n, m):
    a, b, c, d = n, m, n + 1, m + 1
    for i in range(n):
        b, c = c * 3, b + i
        a += i
        d += a * 0 + d
    tl.store(y, a)


def test_carried_values_that_only_feed_each_other_go():
    args = [np.zeros(1, np.int32), 5, 4]
    function = lower(carrying, args)
    before = len(ops(function, ForOp)[0].results)
    after = unchanged_by(DCE, function, args)
    assert before >= 4
    assert len(ops(after, ForOp)[0].results) == 1


def feeding(y, n, m):
    a, b, c = n, m, n + 1
    for i in range(n):
        a, b, c = b, c, c + i
    tl.store(y, a)


def test_carried_values_that_feed_a_needed_one_stay():
    args = [np.zeros(1, np.int32), 5, 4]
    after = unchanged_by(DCE, lower(feeding, args), args)
    assert len(ops(after, ForOp)[0].results) == 3


def looking_ahead(y, n, m):
    a, b, steps = n, m, 0
    while a > 0:
        a -= 2
        b = b * 3 + steps
        steps += 1
    tl.store(y, a)


def test_while_keeps_what_its_condition_needs():
    args = [np.ones(1, np.int32), 5, 4]
    after = unchanged_by(DCE, lower(looking_ahead, args), args)
    assert len(ops(after, WhileOp)[0].results) == 1


def choosing(y, n, m):
    if n > m:
        a, b = n + 1, m
    else:
        a, b = n - 1, n * m  # noqa: F841
    tl.store(y, a)


@pytest.mark.parametrize("n", [3, 5])
def test_results_of_branches(n: int):
    args = [np.zeros(1, np.int32), n, 4]
    after = unchanged_by(DCE, lower(choosing, args), args)
    (branch,) = ops(after, IfOp)
    assert len(branch.results) == len(branch.result_types) == 1
    assert all(len(block.terminator.operands) == 1 for block in branch.regions)


def nested(y, n, m):
    a, b = n, m
    for i in range(n):
        for j in range(m):
            if i > j:
                b = b * 3
            else:
                b -= 1
            a += j
    tl.store(y, a)


def test_nested_structure():
    args = [np.zeros(1, np.int32), 3, 4]
    after = unchanged_by(DCE, lower(nested, args), args)
    assert [len(loop.results) for loop in ops(after, ForOp)] == [1, 1]
    assert not ops(after, IfOp)


def with_effects(y, n, m):
    for i in range(n):
        tl.device_print("i", i)
    for i in range(n):
        if i > m:
            tl.store(y + i, i)
    tl.atomic_add(y, 1)


def test_effects_stay():
    args = [np.zeros(8, np.int32), 3, 1]
    function = lower(with_effects, args)
    kinds = (ForOp, IfOp, PrintOp, StoreOp)
    before = [len(ops(function, kind)) for kind in kinds]
    after = unchanged_by(DCE, function, args)
    assert [len(ops(after, kind)) for kind in kinds] == before


def endless(y, n, m):
    while n == m:
        m += 0
    tl.store(y, n)


def test_a_loop_that_may_not_end_stays():
    args = [np.zeros(8, np.int32), 3, 1]
    after = unchanged_by(DCE, lower(endless, args), args)
    assert len(ops(after, WhileOp)) == 1


def count(function: Function) -> int:
    return sum(1 for _ in function.walk())


def test_a_second_run_changes_nothing():
    args = [np.zeros(1, np.int32), 3, 4]
    function = lower(nested, args)
    assert Dce().run(function)
    size = count(function)
    assert not Dce().run(function)
    assert count(function) == size
