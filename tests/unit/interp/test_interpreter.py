"""Control flow, reductions, scans, the grid, messages: from text to results."""

import numpy as np
import pytest

from tests.unit.interp.kernels import run_text
from tilewright.support import errors


def test_for_carries_values():
    text = """
func @f(%out: ptr<i32>, %low: i32, %high: i32, %step: i32) {
  %zero = arith.constant {value = 0} : i32
  %one = arith.constant {value = 1} : i32
  %sum, %count = cf.for %low, %high, %step, %zero, %zero : i32, i32 (%i: i32, %s: i32, %c: i32) {
    %s2 = arith.add %s, %i : i32
    %c2 = arith.add %c, %one : i32
    cf.yield %s2, %c2
  }
  mem.store %out, %sum
  %next = mem.offset %out, %one : ptr<i32>
  mem.store %next, %count
  cf.return
}"""
    out = np.zeros(2, np.int32)
    run_text(text, out, 3, 20, 4)
    assert out.tolist() == [sum(range(3, 20, 4)), len(range(3, 20, 4))]
    run_text(text, out, 5, 5, 1)
    assert out.tolist() == [0, 0]
    with pytest.raises(errors.InterpreterError, match="step of a loop must be positive, found 0"):
        run_text(text, out, 0, 5, 0)


def test_while():
    text = """
func @collatz(%out: ptr<i32>, %n: i32) {
  %zero = arith.constant {value = 0} : i32
  %one = arith.constant {value = 1} : i32
  %two = arith.constant {value = 2} : i32
  %three = arith.constant {value = 3} : i32
  %last, %steps = cf.while %n, %zero : i32, i32 (%a: i32, %s: i32) {
    %go = arith.compare %a, %one {predicate = "ne"} : i1
    cf.condition %go, %a, %s
  } (%a2: i32, %s2: i32) {
    %rest = arith.rem %a2, %two : i32
    %odd = arith.compare %rest, %one {predicate = "eq"} : i1
    %next = cf.if %odd : i32 () {
      %t = arith.mul %a2, %three : i32
      %u = arith.add %t, %one : i32
      cf.yield %u
    } () {
      %h = arith.div %a2, %two : i32
      cf.yield %h
    }
    %s3 = arith.add %s2, %one : i32
    cf.yield %next, %s3
  }
  mem.store %out, %steps
  cf.return
}"""
    out = np.zeros(1, np.int32)
    run_text(text, out, 27)
    assert out[0] == 111


REDUCE = """
func @f(%x: ptr<{t}>, %out: ptr<{t}>) {{
  %rows = tile.range {{start = 0, end = {m}}} : tile<{m}xi32>
  %columns = tile.range {{start = 0, end = {n}}} : tile<{n}xi32>
  %r = tile.expand_dims %rows {{axis = 1}} : tile<{m}x1xi32>
  %c = tile.expand_dims %columns {{axis = 0}} : tile<1x{n}xi32>
  %rb = tile.broadcast %r {{shape = [{m}, {n}]}} : tile<{m}x{n}xi32>
  %cb = tile.broadcast %c {{shape = [{m}, {n}]}} : tile<{m}x{n}xi32>
  %width = arith.constant {{value = {n}}} : tile<{m}x{n}xi32>
  %start = arith.mul %rb, %width : tile<{m}x{n}xi32>
  %i = arith.add %start, %cb : tile<{m}x{n}xi32>
  %xs = tile.splat %x {{shape = [{m}, {n}]}} : tile<{m}x{n}xptr<{t}>>
  %p = mem.offset %xs, %i : tile<{m}x{n}xptr<{t}>>
  %v = mem.load %p : tile<{m}x{n}x{t}>
  {fold}
  cf.return
}}"""
STORE_COLUMNS = """
  %os = tile.splat %out {{shape = [{k}]}} : tile<{k}xptr<{t}>>
  %oi = tile.range {{start = 0, end = {k}}} : tile<{k}xi32>
  %o = mem.offset %os, %oi : tile<{k}xptr<{t}>>
  mem.store %o, %s
"""
STORE_TILE = """
  %os = tile.splat %out {{shape = [{m}, {n}]}} : tile<{m}x{n}xptr<{t}>>
  %o = mem.offset %os, %i : tile<{m}x{n}xptr<{t}>>
  mem.store %o, %s
"""
COMBINES = {
    "add": ("%c0 = arith.add %a, %b : {t}\n cf.yield %c0", np.add),
    "max": ("%c0 = arith.max %a, %b : {t}\n cf.yield %c0", np.maximum),
    "left": ("cf.yield %a", None),
    "right": ("cf.yield %b", None),
    # not element-wise, so that elements are folded one by one
    "branch": (
        """%g = arith.compare %a, %b {{predicate = "gt"}} : i1
        %c0 = cf.if %g : {t} () {{ cf.yield %a }} () {{ cf.yield %b }}
        cf.yield %c0""",
        np.maximum,
    ),
}


def fold(op, combine, axis, t, m, n, extra=""):
    kept = m if axis == 1 else n
    result = f"tile<{kept}x{t}>" if op == "reduce" else f"tile<{m}x{n}x{t}>"
    store = STORE_COLUMNS if op == "reduce" else STORE_TILE
    body = COMBINES[combine][0].format(t=t)
    lines = f"""%s = tile.{op} %v {{axis = {axis}{extra}}} : {result} (%a: {t}, %b: {t}) {{
      {body}
    }}""" + store.format(k=kept, m=m, n=n, t=t)
    return REDUCE.format(t=t, m=m, n=n, fold=lines)


@pytest.mark.parametrize("combine", ["add", "max", "branch"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("m, n", [(4, 8), (1, 16), (3, 5), (7, 1)])
def test_reduce(combine, axis, m, n):
    x = np.random.default_rng(1).integers(-50, 50, (m, n)).astype(np.int32)
    out = np.zeros(m if axis == 1 else n, np.int32)
    run_text(fold("reduce", combine, axis, "i32", m, n), x, out)
    assert out.tolist() == COMBINES[combine][1].reduce(x, axis).tolist()


@pytest.mark.parametrize("combine", ["add", "max", "branch"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("m, n", [(4, 8), (3, 5)])
def test_scan(combine, axis, reverse, m, n):
    x = np.random.default_rng(1).integers(-50, 50, (m, n)).astype(np.int32)
    out = np.zeros_like(x)
    extra = ", reverse = true" if reverse else ""
    run_text(fold("scan", combine, axis, "i32", m, n, extra), x, out)
    flipped = np.flip(x, axis) if reverse else x
    wanted = COMBINES[combine][1].accumulate(flipped, axis)
    assert out.tolist() == (np.flip(wanted, axis) if reverse else wanted).tolist()


def test_left_and_right_are_kept_apart():
    x = np.arange(20, dtype=np.int32).reshape(4, 5)
    out = np.zeros(4, np.int32)
    run_text(fold("reduce", "left", 1, "i32", 4, 5), x, out)
    assert out.tolist() == x[:, 0].tolist()
    run_text(fold("reduce", "right", 1, "i32", 4, 5), x, out)
    assert out.tolist() == x[:, -1].tolist()
    whole = np.zeros_like(x)
    run_text(fold("scan", "left", 1, "i32", 4, 5), x, whole)
    assert whole.tolist() == np.repeat(x[:, :1], 5, 1).tolist()


def test_float_sums_are_pairwise():
    x = np.full((1, 1024), 0.1, np.float32)
    out = np.zeros(1, np.float32)
    run_text(fold("reduce", "add", 1, "f32", 1, 1024), x, out)
    assert abs(out[0] - 1024 * float(np.float32(0.1))) < 1e-4


def test_several_tiles_fold_together():
    text = """
func @argmax(%x: ptr<f32>, %value: ptr<f32>, %index: ptr<i32>) {
  %i = tile.range {start = 0, end = 8} : tile<8xi32>
  %xs = tile.splat %x {shape = [8]} : tile<8xptr<f32>>
  %p = mem.offset %xs, %i : tile<8xptr<f32>>
  %v = mem.load %p : tile<8xf32>
  %m, %k = tile.reduce %v, %i {axis = 0} : f32, i32 (%a: f32, %ai: i32, %b: f32, %bi: i32) {
    %g = arith.compare %a, %b {predicate = "ge"} : i1
    %c = arith.select %g, %a, %b : f32
    %ci = arith.select %g, %ai, %bi : i32
    cf.yield %c, %ci
  }
  mem.store %value, %m
  mem.store %index, %k
  cf.return
}"""
    x = np.array([3, 1, 4, 1, 5, 9, 2, 9], np.float32)
    value, index = np.zeros(1, np.float32), np.zeros(1, np.int32)
    run_text(text, x, value, index)
    assert value[0] == 9 and index[0] == 5


GRID = """
func @f(%out: ptr<i32>) {
  %x = cf.program_id {axis = 0} : i32
  %y = cf.program_id {axis = 1} : i32
  %z = cf.program_id {axis = 2} : i32
  %nx = cf.num_programs {axis = 0} : i32
  %ny = cf.num_programs {axis = 1} : i32
  %zy = arith.mul %z, %ny : i32
  %row = arith.add %zy, %y : i32
  %start = arith.mul %row, %nx : i32
  %i = arith.add %start, %x : i32
  %p = mem.offset %out, %i : ptr<i32>
  %one = arith.constant {value = 1} : i32
  %old = mem.load %p : i32
  %new = arith.add %old, %one : i32
  mem.store %p, %new
  cf.print %x, %y {prefix = "at"}
  cf.return
}"""


def test_each_program_runs_once_the_first_axis_fastest():
    out, lines = np.zeros(24, np.int32), []
    run_text(GRID, out, grid=(2, 3, 4), write=lines.append)
    assert (out == 1).all() and len(lines) == 24
    assert lines[1] == (
        "pid (1, 0, 0) idx () at: (operand 0) 1\npid (1, 0, 0) idx () at: (operand 1) 0\n"
    )
    assert lines[2].startswith("pid (0, 1, 0)")


def test_one_program_alone_and_wrong_grids():
    out = np.zeros(6, np.int32)
    run_text(GRID, out, grid=(2, 3), pid=(1, 2), write=lambda text: None)
    assert out.tolist() == [0, 0, 0, 0, 0, 1]
    with pytest.raises(errors.InterpreterError, match=r"has no program \(2, 0, 0\)"):
        run_text(GRID, out, grid=(2,), pid=(2,))
    with pytest.raises(errors.BadGrid):
        run_text(GRID, out, grid=())
    with pytest.raises(errors.BadGrid):
        run_text(GRID, out, grid=(1, 1, 1, 1))


def test_an_empty_grid_runs_nothing():
    out = np.zeros(1, np.int32)
    run_text(GRID, out, grid=(0,))
    assert out[0] == 0


def test_print_shows_each_element_with_its_index(capsys):
    text = """
func @f() {
  %i = tile.range {start = 10, end = 12} : tile<2xi32>
  cf.print %i {prefix = "i"}
  cf.print %i {prefix = "i", hex = true}
  cf.print {prefix = "done"}
  cf.return
}"""
    run_text(text)
    assert capsys.readouterr().out.splitlines() == [
        "pid (0, 0, 0) idx (0) i: 10",
        "pid (0, 0, 0) idx (1) i: 11",
        "pid (0, 0, 0) idx (0) i: 0x0000000a",
        "pid (0, 0, 0) idx (1) i: 0x0000000b",
        "pid (0, 0, 0) done",
    ]


def test_assertions():
    text = """
func @f(%n: i32, %m: i32) {
  %i = tile.range {start = 0, end = 4} : tile<4xi32>
  %ns = tile.splat %n {shape = [4]} : tile<4xi32>
  %ms = tile.splat %m {shape = [4]} : tile<4xi32>
  %holds = arith.compare %i, %ns {predicate = "lt"} : tile<4xi1>
  %mask = arith.compare %i, %ms {predicate = "lt"} : tile<4xi1>
  cf.assert %holds, %mask {message = "too large"}
  cf.return
}"""
    run_text(text, 4, 4)
    run_text(text, 3, 3)
    with pytest.raises(
        errors.DeviceAssertionFailure, match=r"\(1, 0, 0\): too large at index \(3,\)"
    ):
        run_text(text, 3, 4, grid=(2,), pid=(1,))


def test_assumptions_are_checked():
    text = """
func @f(%n: i32) {
  %zero = arith.constant {value = 0} : i32
  %c = arith.compare %n, %zero {predicate = "gt"} : i1
  cf.assume %c
  cf.return
}"""
    run_text(text, 1)
    with pytest.raises(errors.InterpreterError, match="assumption does not hold"):
        run_text(text, 0)
