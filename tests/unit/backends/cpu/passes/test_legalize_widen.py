"""Arithmetic in types that CPUs do not compute in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.unit.backends.cpu.elementwise import (
    Array,
    compiled,
    interpreted,
    kernel,
    parsed,
    prepared,
)
from tilewright.interp import numpy_dtype
from tilewright.ir.types import dtype_named, dtype_of
from tilewright.ir.verifier import report
from tilewright.ops import DotOp, PrintOp

FP8 = ("f8e4m3", "f8e5m2")


def pairs(first: Sequence[str], second: Sequence[str]) -> list[tuple[str, str]]:
    return [(a, b) for a in first for b in second]


def _all_pairs(dtype: str) -> tuple[Array, Array]:
    codes = np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype_named(dtype)))
    return np.repeat(codes, 256), np.tile(codes, 256)


@pytest.mark.parametrize(
    ("dtype", "opcode"), pairs(FP8, ["add", "sub", "mul", "div", "min", "max", "rem"])
)
def test_binary_ops_of_fp8(dtype: str, opcode: str) -> None:
    """All pairs of values."""
    text = kernel(f"%y = arith.{opcode} %x0, %x1 : {{t}}{dtype}>", (dtype, dtype), dtype)
    x, y = _all_pairs(dtype)
    expected = interpreted(parsed(text), dtype, x, y)
    _assert_equal(compiled(text, dtype)(x, y), expected, signs=opcode not in ("min", "max"))


@pytest.mark.parametrize(("dtype", "opcode"), pairs(FP8, ["neg", "abs"]))
def test_signs_of_fp8(dtype: str, opcode: str) -> None:
    text = kernel(f"%y = arith.{opcode} %x0 : {{t}}{dtype}>", (dtype,), dtype)
    x = _all_pairs(dtype)[1]
    expected = interpreted(parsed(text), dtype, x)
    np.testing.assert_array_equal(compiled(text, dtype)(x).view("u1"), expected.view("u1"))


@pytest.mark.parametrize(("dtype", "predicate"), pairs(FP8, ["eq", "ne", "lt", "le", "gt", "ge"]))
def test_comparisons_of_fp8(dtype: str, predicate: str) -> None:
    body = f"""%c = arith.compare %x0, %x1 {{predicate = "{predicate}"}} : {{t}}i1>
      %y = arith.cast %c : {{t}}i8>"""
    text = kernel(body, (dtype, dtype), "i8")
    x, y = _all_pairs(dtype)
    np.testing.assert_array_equal(compiled(text, "i8")(x, y), interpreted(parsed(text), "i8", x, y))


@pytest.mark.parametrize("dtype", ["f16", "bf16", *FP8])
def test_fma_of_small_floats(dtype: str) -> None:
    """Rounded in f32 and again: within one unit of the type's last place."""
    text = kernel(f"%y = arith.fma %x0, %x1, %x2 : {{t}}{dtype}>", (dtype,) * 3, dtype)
    random = np.random.default_rng(5)
    kind = numpy_dtype(dtype_named(dtype))
    arrays = [random.normal(0, 1, 4096).astype(kind) for _ in range(3)]
    expected = interpreted(parsed(text), dtype, *arrays).astype(np.float64)
    found = compiled(text, dtype)(*arrays).astype(np.float64)
    unit = 2.0 ** -dtype_named(dtype).mantissa
    assert (np.abs(found - expected) <= unit * np.abs(expected)).all()
    assert (found == expected).mean() > 0.99


@pytest.mark.parametrize("dtype", FP8)
def test_reductions_of_fp8(dtype: str) -> None:
    body = f"""%m = tile.reduce %x0 {{axis = 0}} : {dtype} (%a: {dtype}, %b: {dtype}) {{
        %r = arith.max %a, %b : {dtype}
        cf.yield %r
      }}
      %y = tile.splat %m {{shape = [64]}} : {{t}}{dtype}>"""
    text = kernel(body, (dtype,), dtype, 64)
    x = np.random.default_rng(6).normal(0, 10, 640).astype(numpy_dtype(dtype_named(dtype)))
    expected = interpreted(parsed(text), dtype, x, block=64)
    _assert_equal(compiled(text, dtype, block=64)(x), expected)


@pytest.mark.parametrize("dtype", FP8)
def test_fp8_is_printed_as_f32(dtype: str) -> None:
    body = f'cf.print %x0 {{prefix = "x"}}\n%y = arith.neg %x0 : {{t}}{dtype}>'
    function = prepared(kernel(body, (dtype,), dtype))
    (show,) = (op for op in function.walk() if isinstance(op, PrintOp))
    assert [repr(dtype_of(v.type)) for v in show.args] == ["f32"]
    assert report(function) is None


def dot_kernel(a: str, b: str, acc: str, zero: bool) -> str:
    """y = x0 @ x1 + x2 (or + 0), matrices of 16 x 32 and 32 x 16."""
    body = f"""%a0 = tile.reshape %x0 {{shape = [16, 32]}} : tile<16x32x{a}>
      %b0 = tile.reshape %x1 {{shape = [32, 16]}} : tile<32x16x{b}>
      %half = tile.range {{start = 0, end = 256}} : tile<256xi32>
      %all = tile.splat %X2 {{shape = [256]}} : tile<256xptr<{acc}>>
      %at = mem.offset %all, %half : tile<256xptr<{acc}>>
      %c0 = mem.load %at : tile<256x{acc}>
      %c1 = tile.reshape %c0 {{shape = [16, 16]}} : tile<16x16x{acc}>
      %z = arith.constant {{value = {0 if acc[0] in "iu" else 0.0}}} : tile<16x16x{acc}>
      %d = tile.dot %a0, %b0, {"%z" if zero else "%c1"} : tile<16x16x{acc}>
      %e = tile.reshape %d {{shape = [256]}} : tile<256x{acc}>
      %y = tile.cat %e, %e {{axis = 0}} : tile<512x{acc}>"""
    return kernel(body, (a, b, acc), acc, 512)


DOTS = [
    ("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("i8", "i8", "i32"),
    ("u8", "u8", "i32"), ("f8e4m3", "f8e4m3", "f32"), ("f8e5m2", "f8e4m3", "f32"),
    ("f32", "f32", "f32"), ("f64", "f64", "f64"), ("f32", "f32", "f64"),
]  # fmt: skip


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize(("a", "b", "acc"), DOTS)
def test_products_are_of_one_type_that_the_micro_kernel_has(
    a: str, b: str, acc: str, zero: bool
) -> None:
    text = dot_kernel(a, b, acc, zero)
    function = prepared(text)
    assert report(function) is None
    (dot,) = (op for op in function.walk() if isinstance(op, DotOp))
    kinds = {repr(dtype_of(v.type)) for v in dot.operands}
    assert len(kinds) == 1 and kinds <= {"f32", "f64", "i32"}
    random = np.random.default_rng(8)
    arrays = [
        random.integers(-4 if kind != "u8" else 0, 5, 512).astype(numpy_dtype(dtype_named(kind)))
        for kind in (a, b, acc)
    ]
    expected = interpreted(parsed(text), acc, *arrays, block=512)
    np.testing.assert_array_equal(compiled(text, acc, block=512)(*arrays), expected)


def _assert_equal(found: Array, expected: Array, signs: bool = True) -> None:
    """Equal numbers, zeros with equal signs unless told; NaNs where NaNs are expected."""
    wide_found, wide = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(wide_found, wide)
    zero = (wide == 0) & signs
    np.testing.assert_array_equal(np.signbit(wide_found[zero]), np.signbit(wide[zero]))
