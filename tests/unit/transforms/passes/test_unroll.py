"""Unrolled loops run the same iterations in the same order."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.transforms.execute import lower, ops, unchanged_by
from tilewright.ir import parse_function
from tilewright.ops import ForOp, StoreOp
from tilewright.transforms import Canonicalize, Unroll


def trace(y, low, high):
    at = 0
    sum = 1
    for i in tl.range(low, high, 3, loop_unroll_factor=4):
        sum = sum * 3 + i
        tl.store(y + at, sum)
        at += 1
    tl.store(y + at, sum)
    tl.store(y + at + 1, at)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (0, 1), (-7, 5), (-7, 6), (2, 50), (5, -9), (9, -40), (0, 36)]
)
def test_every_number_of_iterations(low: int, high: int):
    args = [np.zeros(32, np.int32), low, high]
    after = unchanged_by([Unroll(), Canonicalize()], lower(trace, args), args)
    grouped, rest = ops(after, ForOp)
    assert len([op for op in grouped.body if isinstance(op, StoreOp)]) == 4
    assert len([op for op in rest.body if isinstance(op, StoreOp)]) == 1
    assert grouped.unroll is None and rest.unroll is None


def twelve(y, low, high):
    for i in tl.range(0, 12, loop_unroll_factor=4):
        tl.store(y + i, i * low)


def six(y, low, high):
    for i in tl.range(0, 6, loop_unroll_factor=6):
        tl.store(y + i, i * low)


@pytest.mark.parametrize(("kernel", "loops"), [(twelve, 1), (six, 0)])
def test_nothing_is_left_of_a_loop_that_divides(kernel, loops: int):
    args = [np.zeros(16, np.int32), 7, 0]
    after = unchanged_by([Unroll(), Canonicalize()], lower(kernel, args), args)
    assert len(ops(after, ForOp)) == loops


def test_the_limit():
    args = [np.zeros(32, np.int32), 1, 29]
    after = unchanged_by([Unroll(limit=2)], lower(trace, args), args)
    grouped, _ = ops(after, ForOp)
    assert len([op for op in grouped.body if isinstance(op, StoreOp)]) == 2


UNSIGNED = """
func @f(%y: ptr<u8>, %low: u8, %high: u8) {{
  %step = arith.constant {{value = {step}}} : u8
  %x = arith.constant {{value = 0}} : u8
  %one = arith.constant {{value = 1}} : u8
  %r = cf.for %low, %high, %step, %x {{unroll = 4}} : u8 (%i: u8, %n: u8) {{
    %p = mem.offset %y, %n : ptr<u8>
    mem.store %p, %i
    %m = arith.add %n, %one : u8
    cf.yield %m
  }}
  %end = mem.offset %y, %r : ptr<u8>
  mem.store %end, %high
  cf.return
}}"""


@pytest.mark.parametrize(("low", "high"), [(0, 250), (9, 3), (240, 255), (3, 200)])
def test_unsigned_indices(low: int, high: int):
    args = [np.zeros(64, np.uint8), low, high]
    after = unchanged_by([Unroll()], UNSIGNED.format(step=5), args)
    assert len(ops(after, ForOp)) == 2


def test_steps_that_do_not_fit_are_left_alone():
    assert not Unroll().run(parse_function(UNSIGNED.format(step=70)))
