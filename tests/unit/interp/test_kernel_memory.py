"""Loads, stores and atomics: values, masks, bounds, aliases."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit.interp.kernels import run_text
from tilewright.interp import Memory
from tilewright.support import errors

COPY = """
func @copy(%x: ptr<{t}>, %y: ptr<{t}>, %n: i32) {{
  %pid = cf.program_id {{axis = 0}} : i32
  %size = arith.constant {{value = 8}} : i32
  %start = arith.mul %pid, %size : i32
  %starts = tile.splat %start {{shape = [8]}} : tile<8xi32>
  %range = tile.range {{start = 0, end = 8}} : tile<8xi32>
  %i = arith.add %starts, %range : tile<8xi32>
  %ns = tile.splat %n {{shape = [8]}} : tile<8xi32>
  %mask = arith.compare %i, %ns {{predicate = "lt"}} : tile<8xi1>
  %xs = tile.splat %x {{shape = [8]}} : tile<8xptr<{t}>>
  %ys = tile.splat %y {{shape = [8]}} : tile<8xptr<{t}>>
  %from = mem.offset %xs, %i : tile<8xptr<{t}>>
  %to = mem.offset %ys, %i : tile<8xptr<{t}>>
  %v = mem.load %from, %mask : tile<8x{t}>
  mem.store %to, %v, %mask
  cf.return
}}
"""
NUMPY = {
    "f32": np.float32,
    "i64": np.int64,
    "u8": np.uint8,
    "i1": np.bool_,
    "bf16": ml_dtypes.bfloat16,
}


@pytest.mark.parametrize("name", NUMPY)
def test_masked_copy(name):
    x = (np.arange(21) % 5).astype(NUMPY[name])
    y = np.zeros(21, NUMPY[name])
    run_text(COPY.format(t=name), x, y, 21, grid=(3,))
    assert np.array_equal(x, y)


def test_lanes_that_are_masked_off_touch_nothing():
    y = np.full(8, 9.0, np.float32)
    run_text(COPY.format(t="f32"), np.ones(3, np.float32), y, 3)
    assert y.tolist() == [1, 1, 1, 9, 9, 9, 9, 9]


def test_reading_past_the_end_names_argument_element_program_and_lane():
    x, y = np.zeros(20, np.float32), np.zeros(64, np.float32)
    with pytest.raises(errors.OutOfBounds) as caught:
        run_text(COPY.format(t="f32"), x, y, 21, grid=(3,))
    assert "load at element 20 of argument 'x', which has 20 elements" in str(caught.value)
    assert "program (2, 0, 0), tile index (4,)" in str(caught.value)


def test_writing_past_the_end_changes_nothing():
    x, y = np.ones(64, np.float32), np.zeros(20, np.float32)
    with pytest.raises(errors.OutOfBounds, match="store at element 20 of argument 'y'"):
        run_text(COPY.format(t="f32"), x, y, 64, grid=(3,), pid=(2,))
    assert not y.any()


def test_an_array_beside_the_right_one_does_not_help():
    both = np.zeros(16, np.float32)
    with pytest.raises(errors.OutOfBounds, match="element 4 of argument 'x'"):
        run_text(COPY.format(t="f32"), both[:4], both[4:], 8)


def test_negative_elements_are_outside():
    text = """
func @f(%x: ptr<f32>) {
  %i = arith.constant {value = -1} : i32
  %p = mem.offset %x, %i : ptr<f32>
  %v = mem.load %p : f32
  cf.return
}"""
    with pytest.raises(errors.OutOfBounds, match=r"element -1 of argument 'x'.*\(program"):
        run_text(text, np.zeros(4, np.float32))


def test_read_only_arrays_can_be_read_but_not_stored_to():
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    x.flags.writeable = False
    run_text(COPY.format(t="f32"), x, y, 8)
    assert y.all()
    with pytest.raises(errors.ReadOnlyArray, match="'y' is a read-only array, but copy stores"):
        run_text(COPY.format(t="f32"), y, x, 8)


def test_strided_views_are_bounded_by_their_own_extent():
    matrix = np.arange(64, dtype=np.float32).reshape(8, 8)
    y = np.zeros(8, np.float32)
    run_text(COPY.format(t="f32"), matrix[2:4, :], y, 8)
    assert y.tolist() == matrix[2].tolist()
    with pytest.raises(errors.OutOfBounds):
        run_text(COPY.format(t="f32"), matrix[2, :4], y, 8)
    backwards = matrix[0, ::-1]  # its first element is the last in memory
    with pytest.raises(errors.OutOfBounds, match="element 8 of argument 'x'"):
        run_text(COPY.format(t="f32"), backwards, y, 8)


def test_one_array_as_two_arguments():
    x = np.arange(8, dtype=np.float32)
    run_text(COPY.format(t="f32"), x, x, 8)
    assert x.tolist() == list(range(8))


def test_empty_arrays_cannot_be_accessed():
    empty = np.zeros(0, np.float32)
    run_text(COPY.format(t="f32"), empty, empty, 0)
    with pytest.raises(errors.OutOfBounds, match="which has 0 elements"):
        run_text(COPY.format(t="f32"), empty, empty, 1)


OTHER = """
func @f(%x: ptr<i32>, %y: ptr<i32>, %z: ptr<i32>) {
  %i = tile.range {start = 0, end = 4} : tile<4xi32>
  %two = arith.constant {value = 2} : tile<4xi32>
  %mask = arith.compare %i, %two {predicate = "lt"} : tile<4xi1>
  %xs = tile.splat %x {shape = [4]} : tile<4xptr<i32>>
  %from = mem.offset %xs, %i : tile<4xptr<i32>>
  %a = mem.load %from, %mask, %two : tile<4xi32>
  %b = mem.load %from, %mask : tile<4xi32>
  %ys = tile.splat %y {shape = [4]} : tile<4xptr<i32>>
  %ya = mem.offset %ys, %i : tile<4xptr<i32>>
  mem.store %ya, %a
  %zs = tile.splat %z {shape = [4]} : tile<4xptr<i32>>
  %za = mem.offset %zs, %i : tile<4xptr<i32>>
  mem.store %za, %b
  cf.return
}"""


def test_lanes_that_are_masked_off_have_other_or_0():
    y, z = np.zeros(4, np.int32), np.zeros(4, np.int32)
    run_text(OTHER, np.array([7, 8], np.int32), y, z)
    assert y.tolist() == [7, 8, 2, 2]
    assert z.view(np.uint32).tolist() == [7, 8, 0, 0]


def test_unaligned_addresses_work():
    text = """
func @f(%x: ptr<u8>, %y: ptr<f32>) {
  %one = arith.constant {value = 1} : i32
  %p = mem.offset %x, %one : ptr<u8>
  %q = arith.bitcast %p : ptr<f32>
  %v = mem.load %q : f32
  mem.store %y, %v
  %two = arith.add %v, %v : f32
  mem.store %q, %two
  cf.return
}"""
    raw, y = np.zeros(8, np.uint8), np.zeros(1, np.float32)
    raw[1:5] = np.frombuffer(np.float32(1.5).tobytes(), np.uint8)
    run_text(text, raw, y)
    assert y[0] == 1.5 and np.frombuffer(raw[1:5].tobytes(), np.float32)[0] == 3.0


THROUGH_INTEGER = """
func @f(%table: ptr<i64>, %y: ptr<f32>) {
  %address = mem.load %table : i64
  %p = arith.cast %address : ptr<f32>
  %v = mem.load %p : f32
  mem.store %y, %v
  %w = arith.add %v, %v : f32
  mem.store %p, %w
  cf.return
}"""


def test_a_table_of_addresses_may_point_outside_of_all_arguments():
    target, y = np.array([2.5], np.float32), np.zeros(1, np.float32)
    table = np.array([target.__array_interface__["data"][0]])
    run_text(THROUGH_INTEGER, table, y)
    assert y[0] == 2.5 and target[0] == 5.0


@pytest.mark.parametrize("address", [0, 64, 2**63 - 8, -8])
def test_a_wild_address_is_an_error_and_no_crash(address):
    with pytest.raises(errors.OutOfBounds, match="is in no array argument"):
        run_text(THROUGH_INTEGER, np.array([address]), np.zeros(1, np.float32))


def test_pointers_that_were_selected_may_come_from_either_argument():
    text = """
func @f(%x: ptr<f32>, %y: ptr<f32>, %out: ptr<f32>) {
  %i = tile.range {start = 0, end = 4} : tile<4xi32>
  %two = arith.constant {value = 2} : tile<4xi32>
  %first = arith.compare %i, %two {predicate = "lt"} : tile<4xi1>
  %xs = tile.splat %x {shape = [4]} : tile<4xptr<f32>>
  %ys = tile.splat %y {shape = [4]} : tile<4xptr<f32>>
  %xi = mem.offset %xs, %i : tile<4xptr<f32>>
  %yi = mem.offset %ys, %i : tile<4xptr<f32>>
  %p = arith.select %first, %xi, %yi : tile<4xptr<f32>>
  %v = mem.load %p : tile<4xf32>
  %os = tile.splat %out {shape = [4]} : tile<4xptr<f32>>
  %o = mem.offset %os, %i : tile<4xptr<f32>>
  mem.store %o, %v
  cf.return
}"""
    x, y, out = np.arange(4.0), np.arange(10.0, 14.0), np.zeros(4, np.float32)
    run_text(text, x.astype(np.float32), y.astype(np.float32), out)
    assert out.tolist() == [0, 1, 12, 13]


ATOMIC = """
func @f(%x: ptr<{t}>, %index: ptr<i32>, %value: ptr<{t}>, %old: ptr<{t}>) {{
  %i = tile.range {{start = 0, end = 8}} : tile<8xi32>
  %is = tile.splat %index {{shape = [8]}} : tile<8xptr<i32>>
  %ip = mem.offset %is, %i : tile<8xptr<i32>>
  %k = mem.load %ip : tile<8xi32>
  %zero = arith.constant {{value = 0}} : tile<8xi32>
  %mask = arith.compare %k, %zero {{predicate = "ge"}} : tile<8xi1>
  %vs = tile.splat %value {{shape = [8]}} : tile<8xptr<{t}>>
  %vp = mem.offset %vs, %i : tile<8xptr<{t}>>
  %v = mem.load %vp : tile<8x{t}>
  %xs = tile.splat %x {{shape = [8]}} : tile<8xptr<{t}>>
  %xp = mem.offset %xs, %k : tile<8xptr<{t}>>
  %o = mem.atomic %xp, %v, %mask {{kind = "{kind}"}} : tile<8x{t}>
  %os = tile.splat %old {{shape = [8]}} : tile<8xptr<{t}>>
  %op = mem.offset %os, %i : tile<8xptr<{t}>>
  mem.store %op, %o, %mask
  cf.return
}}"""
KINDS = {
    "add": lambda x, y: x + y,
    "max": max,
    "min": min,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "xchg": lambda x, y: y,
}


@pytest.mark.parametrize("kind", KINDS)
def test_atomics_take_turns_in_order(kind):
    rng = np.random.default_rng(7)
    x = rng.integers(0, 100, 4).astype(np.int32)
    index = np.array([0, 3, 0, -1, 0, 3, 1, -1], np.int32)
    value = rng.integers(0, 100, 8).astype(np.int32)
    old = np.zeros(8, np.int32)
    expected, expected_old = x.copy(), old.copy()
    for lane, place in enumerate(index):
        if place >= 0:
            expected_old[lane] = expected[place]
            expected[place] = KINDS[kind](expected[place], value[lane])
    run_text(ATOMIC.format(t="i32", kind=kind), x, index, value, old)
    assert x.tolist() == expected.tolist() and old.tolist() == expected_old.tolist()


def test_atomic_add_of_small_floats_rounds_each_sum():
    x, old = np.array([256], ml_dtypes.bfloat16), np.zeros(8, ml_dtypes.bfloat16)
    value = np.ones(8, ml_dtypes.bfloat16)
    run_text(ATOMIC.format(t="bf16", kind="add"), x, np.zeros(8, np.int32), value, old)
    assert float(x[0]) == 256  # 256 + 1 is a tie that rounds to even, eight times


def test_compare_and_swap():
    text = """
func @f(%x: ptr<f32>, %e: f32, %n: f32, %old: ptr<f32>) {
  %o = mem.atomic_cas %x, %e, %n : f32
  mem.store %old, %o
  cf.return
}"""
    x, old = np.array([1.0], np.float32), np.zeros(1, np.float32)
    run_text(text, x, 2.0, 3.0, old)
    assert x[0] == 1 and old[0] == 1
    run_text(text, x, 1.0, 3.0, old)
    assert x[0] == 3 and old[0] == 1


def test_overlapping_arrays_are_one_range():
    memory = Memory()
    base = np.zeros(16, np.int32)
    first, second = memory.add("a", base[:10]), memory.add("b", base[6:])
    assert first.covers(first.start, first.stop) and not first.covers(second.start, second.stop)
    assert len(memory.spans) == 1
    assert memory.spans[0].name == "a' and 'b" and memory.spans[0].stop == second.stop


def test_wrong_arguments_of_a_function():
    with pytest.raises(errors.ArgumentCount):
        run_text(COPY.format(t="f32"), np.zeros(3, np.float32))
    with pytest.raises(errors.UnsupportedArgument, match="argument 'x' is a float64 array"):
        run_text(COPY.format(t="f32"), np.zeros(3), np.zeros(3, np.float32), 3)
    with pytest.raises(errors.UnsupportedArgument, match="argument 'n'"):
        x = np.zeros(3, np.float32)
        run_text(COPY.format(t="f32"), x, x, np.zeros(1))
