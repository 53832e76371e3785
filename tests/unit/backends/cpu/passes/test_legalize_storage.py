"""bf16 and fp8 as their bits: constants, and every op that moves values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.unit.backends.cpu.elementwise import (
    BLOCK,
    Array,
    compiled,
    interpreted,
    kernel,
    parsed,
    prepared,
)
from tilewright.interp import numpy_dtype
from tilewright.ir import print_function
from tilewright.ir.types import dtype_named
from tilewright.ir.verifier import report
from tilewright.transforms.expand import float_bits

KINDS = {
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
}

MOVES = {
    "select": """%c = arith.compare %x0, %x1 {predicate = "lt"} : {t}i1>
      %y = arith.select %c, %x0, %x1 : {t}KIND>""",
    "masked load": """%c = arith.compare %x0, %x1 {predicate = "lt"} : {t}i1>
      %y = mem.load %atX0, %c, %x1 : {t}KIND>""",
    "constant": """%c = arith.compare %x0, %x1 {predicate = "lt"} : {t}i1>
      %k = arith.constant {value = -0.3} : {t}KIND>
      %y = arith.select %c, %k, %x1 : {t}KIND>""",
    "loop": """%from = arith.constant {value = 0} : i32
      %to = arith.constant {value = 3} : i32
      %step = arith.constant {value = 1} : i32
      %y = cf.for %from, %to, %step, %x0 : {t}KIND> (%i: i32, %v: {t}KIND>) {
        %w = arith.mul %v, %x1 : {t}KIND>
        cf.yield %w
      }""",
    "reduce": """%m = tile.reduce %x0 {axis = 0} : KIND (%a: KIND, %b: KIND) {
        %r = arith.max %a, %b : KIND
        cf.yield %r
      }
      %y = tile.splat %m {shape = [1024]} : {t}KIND>""",
    "scan": """%y = tile.scan %x0 {axis = 0} : {t}KIND> (%a: KIND, %b: KIND) {
        %r = arith.min %a, %b : KIND
        cf.yield %r
      }""",
    "bitcast": """%b = arith.bitcast %x0 : {t}BITS>
      %y = arith.bitcast %b : {t}KIND>""",
    "reverse": """%n = arith.constant {value = 1023} : {t}i32>
      %at = arith.sub %n, %index : {t}i32>
      %y = tile.gather %x0, %at {axis = 0} : {t}KIND>""",
}


def _inputs(dtype: str) -> tuple[Array, Array]:
    random = np.random.default_rng(11)
    kind = numpy_dtype(dtype_named(dtype))
    return random.normal(0, 1, 2048).astype(kind), random.normal(0, 1, 2048).astype(kind)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("dtype", KINDS)
def test_values_move_as_their_bits(dtype: str, move: str) -> None:
    """The prepared function has no such type left, and moves the same values."""
    bits = "u16" if dtype == "bf16" else "u8"
    body = MOVES[move].replace("KIND", dtype).replace("BITS", bits)
    text = kernel(body, (dtype, dtype), dtype)
    function = prepared(text)
    assert report(function) is None
    assert dtype not in print_function(function)
    x, y = _inputs(dtype)
    expected = interpreted(parsed(text), dtype, x, y).view(f"u{x.itemsize}")
    found = compiled(text, dtype)(x, y).view(f"u{x.itemsize}")
    np.testing.assert_array_equal(found, expected)


def test_a_type_that_is_computed_with_atomically_stays() -> None:
    body = """%o = mem.atomic %atY, %x0 {kind = "add"} : {t}bf16>
      %y = arith.add %o, %x0 : {t}bf16>"""
    function = prepared(kernel(body, ("bf16",), "bf16"))
    assert "ptr<bf16>" in print_function(function)
    assert report(function) is None


def test_the_neighbours_of_such_a_type_become_bits() -> None:
    body = """%o = mem.atomic %atY, %x0 {kind = "add"} : {t}bf16>
      %z = arith.cast %x1 : {t}bf16>
      %y = arith.add %o, %z : {t}bf16>"""
    text = print_function(prepared(kernel(body, ("bf16", "f8e4m3"), "bf16")))
    assert "ptr<bf16>" in text
    assert "f8e4m3" not in text


@pytest.mark.parametrize("name", KINDS)
def test_bits_of_constants_are_those_of_a_cast(name: str) -> None:
    kind, dtype = KINDS[name], dtype_named(name)
    random = np.random.default_rng(4)
    size = np.dtype(kind).itemsize
    codes = np.arange(0, 1 << (8 * size), 1 if size == 1 else 7).astype(f"u{size}")
    with np.errstate(invalid="ignore"):
        numbers = codes.view(kind).astype(np.float64)
    finite = np.sort(numbers[np.isfinite(numbers)])
    values = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, random.normal(0, 50, 100)])
    largest = np.abs(finite).max()
    for value in values[np.abs(values) <= largest]:
        exact = float_bits(float(value), dtype)
        assert exact == np.array(value).astype(kind).view(f"u{size}"), value


def test_bits_of_constants_beyond_all_numbers() -> None:
    f8e4m3, f8e5m2, bf16 = (dtype_named(name) for name in ("f8e4m3", "f8e5m2", "bf16"))
    assert [float_bits(1e9, d) for d in (f8e4m3, f8e5m2)] == [0x7E, 0x7B]
    assert [float_bits(-np.inf, d) for d in (f8e4m3, f8e5m2, bf16)] == [0xFE, 0xFB, 0xFF80]
    assert [float_bits(v, bf16) for v in (3.4e38, 1e39, -0.0, 1e-45)] == [0x7F80, 0x7F80, 0x8000, 0]
    assert all(
        np.isnan(np.array(float_bits(np.nan, d), "u1").view(k))
        for d, k in ((f8e4m3, KINDS["f8e4m3"]), (f8e5m2, KINDS["f8e5m2"]))
    )


def test_the_block_is_what_the_text_says() -> None:
    """MOVES spells its extent out."""
    assert BLOCK == 1024
