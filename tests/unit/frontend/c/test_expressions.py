"""Values of expressions, against NumPy: what C says, and what tiles add to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.frontend.c.harness import run
from tilewright.c import kernel
from tilewright.support import errors

Array = np.ndarray[Any, Any]
HERE = "int i[16] = 0 ... 16;"


def numbers(dtype: Any = np.float32, count: int = 16, seed: int = 0) -> Array:
    """Small numbers, some of them negative where the type has such."""
    generator = np.random.default_rng(seed)
    low = 0 if np.dtype(dtype).kind == "u" else -9
    return generator.integers(low, 10, count).astype(dtype)


def elementwise(expression: str, a: Array, b: Array, result: Any) -> Array:
    out = np.zeros(16, result)
    body = f"{HERE} *(c + i) = {expression.replace('A', '(*(a + i))').replace('B', '(*(b + i))')};"
    run(body, a, b, out)
    return out


@pytest.mark.parametrize("symbol", ["+", "-", "*", "&", "|", "^", "<", "<=", ">", ">=", "==", "!="])
def test_operators_of_integers(symbol: str) -> None:
    a, b = numbers(np.int32), numbers(np.int32, seed=1)
    expected = eval(f"a {symbol} b")
    np.testing.assert_array_equal(elementwise(f"A {symbol} B", a, b, np.int32), expected)


def test_division_goes_towards_zero() -> None:
    a, b = numbers(np.int32), numbers(np.int32, seed=1)
    b[b == 0] = 7
    quotient = np.trunc(a / b).astype(np.int32)
    np.testing.assert_array_equal(elementwise("A / B", a, b, np.int32), quotient)
    np.testing.assert_array_equal(elementwise("A % B", a, b, np.int32), a - quotient * b)
    np.testing.assert_array_equal(elementwise("-7 / 2 + A", a, b, np.int32), a - 3)
    np.testing.assert_array_equal(elementwise("-7 % 2 + A", a, b, np.int32), a - 1)


def test_division_of_mixed_signs_is_unsigned() -> None:
    a, b = numbers(np.int32) + 9, numbers(np.uint32, seed=1) + 1
    np.testing.assert_array_equal(elementwise("A / B", a, b, np.int32), a // b)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("2 - 1 - 1", 0),
        ("1 << 2 + 1", 8),
        ("7 & 3 == 3", 1),
        ("1 | 2 ^ 2 & 0", 3),
        ("!0 + !5", 1),
        ("~5 & 15", 10),
        ("0 ? 1 : 0 ? 2 : 3", 3),
        ("1 || 0 && 0", 1),
        ("- - 3", 3),
        ("0x1f + 010 + 0b11", 42),
        ("'a'", 97),
        ("sizeof(double) * 2", 16),
        ("7 / 2 * 2.0f", 6),
        ("(int) 2.9", 2),
        ("(1, 2)", 2),
        ("10u / 3u", 3),
    ],
)
def test_precedence_and_literals(expression: str, expected: int) -> None:
    out = np.zeros(1, np.int32)
    run(f"*a = {expression};", out)
    assert out[0] == expected


def test_literals_are_weak_and_suffixes_are_not() -> None:
    half, wide = np.zeros(1, np.float16), np.zeros(1, np.int64)
    run("half x = 1.5; *a = x * 2; *b = 3000000000l * 2;", half, wide)
    assert half[0] == 3 and wide[0] == 6_000_000_000


@pytest.mark.parametrize("interpret", [True, False])
def test_literals_beyond_a_half_are_infinite(interpret: bool) -> None:
    """`half` has no promotion to `float`, and C rounds a number that is too large so."""
    source = (
        "void k(half *a, half x) { *(a + 0) = x * 70000; *(a + 1) = x * -1e39; *(a + 2) = %s; }"
    )
    for last in ("70000", "(half) 70000.0", "x * 70000 / 2", "x + 65520"):
        out = np.zeros(3, np.float16)
        kernel(source % last, interpret=interpret)[(1,)](out, 1.0)
        np.testing.assert_array_equal(out, np.array([np.inf, -np.inf, np.inf], np.float16))


def test_a_range_binds_tighter_than_arithmetic() -> None:
    out = np.zeros(8, np.int32)
    run("int i[8] = 3 * 8 + 0 ... 8; *(a + 0 ... 8) = i;", out)
    np.testing.assert_array_equal(out, np.arange(24, 32))


def test_transposition_and_products() -> None:
    a, b = numbers(count=16 * 32).reshape(16, 32), numbers(count=16 * 32, seed=1).reshape(16, 32)
    out, sums = np.zeros((16, 16), np.float32), np.zeros((32, 32), np.float32)
    body = """
        int r[16] = 0 ... 16, k[32] = 0 ... 32;
        float x[16, 32] = *(a + r[:, newaxis] * 32 + k[newaxis, :]);
        float y[16, 32] = *(b + r[:, newaxis] * 32 + k[newaxis, :]);
        float z[16, 16] = 1;
        z += x @ ^y;
        *(c + r[:, newaxis] * 16 + r[newaxis, :]) = z;
        *(d + k[:, newaxis] * 32 + k[newaxis, :]) = ^x @ y + 2;
    """
    run(body, a, b, out, sums)
    np.testing.assert_array_equal(out, 1 + a @ b.T)
    np.testing.assert_array_equal(sums, a.T @ b + 2)


@pytest.mark.parametrize(
    ("symbol", "fold"),
    [
        ("+", np.add), ("*", np.multiply), ("max", np.maximum), ("min", np.minimum),
        ("&", np.bitwise_and), ("|", np.bitwise_or), ("^", np.bitwise_xor),
    ],
)  # fmt: skip
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_in_subscripts(symbol: str, fold: Any, axis: int) -> None:
    a = numbers(np.int32, 8 * 16).reshape(8, 16)
    out = np.zeros(16 if axis == 0 else 8, np.int32)
    index = f"[{symbol}, :]" if axis == 0 else f"[:, {symbol}]"
    body = f"""
        int x[8, 16] = *(a + (0 ... 8)[:, newaxis] * 16 + (0 ... 16)[newaxis, :]);
        *(b + 0 ... {len(out)}) = x{index};
    """
    run(body, a, out)
    np.testing.assert_array_equal(out, fold.reduce(a, axis=axis, dtype=np.int32))


def test_reductions_of_all_axes_and_new_axes_beside_reductions() -> None:
    a = numbers(np.int32, 4 * 8).reshape(4, 8)
    total, column = np.zeros(1, np.int32), np.zeros((4, 8), np.int32)
    body = """
        int x[4, 8] = *(a + (0 ... 4)[:, newaxis] * 8 + (0 ... 8)[newaxis, :]);
        *b = x[+, +];
        int y[4, 8] = x[:, max, newaxis];
        *(c + (0 ... 4)[:, newaxis] * 8 + (0 ... 8)[newaxis, :]) = y - x;
    """
    run(body, a, total, column)
    assert total[0] == a.sum()
    np.testing.assert_array_equal(column, a.max(axis=1, keepdims=True) - a)


def test_compound_assignments_and_steps() -> None:
    out = np.zeros(8, np.int32)
    body = """
        int x = 10; x += 2; x -= 1; x *= 4; x /= 3; x %= 8; x <<= 2; x >>= 1; x |= 1; x ^= 3; x &=
        14; *a = x; int y = 5; *(a + 1) = y++ + ++y; *(a + 2) = y-- - --y; *(a + 3) += 3; *(a + 3)
        *= 2; (*(a + 3))++; int *p = a; p++; p += 3; *p = 9; int t[2] = 0 ... 2; t++; *(a + 5 + 0
        ... 2) = t;
    """
    run(body, out)
    x = 44 // 3 % 8 << 2 >> 1
    assert list(out) == [((x | 1) ^ 3) & 14, 12, 2, 7, 9, 1, 2, 0]


def test_masked_loads_and_stores() -> None:
    a, out = numbers(), np.full(16, -1, np.float32)
    run("int i[16] = 0 ... 16; *?(i < 5) (b + i) = *?(i < 9) (a + i) + 1;", a, out)
    np.testing.assert_array_equal(out[:5], a[:5] + 1)
    np.testing.assert_array_equal(out[5:], -1)


@pytest.mark.parametrize("check", ["i < n", "n > 3"])
def test_conditional_dereference_is_a_masked_load(check: str) -> None:
    a, out = numbers(count=16), np.zeros(16, np.float32)
    body = f"int n = 5; int i[16] = 0 ... 16; *(b + i) = {check} ? *(a + i) : 0;"
    run(body, a, out)
    there = np.arange(16) < 5 if check == "i < n" else np.ones(16, bool)
    np.testing.assert_array_equal(out, np.where(there, a, 0))


def test_loads_inside_conditional_expressions_are_masked() -> None:
    a, b, out = numbers(count=4), numbers(count=16, seed=1), np.zeros(16, np.float32)
    body = "int i[16] = 0 ... 16; *(c + i) = i < 4 ? 2 * *(a + i) : (float) *(b + i) - 1;"
    run(body, a, b, out)  # reading a past its 4 elements would be an error of the interpreter
    expected = b - 1
    expected[:4] = 2 * a
    np.testing.assert_array_equal(out, expected)


def test_short_circuit_guards_the_right_side() -> None:
    a, out = np.array([3], np.int32), np.zeros(2, np.int32)
    body = """
        int far = 1000000000;
        if (far < 5 && *(a + far) > 0) *b = 1; else *b = 2;
        if (far > 5 || *(a + far) > 0) *(b + 1) = 3;
    """
    run(body, a, out)
    assert list(out) == [2, 3]


def test_functions_of_the_language_and_of_c() -> None:
    a = np.abs(numbers()) + 1
    out = np.zeros((4, 16), np.float32)
    body = f"""
        {HERE} float x[16] = *(a + i);
        *(b + i) = max(min(x, 5), 2.0f);
        *(b + 16 + i) = select(x > 3, x, -x);
        *(b + 32 + i) = sum(x) + max(x, axis = 0) + abs(-x);
        *(b + 48 + i) = cdiv((int) x, 2) + fma(x, x, x);
    """
    run(body, a, out)
    np.testing.assert_array_equal(out[0], np.clip(a, 2, 5))
    np.testing.assert_array_equal(out[1], np.where(a > 3, a, -a))
    np.testing.assert_array_equal(out[2], a.sum() + a.max() + a)
    np.testing.assert_array_equal(out[3], -(-a // 2) + a * a + a)


@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "int8", "int16", "int64", "uint8", "uint32"]
)
def test_types(dtype: str) -> None:
    a, b = numbers(dtype), numbers(dtype, seed=1)
    np.testing.assert_array_equal(elementwise("A + B * A", a, b, dtype), a + b * a)


def test_atomics() -> None:
    out = np.array([5, 5, 5, 5], np.int32)
    body = """
        atomic_add(a, 2); atomic_max(a + 1, 9); atomic_min(a + 2, 1);
        int old = atomic_xchg(a + 3, 7); atomic_cas(a + 3, 7, old + 1);
    """
    run(body, out)
    assert list(out) == [7, 9, 1, 6]


def test_null_pointers_and_pointers_of_other_types() -> None:
    out = np.zeros(2, np.int32)
    run("int *p = a; int *q = NULL; if (p != NULL && q == 0) *(float *) (p + 1) = 1;", out)
    assert out.view(np.float32)[1] == 1


def test_printf_and_assert(capsys: pytest.CaptureFixture[str]) -> None:
    k = kernel(
        '__global__ void k(int *p) { printf("x = %d\\n", *p); assert(*p == 3, "three"); }',
        interpret=True,
    )
    k[(1,)](np.array([3], np.int32))
    assert "x: 3" in capsys.readouterr().out
    with pytest.raises(errors.DeviceAssertionFailure, match="three"):
        k[(1,)](np.array([4], np.int32), debug=True)
