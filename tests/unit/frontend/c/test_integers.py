"""Integers as C has them: promotion, conversion, literals; narrow tiles pay nothing for it.

`tests/property/test_c_integers.py` compares random programs with what C says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.frontend.c.harness import canonical, lower, run
from tilewright.support import errors


def value(statements: str, before: str = "") -> int:
    """What the statements leave in `r`."""
    out = np.zeros(1, np.int64)
    run(f"long r = 0; {statements} *a = r;", out, before=before)
    return int(out[0])


@pytest.mark.parametrize("narrow", ["char", "unsigned char", "short", "unsigned short"])
@pytest.mark.parametrize("extents", ["", "[16]"])
def test_sums_of_short_integers_are_ints(narrow: str, extents: str) -> None:
    out = np.zeros(16, np.int32)
    place = "a + 0 ... 16" if extents else "a"
    run(f"{narrow} x{extents} = 100; int y{extents} = x * x + x; *({place}) = y;", out)
    assert out[0] == 10100


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("100 + c", 300),
        ("u - 201", -1),
        ("-u", -200),
        ("~u", -201),
        ("+s", -56),
        ("u << 4", 3200),
        ("(char) 200", -56),
        ("(unsigned char) (u + 100)", 44),
        ("i > 0u", 1),
        ("i < 0u", 0),
        ("1u - 2", 4294967295),
        ("1ul - 2", -1),
        ("i + 0x80000000", 2147483647),
        ("i + 2147483648", 2147483647),
        ("2147483648 * 2", 4294967296),
        ("4294967295 + 1", 4294967296),
        ("0xffffffff + 1", 0),
        ("1 ? i : 0u", 4294967295),
        ("b ? i : 0u", 4294967295),
        ("b + b", 2),
        ("-b", -1),
        ("(i < 0) + (u > 0)", 2),
        ("s >> 1", -28),
        ("u >> 1", 100),
        ("1 << b", 2),
        ("1l << 40", 1099511627776),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("-7 / 2u", 2147483644),
        ("max(u, i)", 200),
        ("max(1u, i)", 4294967295),
        ("abs(lowest)", 128),
        ("i == -1", 1),
        ("i == 4294967295", 0),
        ("i == 4294967295u", 1),
        ("sizeof(int) - 5 > 0", 1),
        ("10 * (1 ? 1 : 0.5)", 10),
        ("4 * ((1 ? 1 : 0.5) / 2)", 2),
    ],
)
def test_values(expression: str, expected: int) -> None:
    variables = """
        unsigned char u = 200, c = 200; signed char s = 200, lowest = -128;
        bool b = true; int i = -1;
    """
    assert value(f"{variables} r = {expression};") == expected


def test_assignment_converts_back() -> None:
    assert value("unsigned char c = 250; c += 10; r = c;") == 4
    assert value("signed char c = 127; r = ++c;") == -128
    assert value("unsigned char c = 0; r = c--; r = r * 1000 + c;") == 255
    assert value("short s = 300; s *= 300; r = s;") == 90000 - 65536
    assert value("char c = 1; c <<= 7; r = c;") == -128
    assert value("bool b = 0; b += 2; r = b;") == 1
    assert value("int i = 7; i *= 2.5; r = i;") == 17
    assert value("unsigned u = -1; r = u;") == 4294967295
    assert value("unsigned char c = 300; r = c;") == 44
    assert value("char c; int x = c = 300; r = x;") == 44


@pytest.mark.parametrize(
    ("loop", "rounds"),
    [
        ("for (int i = -3; i < 5u; i++)", 0),
        ("for (unsigned i = 4294967290u; i < -1; i++)", 5),
        ("for (long i = 2147483647; i < 2147483650; i++)", 3),
        ("for (unsigned char i = 250; i != 3; i++)", 9),
        ("for (int i = 3; i > (unsigned char) 257; i--)", 2),
    ],
)
def test_loops_compare_as_operators_do(loop: str, rounds: int) -> None:
    assert value(f"{loop} r += 1;") == rounds


def test_what_is_stored_is_the_value_of_the_assignment() -> None:
    out, bytes_ = np.zeros(2, np.int32), np.zeros(2, np.uint8)
    run("*a = *b = 300; *(a + 1) = *(b + 1) = -1;", out, bytes_)
    assert list(bytes_) == [44, 255] and list(out) == [44, 255]


def test_functions_convert_their_arguments_and_results() -> None:
    before = "unsigned char low(int x) { return x; } int twice(char x) { return x + x; }"
    assert value("r = low(300) + twice(100) + twice(200);", before) == 44 + 200 - 112


def test_a_conditional_load_has_the_type_of_both_sides() -> None:
    x, out = np.full(16, 255, np.uint8), np.zeros((3, 16), np.int64)
    body = """
        int i[16] = 0 ... 16;
        *(b + i) = i < 8 ? *(a + i) : -1;
        *(b + 16 + i) = i < 8 ? *(a + i) + 1 : 0x100000000;
        *(b + 32 + i) = 2 * (i < 8 ? *(a + i) : 0.5);
    """
    run(body, x, out)
    low = np.arange(16) < 8
    np.testing.assert_array_equal(out[0], np.where(low, 255, -1))
    np.testing.assert_array_equal(out[1], np.where(low, 256, 1 << 32))
    np.testing.assert_array_equal(out[2], np.where(low, 510, 1))


def test_constants_are_computed_at_compile_time() -> None:
    out = np.zeros(8, np.int32)
    body = """
        const int N = 4; const unsigned char M = 260;
        int x[N * 2] = (N << 1) + 0 ... sizeof(long);
        int y[(int) 2.9 * M] = 1;
        *(a + 0 ... 8) = x + y;
    """
    run(body, out)
    np.testing.assert_array_equal(out, np.arange(9, 17))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("int x = 1 << 32;", "the amount must be from 0 to 31"),
        ("int x = n << 40;", "the amount must be from 0 to 31"),
        ("int x = n >> -1;", "the amount must be from 0 to 31"),
        ("int x = 1 / 0;", "division by 0"),
        ("int x = INFINITY;", "inf does not fit int"),
        ("unsigned char x = -1.5;", "-1.5 does not fit unsigned char"),
    ],
)
def test_what_c_leaves_undefined_is_refused_where_it_is_known(statement: str, message: str) -> None:
    with pytest.raises(errors.CompilationError, match=message):
        lower(f"void k(int *p, int n) {{ {statement} }}")


@pytest.mark.parametrize(
    "expression",
    ["x + y", "x * y - 3", "-x", "~x & y", "x << 3", "x >> 2", "x > y ? x : y", "max(x, y) ^ x",
     "x * x + y * y + n", "(x & 15) == 3 ? x : 0", "abs(x) / 3", "x % 10"],
)  # fmt: skip
@pytest.mark.parametrize("narrow", ["signed char", "unsigned short"])
def test_narrow_tiles_stay_narrow(narrow: str, expression: str) -> None:
    source = f"""
        void k(const {narrow} *a, const {narrow} *b, {narrow} *c, int n) {{
            int i[64] = 0 ... 64;
            {narrow} x[64] = *(a + i), y[64] = *(b + i), z[64] = {expression};
            *(c + i) = z;
        }}
    """
    lines = canonical(lower(source)).splitlines()
    wide = [line for line in lines if "arith" in line and "tile<64xi32>" in line]
    assert not wide


def test_masks_of_bitwise_operators_stay_masks() -> None:
    source = """
        void k(float *p, int m, int n) {
            int i[16] = 0 ... 16;
            *?((i < n) & (i > m) | !(i == 3)) (p + i) = 1;
        }
    """
    assert "arith.cast" not in canonical(lower(source))


def quotients(symbol: str, a: Any, b: Any) -> Any:
    quotient = np.trunc(a.astype(np.float64) / b).astype(np.int64)
    return quotient if symbol == "/" else a - quotient * b


@pytest.mark.parametrize("symbol", ["/", "%"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_every_quotient_of_short_integers(symbol: str, dtype: Any) -> None:
    edges = np.array([-(2**15), -(2**15) + 1, -129, -128, -3, -2, -1, 1, 2, 3, 127, 2**15 - 1])
    all_bytes = np.arange(-128, 128)
    left = (all_bytes if dtype is np.int8 else edges.repeat(22)[:256]).astype(dtype)
    out = np.zeros(256, np.int32)
    for divisor in all_bytes[all_bytes != 0][::5] if dtype is np.int8 else edges:
        right = np.full(256, divisor, dtype)
        run(f"int i[256] = 0 ... 256; *(c + i) = *(a + i) {symbol} *(b + i);", left, right, out)
        expected = quotients(symbol, left.astype(np.int64), right.astype(np.int64))
        np.testing.assert_array_equal(out, expected)
