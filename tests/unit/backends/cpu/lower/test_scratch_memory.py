"""Scratch memory: what is needed at one time has places of its own, what is not may share."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import assert_as_interpreted, lowered
from tilewright.backends.cpu.lower.scratch_memory import Scratch, ScratchBlock

_HEAD = """func @k(%X: ptr<i32>, %Y: ptr<i32>, %n: i32) {
  %i = tile.range {start = 0, end = 16} : tile<16xi32>
  %xs = tile.splat %X {shape = [16]} : tile<16xptr<i32>>
  %xp = mem.offset %xs, %i : tile<16xptr<i32>>
  %ys = tile.splat %Y {shape = [16]} : tile<16xptr<i32>>
  %yp = mem.offset %ys, %i : tile<16xptr<i32>>
  %zero = arith.constant {value = 0} : i32
  %one = arith.constant {value = 1} : i32
  %x = mem.load %xp : tile<16xi32>
"""
T = "tile<16xi32>"


def scan(result: str, operand: str) -> str:
    return f"""
      %{result} = tile.scan %{operand} {{axis = 0}} : {T} (%a{result}: i32, %b{result}: i32) {{
        %c{result} = arith.add %a{result}, %b{result} : i32
        cf.yield %c{result}
      }}"""


def offsets(scratch: Scratch) -> list[int]:
    lines, _ = scratch.assign_offsets()
    return [int(line.rsplit(" ", 1)[1]) for line in lines]


def touched_at(scratch: Scratch, block: ScratchBlock, *times: int) -> None:
    for time in times:
        scratch.clock = time
        block.touch()


def test_blocks_take_turns():
    scratch = Scratch()
    first = scratch.allocate("%a", 100)
    touched_at(scratch, first, 2)
    scratch.clock = 3
    scratch.allocate("%b", 100)
    lines, total = scratch.assign_offsets()
    assert lines == [f"%{n} = getelementptr i8, ptr %scratch, i64 0" for n in "ab"]
    assert total == 128


def test_blocks_of_one_step_do_not_share():
    scratch = Scratch()
    first = scratch.allocate("%a", 64)
    touched_at(scratch, first, 2)
    scratch.allocate("%b", 64)
    assert offsets(scratch) == [0, 64]


def test_what_is_there_before_a_loop_and_used_in_it_outlives_it():
    scratch = Scratch()
    outer = scratch.allocate("%outer", 64)
    unused = scratch.allocate("%unused", 64)
    with scratch.loop():
        scratch.step()
        outer.touch()
        scratch.step()
        inner = scratch.allocate("%inner", 64)
        scratch.step()
    assert outer.last > inner.last
    assert unused.last < inner.first
    found = offsets(scratch)
    assert found[0] != found[2]
    assert found[1] == found[2]


def test_nested_loops():
    scratch = Scratch()
    outer = scratch.allocate("%outer", 64)
    with scratch.loop():
        scratch.step()
        middle = scratch.allocate("%middle", 64)
        with scratch.loop():
            outer.touch()
            middle.touch()
            scratch.step()
            inner = scratch.allocate("%inner", 64)
        scratch.step()
        later = scratch.allocate("%later", 64)
        scratch.step()
    assert outer.last > later.last
    assert inner.last <= middle.last < later.first
    found = offsets(scratch)
    assert found[3] in found[1:3]
    assert found[0] not in found[1:]


def test_no_blocks():
    assert Scratch().assign_offsets() == ([], 0)


def test_dead_tiles_make_room():
    """Three scans in a row: each needs the one before, none the one before that."""
    body = "".join(scan(f"s{k}", "x" if k == 0 else f"s{k - 1}") for k in range(5))
    text = f"{_HEAD}{body}\nmem.store %yp, %s4\ncf.return\n}}"
    assert lowered(text).scratch_bytes == 128
    assert_as_interpreted(text, [np.arange(16, dtype=np.int32), np.zeros(16, np.int32), 0])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_loop_may_read_again_what_it_read_first(n: int):
    """%t is read early in the body; what comes later must not take its place."""
    body = f"""
      {scan("t", "x")}
      %r = cf.for %zero, %n, %one, %x : {T} (%k: i32, %p: {T}) {{
        {scan("u", "t")}
        {scan("v", "u")}
        {scan("w", "v")}
        %q = arith.add %p, %w : {T}
        cf.yield %q
      }}
      mem.store %yp, %r"""
    text = f"{_HEAD}{body}\ncf.return\n}}"
    assert_as_interpreted(text, [np.arange(16, dtype=np.int32), np.zeros(16, np.int32), n])
    code = lowered(text).text
    places = dict(re.findall(r"(%buffer\d+) = getelementptr i8, ptr %scratch, i64 (\d+)", code))
    assert len(set(places.values())) < len(places)


def test_what_lives_together_never_overlaps():
    scratch = Scratch()
    for size in (64, 640, 128, 64, 1000, 64):
        scratch.allocate("%b", size)
    found = offsets(scratch)
    for (a, at), (b, place) in combinations(zip(scratch.blocks, found, strict=True), 2):
        assert at + a.bytes <= place or place + b.bytes <= at


def test_tiles_of_four_mebibytes():
    """1024 x 1024 numbers: scratch memory is on the heap."""
    text = """func @k(%X: ptr<f32>, %Y: ptr<f32>) {
      %i = tile.range {start = 0, end = 1048576} : tile<1048576xi32>
      %j = tile.reshape %i {shape = [1024, 1024]} : tile<1024x1024xi32>
      %xs = tile.splat %X {shape = [1024, 1024]} : tile<1024x1024xptr<f32>>
      %xp = mem.offset %xs, %j : tile<1024x1024xptr<f32>>
      %ys = tile.splat %Y {shape = [1024, 1024]} : tile<1024x1024xptr<f32>>
      %yp = mem.offset %ys, %j : tile<1024x1024xptr<f32>>
      %x = mem.load %xp : tile<1024x1024xf32>
      %t = tile.transpose %x {order = [1, 0]} : tile<1024x1024xf32>
      %s = tile.scan %t {axis = 1} : tile<1024x1024xf32> (%a: f32, %b: f32) {
        %m = arith.max %a, %b : f32
        cf.yield %m
      }
      mem.store %yp, %s
      cf.return
    }"""
    assert 4 << 20 <= lowered(text).scratch_bytes <= 9 << 20
    x = np.random.default_rng(0).integers(0, 1 << 20, 1 << 20).astype(np.float32)
    assert_as_interpreted(text, [x, np.zeros(1 << 20, np.float32)])
