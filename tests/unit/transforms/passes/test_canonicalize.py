"""Canonicalization of whole loops: what a loop carries without changing it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.transforms.execute import ops, unchanged_by
from tilewright.ops import ForOp, WhileOp
from tilewright.transforms import Canonicalize

FOR = """
func @f(%y: ptr<i32>, %n: i32, %m: i32) {
  %zero = arith.constant {value = 0} : i32
  %one = arith.constant {value = 1} : i32
  %a, %b, %c = cf.for %zero, %n, %one, %m, %zero, %n : i32, i32, i32 (%i: i32, %x: i32, %s: i32, %t: i32) {
    %s2 = arith.add %s, %x : i32
    %s3 = arith.add %s2, %t : i32
    cf.yield %x, %s3, %n
  }
  mem.store %y, %a
  %p = mem.offset %y, %one : ptr<i32>
  mem.store %p, %b
  %q = mem.offset %p, %one : ptr<i32>
  mem.store %q, %c
  cf.return
}"""  # noqa: E501

WHILE = """
func @f(%y: ptr<i32>, %n: i32, %m: i32) {
  %one = arith.constant {value = 1} : i32
  %a, %b = cf.while %m, %n : i32, i32 (%x: i32, %k: i32) {
    %go = arith.compare %k, %x {predicate = "gt"} : i1
    cf.condition %go, %x, %k
  } (%x2: i32, %k2: i32) {
    %k3 = arith.sub %k2, %x2 : i32
    cf.yield %x2, %k3
  }
  mem.store %y, %a
  %p = mem.offset %y, %one : ptr<i32>
  mem.store %p, %b
  cf.return
}"""

WHILE_CHANGED_ON_THE_WAY = WHILE.replace("%go, %x, %k\n", "%go, %k, %x\n")


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_for_forgets_what_it_does_not_change(n: int):
    after = unchanged_by([Canonicalize()], FOR, [np.ones(3, np.int32), n, 5])
    assert [len(loop.results) for loop in ops(after, ForOp)] == [1]


@pytest.mark.parametrize("n", [0, 3, 9])
def test_a_while_forgets_what_it_does_not_change(n: int):
    after = unchanged_by([Canonicalize()], WHILE, [np.ones(2, np.int32), n, 2])
    assert [len(loop.results) for loop in ops(after, WhileOp)] == [1]


def test_a_while_keeps_what_its_first_block_changes():
    args = [np.ones(2, np.int32), 9, 2]
    after = unchanged_by([Canonicalize()], WHILE_CHANGED_ON_THE_WAY, args)
    assert [len(loop.results) for loop in ops(after, WhileOp)] == [2]


UNIFORM_TO_BASE = """
func @f(%x: ptr<i32>, %y: ptr<i32>, %n: i32, %m: i32) {
  %r = tile.range {start = 0, end = 4} : tile<4xi32>
  %xs = tile.splat %x {shape = [4]} : tile<4xptr<i32>>
  %p = mem.offset %xs, %r : tile<4xptr<i32>>
  %ns = tile.splat %n {shape = [4]} : tile<4xi32>
  %q = mem.offset %p, %ns : tile<4xptr<i32>>
  %two = arith.constant {value = 2} : tile<4xi64>
  %s = mem.offset %q, %two : tile<4xptr<i32>>
  %v = mem.load %s : tile<4xi32>
  %ys = tile.splat %y {shape = [4]} : tile<4xptr<i32>>
  %o = mem.offset %ys, %r : tile<4xptr<i32>>
  mem.store %o, %v
  cf.return
}"""


def test_the_uniform_part_of_an_address_is_in_its_base():
    args = [np.arange(64, dtype=np.int32), np.zeros(4, np.int32), 17, 0]
    after = unchanged_by([Canonicalize()], UNIFORM_TO_BASE, args)
    pointers = [op.type for op in after.walk() if op.opcode == "mem.offset"]
    assert [str(type_) for type_ in pointers].count("tile<4xptr<i32>>") == 2
