"""What merges, and what must not."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.transforms.execute import lower, ops, unchanged_by
from tilewright.ir import parse_function
from tilewright.ops import AddOp, ConstantOp, LoadOp, MulOp, SubOp
from tilewright.transforms import Cse

CSE = [Cse()]


def repeated(x, y, n, m):
    a, b = tl.load(x), tl.load(x + 1)
    tl.store(y, (a + b) * (b + a))
    tl.store(y + 1, (a - b) * (b - a))


def test_operands_of_commutative_ops_may_be_swapped():
    args = [np.array([5, 3], np.int32), np.zeros(8, np.int32), 3, 4]
    after = unchanged_by(CSE, lower(repeated, args), args)
    assert [len(ops(after, kind)) for kind in (AddOp, MulOp, SubOp)] == [1, 2, 2]


def branches(y, n, m):
    if n > 0:
        tl.store(y, n * m)
    else:
        tl.store(y + 1, n * m)
    tl.store(y + 2, n * m)
    if n > 1:
        tl.store(y + 3, n * m)


@pytest.mark.parametrize("n", [-3, 3])
def test_an_op_merges_with_one_in_its_block_or_around_it(n: int):
    args = [np.zeros(8, np.int32), n, 4]
    after = unchanged_by(CSE, lower(branches, args), args)
    assert len(ops(after, MulOp)) == 3


def memory(x, y, n, m):
    a = tl.load(x)
    b = tl.load(x)
    tl.store(x, a + b + 1)
    c = tl.load(x)
    for _ in range(n):
        c += tl.load(x) + tl.load(x)
        tl.store(x, c)
    d = tl.load(x)
    tl.store(y, d + tl.load(x))


def test_loads_merge_up_to_the_next_write():
    args = [np.array([5], np.int32), np.zeros(1, np.int32), 3, 4]
    after = unchanged_by(CSE, lower(memory, args), args)
    assert len(ops(after, LoadOp)) == 4


def barrier(x, y, n, m):
    a = tl.load(x)
    tl.debug_barrier()
    tl.store(y, a + tl.load(x))


def volatile(x, y, n, m):
    tl.store(y, tl.load(x, volatile=True) + tl.load(x, volatile=True))


def spinning(x, y, n, m):
    seen = tl.load(x)
    while tl.load(x) < n:
        seen += 1
        n -= 1
    tl.store(y, seen)


@pytest.mark.parametrize("kernel", [barrier, volatile, spinning])
def test_loads_that_may_see_other_writers_stay(kernel):
    args = [np.array([5], np.int32), np.zeros(1, np.int32), 8, 4]
    after = unchanged_by(CSE, lower(kernel, args), args)
    assert len(ops(after, LoadOp)) == 2


CONSTANTS = """
func @f(%y: ptr<f32>, %b: ptr<i1>) {
  %plus = arith.constant {value = 0.0} : f32
  %minus = arith.constant {value = -0.0} : f32
  %again = arith.constant {value = 0.0} : f32
  %one = arith.constant {value = 1} : i32
  %yes = arith.constant {value = 1} : i1
  %long = arith.constant {value = 1} : i64
  %s = arith.add %minus, %minus : f32
  mem.store %y, %s
  %p = mem.offset %y, %one : ptr<f32>
  %t = arith.add %plus, %again : f32
  mem.store %p, %t
  %q = mem.offset %p, %long : ptr<f32>
  mem.store %q, %minus
  mem.store %b, %yes
  cf.return
}"""


def test_constants_merge_by_bits_and_type():
    args = [np.ones(3, np.float32), np.zeros(1, np.bool_)]
    after = unchanged_by(CSE, CONSTANTS, args)
    assert len(ops(after, ConstantOp)) == 5


def test_a_second_run_changes_nothing():
    args = [np.array([5, 3], np.int32), np.zeros(8, np.int32), 3, 4]
    function = lower(repeated, args)
    assert Cse().run(function)
    assert not Cse().run(function)
    assert not Cse().run(parse_function("func @f() {\n  cf.return\n}"))
