"""Lane values: what stays uniform or affine, what becomes a vector, and that it is exact."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import assert_as_interpreted, lowered
from tilewright.backends.cpu.lower.lane_values import Address, LaneMath, Lanes, literal, uniform
from tilewright.llvm import Code, ModuleText, Val, integer_literal


@pytest.fixture
def code() -> Code:
    return Code(ModuleText())


@pytest.fixture
def math(code: Code) -> LaneMath:
    return LaneMath(code, 8)


def affine(stride: int = 1, multiple: int = 8, type_: str = "i32") -> Lanes:
    return Lanes(Val("%i", type_), stride, multiple)


def emitted(code: Code) -> str:
    return "\n".join(code.sections[0])


def test_sums_of_affine_numbers_stay_affine(math: LaneMath, code: Code):
    found = math.add(affine(), literal(4))
    assert (found.stride, found.multiple) == (1, 4)
    assert emitted(code) == "%v1 = add i32 %i, 4"
    assert math.add(affine(2), affine(3)).stride == 5
    assert math.add(affine(2), affine(3), "sub").stride == -1


def test_adding_nothing_emits_nothing(math: LaneMath, code: Code):
    assert math.add(affine(), literal(0)).base == affine().base
    assert math.add(literal(0), affine()).base == affine().base
    assert math.add(literal(2), literal(3)).base.constant == 5
    assert math.add(literal(2), literal(3), "sub").base.constant == -1
    assert not emitted(code)


def test_literals_wrap(math: LaneMath):
    assert math.add(literal(2**31 - 1), literal(1)).base.constant == -(2**31)
    assert math.multiply(literal(2**20), literal(2**12)).base.constant == 0
    assert math.multiply(literal(100, "i8"), literal(2, "i8")).base.constant == -56


def test_products_scale_the_stride(math: LaneMath):
    found = math.multiply(affine(), literal(12))
    assert (found.stride, found.multiple) == (12, 96)
    assert math.multiply(literal(12), affine()).stride == 12
    assert math.multiply(affine(), literal(1)) == affine()
    assert math.multiply(affine(), literal(0)).base.constant == 0


def test_products_by_what_is_not_known_are_vectors(math: LaneMath):
    factor = uniform(Val("%n", "i32"))
    assert math.multiply(affine(), factor).is_vector
    assert math.multiply(factor, factor).is_uniform
    assert math.multiply(affine(), affine()).is_vector


def test_a_vector_of_affine_lanes(math: LaneMath, code: Code):
    vector = math.vector(affine(3))
    assert vector.type == "<8 x i32>"
    assert "<i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>" in emitted(code)


def test_one_lane_is_uniform(code: Code):
    assert LaneMath(code, 1).wrap(Val("%x", "i32")).is_uniform
    assert LaneMath(code, 8).wrap(Val("%x", "<8 x i32>")).is_vector


def test_division_of_an_aligned_step_stays_scalar(math: LaneMath):
    """8 lanes from a multiple of 8 lie in one row of 16."""
    quotient, remainder = math.divide(affine(), 16)
    assert quotient.is_uniform
    assert remainder.stride == 1


@pytest.mark.parametrize(("lanes", "divisor"), [(affine(multiple=4), 16), (affine(), 12)])
def test_division_across_rows_is_a_vector(math: LaneMath, lanes: Lanes, divisor: int):
    assert all(found.is_vector for found in math.divide(lanes, divisor))


def test_division_by_one(math: LaneMath):
    quotient, remainder = math.divide(affine(), 1)
    assert quotient == affine()
    assert remainder.base.constant == 0


def test_widening(math: LaneMath, code: Code):
    found = math.widen(affine(2), True, "i64")
    assert (found.base.type, found.stride, found.multiple) == ("i64", 2, 8)
    assert "sext i32 %i to i64" in emitted(code)
    assert math.widen(literal(-4), True, "i64").base.constant == -4
    assert math.widen(literal(-4), False, "i64").base.constant == 2**32 - 4


@pytest.mark.parametrize(
    ("lanes", "counts"),
    [
        (affine(), True),
        (affine(multiple=4), False),
        (affine(2), False),
        (affine(2, 16), True),
        (affine(-1), False),
        (affine(multiple=24), True),
        (affine(16, 1 << 30), True),
        (affine(32, 1 << 30, "i8"), False),
    ],
)
def test_steps_from_aligned_starts_do_not_wrap(math: LaneMath, lanes: Lanes, counts: bool):
    assert math.counts_up(lanes) == counts


def test_coordinates_are_32_bits(math: LaneMath):
    assert math.coordinate(affine(type_="i64"), True).base.type == "i32"
    assert math.coordinate(affine(type_="i16"), False).base.type == "i32"
    assert math.coordinate(affine(), True) == affine()
    assert math.coordinate(literal(3, "i64"), True).base == integer_literal(3)


def test_addresses_take_up_uniform_offsets(math: LaneMath, code: Code):
    base = Address(Val("%p", "ptr"))
    at = math.offset(base, uniform(Val("%n", "i32")), True, "float")
    assert at.offset is None
    at = math.offset(at, affine(), True, "float")
    assert at.offset is not None
    assert at.offset.stride == 1
    at = math.offset(at, uniform(Val("%m", "i32")), True, "float")
    assert at.offset is not None
    assert at.offset.stride == 1
    assert math.first(at, "float").type == "ptr"
    assert math.addresses(at, "float").type == "<8 x ptr>"


def test_two_affine_offsets_add_up(math: LaneMath):
    base = Address(Val("%p", "ptr"), affine())
    at = math.offset(base, affine(2), True, "float")
    assert at.offset is not None
    assert at.offset.stride == 3


def number_kernel(source: str, target: str) -> str:
    return f"""func @k(%Y: ptr<{target}>, %n: {source}) {{
      %i = tile.range {{start = 0, end = 16}} : tile<16xi32>
      %u = arith.cast %i : tile<16x{source}>
      %s = tile.splat %n {{shape = [16]}} : tile<16x{source}>
      %x = arith.add %u, %s : tile<16x{source}>
      %w = arith.cast %x : tile<16x{target}>
      %ys = tile.splat %Y {{shape = [16]}} : tile<16xptr<{target}>>
      %yp = mem.offset %ys, %i : tile<16xptr<{target}>>
      mem.store %yp, %w
      cf.return
    }}"""


@pytest.mark.parametrize(
    ("source", "target", "number"),
    [("u32", "u64", 2**32 - 5), ("i32", "i64", 2**31 - 5), ("u32", "i64", 2**32 - 1),
     ("i16", "i32", 2**15 - 3), ("u8", "i32", 250), ("i32", "i64", -5)],
)  # fmt: skip
def test_numbers_that_wrap_widen_as_they_are(source: str, target: str, number: int):
    """Only addresses are taken not to wrap."""
    dtype = np.dtype({"u64": "u8", "i64": "i8", "i32": "i4"}[target])
    assert_as_interpreted(number_kernel(source, target), [np.zeros(16, dtype), number])


def address_kernel(cast: str) -> str:
    return f"""func @k(%X: ptr<f32>, %Y: ptr<f32>, %n: i32) {{
      %i = tile.range {{start = 0, end = 16}} : tile<16xi32>
      %s = tile.splat %n {{shape = [16]}} : tile<16xi32>
      %o = arith.add %i, %s : tile<16xi32>
      %w = arith.cast %o : tile<16x{cast}>
      %xs = tile.splat %X {{shape = [16]}} : tile<16xptr<f32>>
      %xp = mem.offset %xs, %w : tile<16xptr<f32>>
      %x = mem.load %xp : tile<16xf32>
      %ys = tile.splat %Y {{shape = [16]}} : tile<16xptr<f32>>
      %yp = mem.offset %ys, %i : tile<16xptr<f32>>
      mem.store %yp, %x
      cf.return
    }}"""


@pytest.mark.parametrize("cast", ["i64", "i32", "u32"])
def test_offsets_of_any_width_are_contiguous(cast: str):
    """However the start is aligned: an address that wraps points nowhere."""
    assert "gather" not in lowered(address_kernel(cast)).text
    assert_as_interpreted(
        address_kernel(cast), [np.arange(32, dtype=np.float32), np.zeros(16, np.float32), 7]
    )


def test_pointers_of_another_element():
    """An offset that counts floats is no offset that counts bytes."""
    text = """func @k(%X: ptr<f32>, %Y: ptr<u8>) {
      %i = tile.range {start = 0, end = 16} : tile<16xi32>
      %xs = tile.splat %X {shape = [16]} : tile<16xptr<f32>>
      %xp = mem.offset %xs, %i : tile<16xptr<f32>>
      %b = arith.bitcast %xp : tile<16xptr<u8>>
      %three = arith.constant {value = 3} : tile<16xi32>
      %top = mem.offset %b, %three : tile<16xptr<u8>>
      %x = mem.load %top : tile<16xu8>
      %ys = tile.splat %Y {shape = [16]} : tile<16xptr<u8>>
      %yp = mem.offset %ys, %i : tile<16xptr<u8>>
      mem.store %yp, %x
      cf.return
    }"""
    x = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    assert_as_interpreted(text, [x, np.zeros(16, np.uint8)])
