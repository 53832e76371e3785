"""Operators, casts, selection and mathematics: what they compute, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.frontend.contexts import BuildBench, EagerBench, data
from tilewright import language as tl
from tilewright.frontend.semantics import binary, cast_to, compare, logical, materialize, unary
from tilewright.ir import types as ir
from tilewright.ops import ConstantOp
from tilewright.support import SourceLoc, errors


def test_division_and_remainder_truncate_toward_zero() -> None:
    bench = EagerBench()
    x = bench.tile([7, -7, 7, -7], ir.i32)
    y = bench.tile([2, 2, -2, -2], ir.i32)
    assert data(binary(bench.ctx, "floordiv", x, y)).tolist() == [3, -3, -3, 3]
    assert data(binary(bench.ctx, "mod", x, y)).tolist() == [1, -1, 1, -1]
    assert data(binary(bench.ctx, "truediv", x, y)).tolist() == [3.5, -3.5, -3.5, 3.5]


def test_compile_time_numbers_fold_as_in_python() -> None:
    ctx = BuildBench().ctx
    assert binary(ctx, "floordiv", tl.constexpr(-7), 2).value == -4
    assert binary(ctx, "pow", 2, tl.constexpr(10)).value == 1024
    assert compare(ctx, "lt", 1, 2).value is True
    assert unary(ctx, "invert", 5).value == -6
    assert unary(ctx, "not", tl.constexpr(0)).value is True
    assert logical(ctx, "or", 0, 7).value == 7
    assert binary(ctx, "add", (1,), (2, 3)) == (1, 2, 3)


def test_folding_reports_what_python_reports() -> None:
    with pytest.raises(errors.InvalidOperation, match="by zero"):
        binary(BuildBench().ctx, "floordiv", 1, 0)
    with pytest.raises(errors.InvalidOperation, match="cannot add 1 and 'a'"):
        binary(BuildBench().ctx, "add", 1, "a")


def test_integers_wrap() -> None:
    bench = EagerBench()
    x = bench.tile([127, -128], ir.i8)
    assert data(binary(bench.ctx, "add", x, 1)).tolist() == [-128, -127]
    assert data(unary(bench.ctx, "neg", x)).tolist() == [-127, -128]


def test_bools_compute_modulo_two() -> None:
    bench = EagerBench()
    x, y = bench.tile([True, True, False], ir.i1), bench.tile([True, False, False], ir.i1)
    assert data(binary(bench.ctx, "add", x, y)).tolist() == [False, True, False]
    assert data(binary(bench.ctx, "mul", x, y)).tolist() == [True, False, False]
    assert data(binary(bench.ctx, "mod", x, True)).tolist() == [False, False, False]
    assert data(bench.call(tl.maximum, x, y)).tolist() == [True, True, False]
    assert data(bench.call(tl.minimum, x, y)).tolist() == [True, False, False]
    assert data(unary(bench.ctx, "not", x)).tolist() == [False, False, True]
    assert data(unary(bench.ctx, "invert", x)).tolist() == [False, False, True]


def test_invert_flips_bits_of_either_signedness() -> None:
    bench = EagerBench()
    assert data(unary(bench.ctx, "invert", bench.tile([5], ir.i16))).tolist() == [-6]
    assert data(unary(bench.ctx, "invert", bench.tile([5], ir.u16))).tolist() == [65530]


def test_a_literal_becomes_one_constant_of_the_tiles_type() -> None:
    bench = BuildBench()
    x = bench.tile(ir.f16, 8)
    binary(bench.ctx, "mul", x, 2)
    constant, product = bench.block
    assert isinstance(constant, ConstantOp)
    assert constant.type is x.handle.type and constant.value == 2.0
    assert product.opcode == "arith.mul"


def test_tiles_broadcast_from_the_right() -> None:
    bench = EagerBench()
    column, row = bench.tile([[1], [2]], ir.i32), bench.tile([10, 20], ir.i32)
    assert data(binary(bench.ctx, "add", column, row)).tolist() == [[11, 21], [12, 22]]
    scalar = bench.tile(5, ir.i32)
    assert data(binary(bench.ctx, "sub", scalar, column)).tolist() == [[4], [3]]


def test_shape_mismatch_shows_both_shapes_and_the_place() -> None:
    bench = BuildBench()
    bench.ctx.emitter.loc = SourceLoc("k.py", 3)
    with pytest.raises(errors.ShapeMismatch) as caught:
        binary(bench.ctx, "add", bench.tile(ir.f32, 4), bench.tile(ir.f32, 8))
    assert caught.value.message == "cannot add tiles of shapes (4,) and (8,)"
    assert caught.value.loc == SourceLoc("k.py", 3)


def test_dtype_mismatch_names_both_dtypes() -> None:
    bench = BuildBench()
    with pytest.raises(errors.DTypeMismatch) as caught:
        binary(bench.ctx, "and", bench.tile(ir.f32), bench.tile(ir.i32))
    assert caught.value.message == "cannot combine by & fp32 and int32"
    assert caught.value.notes == ("bitwise operators take integers",)


def test_pointers_take_integer_offsets() -> None:
    bench = BuildBench()
    pointer = ir.PointerType(ir.f32)
    p, offsets = bench.arg(pointer), bench.tile(ir.i32, 8)
    assert binary(bench.ctx, "add", p, offsets).handle.type is ir.TileType((8,), pointer)
    assert binary(bench.ctx, "add", offsets, p).shape == (8,)
    assert binary(bench.ctx, "sub", p, 4).handle.type is p.handle.type
    assert compare(bench.ctx, "eq", p, p).handle.type is ir.i1


@pytest.mark.parametrize(
    ("name", "right"), [("add", 1.5), ("add", True), ("mul", 2), ("sub", "self"), ("truediv", 2)]
)
def test_other_pointer_arithmetic_is_refused(name: str, right: object) -> None:
    bench = BuildBench()
    p = bench.arg(ir.PointerType(ir.f32))
    with pytest.raises(errors.InvalidOperation, match="integer offsets only"):
        binary(bench.ctx, name, p, p if right == "self" else right)


def test_pointer_minus_unsigned_goes_backwards() -> None:
    bench = EagerBench()
    array = np.arange(8, dtype=np.float32)
    p = binary(bench.ctx, "add", bench.pointer(array, ir.f32), 5)
    q = binary(bench.ctx, "sub", p, bench.tile([1, 2], ir.u32))
    assert data(bench.call(tl.load, q)).tolist() == [4.0, 3.0]


def test_comparing_a_pointer_with_a_number_is_refused() -> None:
    bench = BuildBench()
    with pytest.raises(errors.InvalidOperation):
        compare(bench.ctx, "eq", bench.arg(ir.PointerType(ir.f32)), 0)


def test_raising_a_tensor_to_a_power_suggests_exp2() -> None:
    bench = BuildBench()
    with pytest.raises(errors.InvalidOperation) as caught:
        binary(bench.ctx, "pow", bench.tile(ir.f32), 2)
    assert "tl.exp2" in str(caught.value.hint)


def test_shifts_follow_the_sign_of_the_type() -> None:
    bench = EagerBench()
    signed, unsigned = bench.tile([-8], ir.i8), bench.tile([248], ir.u8)
    assert data(binary(bench.ctx, "rshift", signed, 1)).tolist() == [-4]
    assert data(binary(bench.ctx, "rshift", unsigned, 1)).tolist() == [124]


def test_logical_operators_compare_with_zero() -> None:
    bench = EagerBench()
    x = bench.tile([0.0, 2.0, math.nan], ir.f32)
    assert data(logical(bench.ctx, "and", x, True)).tolist() == [False, True, True]
    assert data(bench.call(tl.logical_or, x, 0)).tolist() == [False, True, True]


# --- casts ----------------------------------------------------------------------------------------


def test_casts_round_truncate_and_wrap() -> None:
    bench = EagerBench()
    x = bench.tile([1.9, -1.9, 300.5], ir.f32)
    assert data(cast_to(bench.ctx, x, tl.int32)).tolist() == [1, -1, 300]
    assert data(cast_to(bench.ctx, bench.tile([300], ir.i32), tl.uint8)).tolist() == [44]
    assert data(cast_to(bench.ctx, bench.tile([0, 3], ir.i32), tl.int1)).tolist() == [False, True]
    third = bench.tile([1 / 3], ir.f32)
    nearest = data(cast_to(bench.ctx, third, tl.bfloat16)).astype(np.float32)
    cut = bench.call(tl.cast, third, tl.bfloat16, fp_downcast_rounding="rtz")
    assert nearest > np.float32(1 / 3) > data(cut).astype(np.float32)


def test_casting_to_the_same_dtype_is_nothing() -> None:
    bench = BuildBench()
    x = bench.tile(ir.f32)
    assert bench.call(tl.to, x, tl.float32) is x
    assert bench.opcodes == []


def test_bitcast_keeps_bits() -> None:
    bench = EagerBench()
    x = bench.tile([1.0], ir.f32)
    assert data(bench.call(tl.cast, x, tl.int32, bitcast=True)).tolist() == [0x3F800000]
    with pytest.raises(errors.InvalidOperation, match="32 and 16 bits"):
        bench.call(tl.cast, x, tl.int16, bitcast=True)


def test_literals_cast_to_constants() -> None:
    bench = BuildBench()
    assert cast_to(bench.ctx, 2.5, tl.float16).handle.type is ir.f16
    assert cast_to(bench.ctx, True, tl.int64).handle.type is ir.i64
    assert cast_to(bench.ctx, tl.constexpr(7), tl.uint8).handle.type is ir.u8
    assert bench.opcodes == ["arith.constant"] * 3
    eager = EagerBench()
    assert int(data(cast_to(eager.ctx, 300, tl.int8))) == 44
    assert int(data(cast_to(eager.ctx, -2.7, tl.int8))) == -2


def test_addresses_convert_from_and_to_64_bit_integers() -> None:
    bench = BuildBench()
    p = bench.arg(ir.PointerType(ir.f32))
    address = cast_to(bench.ctx, p, tl.int64)
    assert address.handle.type is ir.i64
    back = cast_to(bench.ctx, address, tl.pointer_type(tl.float16))
    assert back.handle.type is ir.PointerType(ir.f16)
    assert cast_to(bench.ctx, p, tl.pointer_type(tl.int32)).handle.type is ir.PointerType(ir.i32)
    assert cast_to(bench.ctx, p, tl.int1).handle.type is ir.i1
    with pytest.raises(errors.InvalidOperation, match="64-bit integers only"):
        cast_to(bench.ctx, p, tl.int32)


def test_rounding_modes_belong_to_narrowing_floats() -> None:
    bench = BuildBench()
    same = bench.tile(ir.f32)
    assert bench.call(tl.cast, same, tl.float32, fp_downcast_rounding="rtne") is same
    with pytest.raises(errors.InvalidOperation, match="narrower floats"):
        bench.call(tl.cast, bench.tile(ir.f16), tl.float32, fp_downcast_rounding="rtz")
    with pytest.raises(errors.InvalidValue, match='"rtne" or "rtz"'):
        bench.call(tl.cast, bench.tile(ir.f32), tl.float16, fp_downcast_rounding="up")


# --- selection ------------------------------------------------------------------------------------


def test_where_broadcasts_all_three() -> None:
    bench = EagerBench()
    condition = bench.tile([[True], [False]], ir.i1)
    x = bench.tile([1, 2], ir.i32)
    assert data(bench.call(tl.where, condition, x, 0)).tolist() == [[1, 2], [0, 0]]
    both = bench.call(tl.where, condition, 1.0, 0.0)
    assert data(both).tolist() == [[1.0], [0.0]] and both.dtype == tl.float32
    assert data(bench.call(tl.where, x, x, -1)).tolist() == [1, 2]


def test_where_selects_pointers_of_one_type() -> None:
    bench = BuildBench()
    p, q = bench.arg(ir.PointerType(ir.f32)), bench.arg(ir.PointerType(ir.i32))
    assert bench.call(tl.where, bench.tile(ir.i1), p, p).dtype == tl.pointer_type(tl.float32)
    with pytest.raises(errors.DTypeMismatch):
        bench.call(tl.where, bench.tile(ir.i1), p, q)


def test_nans_lose_or_win() -> None:
    bench = EagerBench()
    x = bench.tile([math.nan, 1.0], ir.f32)
    assert data(bench.call(tl.maximum, x, 0.0)).tolist() == [0.0, 1.0]
    wins = data(bench.call(tl.minimum, x, 0.0, propagate_nan=tl.PropagateNan.ALL))
    assert math.isnan(wins[0]) and wins[1] == 0.0
    assert data(bench.call(tl.clamp, x, -1.0, 0.5)).tolist() == [-1.0, 0.5]
    kept = data(bench.call(tl.clamp, x, -1.0, 0.5, propagate_nan=tl.PropagateNan.ALL))
    assert math.isnan(kept[0])


def test_extrema_of_compile_time_numbers_fold() -> None:
    bench = BuildBench()
    assert bench.call(tl.maximum, tl.constexpr(3), 4).value == 4
    assert bench.call(tl.minimum, 3, 4.5).value == 3
    with pytest.raises(errors.InvalidValue, match="propagate_nan"):
        bench.call(tl.maximum, 3, 4, propagate_nan=True)


# --- mathematics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("element", [ir.f16, ir.bf16, ir.f8e5m2])
def test_narrow_floats_are_computed_in_fp32_and_rounded_once(element: ir.DType) -> None:
    bench = EagerBench()
    x = bench.tile([0.5, 1.0, 2.0], element)
    found = bench.call(tl.exp, x)
    wide = bench.call(tl.exp, cast_to(bench.ctx, x, tl.float32))
    assert found.dtype == x.dtype
    assert np.array_equal(data(found), data(cast_to(bench.ctx, wide, x.dtype)))


def test_sigmoid_and_fma_and_quotients() -> None:
    bench = EagerBench()
    x = bench.tile([0.0, 1.0, -1.0], ir.f64)
    expected = 1 / (1 + np.exp(-np.array([0.0, 1.0, -1.0])))
    assert np.allclose(data(bench.call(tl.sigmoid, x)), expected, rtol=1e-15)
    assert data(bench.call(tl.fma, x, 2.0, 1.0)).tolist() == [1.0, 3.0, -1.0]
    narrow = bench.tile([1.0, 3.0], ir.f16)
    assert bench.call(tl.div_rn, narrow, 3).dtype == tl.float32
    assert data(bench.call(tl.fdiv, narrow, 2)).tolist() == [0.5, 1.5]


def test_integers_are_refused_with_a_hint() -> None:
    bench = BuildBench()
    for stub in (tl.exp, tl.sqrt, tl.sigmoid, tl.floor):
        with pytest.raises(errors.InvalidOperation) as caught:
            bench.call(stub, bench.tile(ir.i32))
        assert "int32" in caught.value.message and ".to(tl.float32)" in str(caught.value.hint)


def test_literals_are_floats_to_mathematics() -> None:
    bench = EagerBench()
    assert float(data(bench.call(tl.sqrt, 4))) == 2.0
    assert bench.call(tl.sqrt, 1e300).dtype == tl.float64
    assert bench.call(tl.abs, tl.constexpr(-3)).value == 3


def test_high_products() -> None:
    bench = EagerBench()
    x = bench.tile([2**31, 3], ir.u32)
    assert data(bench.call(tl.umulhi, x, bench.tile([4, 5], ir.u32))).tolist() == [2, 0]
    negative = bench.call(tl.umulhi, bench.tile([-1, -5], ir.i32), bench.tile([2, -1], ir.i32))
    assert data(negative).tolist() == [1, -6] and negative.dtype == tl.int32
    with pytest.raises(errors.InvalidOperation, match="32 or 64 bits"):
        bench.call(tl.umulhi, bench.tile([1], ir.u8), bench.tile([1], ir.u8))


def test_abs_of_unsigned_is_itself() -> None:
    bench = BuildBench()
    x = bench.tile(ir.u32)
    assert bench.call(tl.abs, x) is x
    eager = EagerBench()
    assert data(eager.call(tl.abs, eager.tile([-3, 4], ir.i8))).tolist() == [3, 4]


def test_overflow_is_checked_in_debug_mode_only() -> None:
    bench = EagerBench(debug=True)
    x = bench.tile([127], ir.i8)
    with pytest.raises(errors.DeviceAssertionFailure, match="int8 overflow detected"):
        binary(bench.ctx, "add", x, 1)
    assert data(bench.call(tl.add, x, 1, sanitize_overflow=False)).tolist() == [-128]
    assert data(binary(bench.ctx, "sub", x, 1)).tolist() == [126]
    unchecked = EagerBench(debug=True, sanitize_overflow=False)
    wrapped = binary(unchecked.ctx, "add", unchecked.tile([127], ir.i8), 1)
    assert data(wrapped).tolist() == [-128]


def test_numbers_materialize_in_their_own_dtype() -> None:
    bench = BuildBench()
    assert materialize(bench.ctx, 3).handle.type is ir.i32
    assert materialize(bench.ctx, tl.constexpr(True)).handle.type is ir.i1
    assert bench.call(tl.to_tensor, 2**40).handle.type is ir.i64
    with pytest.raises(errors.LiteralOutOfRange):
        materialize(bench.ctx, 2**70)
    with pytest.raises(errors.InvalidOperation, match="not a number"):
        materialize(bench.ctx, "x")


def test_sizes() -> None:
    bench = EagerBench()
    assert bench.call(tl.cdiv, 10, 4).value == 3
    assert int(data(bench.call(tl.cdiv, bench.tile(9, ir.i32), 4))) == 3
    seen = [bench.call(tl.swizzle2d, i, j, 3, 2, 2) for i in range(3) for j in range(2)]
    pairs = [(int(i.value), int(j.value)) for i, j in seen]
    assert pairs == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
