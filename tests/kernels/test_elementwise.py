"""Element-wise operators on every element type, at edge values and odd sizes."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels import functions
from tests.kernels.data import (
    ALL,
    BOOL,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    anything,
    assert_near,
    assert_same,
    edges,
    is_float,
    pairs,
)
from tests.kernels.devices import Array, Device
from tilewright import cdiv, jit

TINY = float(np.finfo(np.float32).tiny)
BLOCK = 64
ROWS = 4


@jit
def unary_kernel(x, out, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, FUNCTION(tl.load(x + i, mask=i < n)), mask=i < n)


@jit
def binary_kernel(x, y, out, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    tl.store(out + i, FUNCTION(a, b), mask=i < n)


@jit
def ternary_kernel(x, y, z, out, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    c = tl.load(z + i, mask=i < n)
    tl.store(out + i, FUNCTION(a, b, c), mask=i < n)


def apply(device: Device, function: Any, *inputs: Array, dtype: Any = None) -> Array:
    """The function on all elements, by the kernel for that many operands."""
    n = inputs[0].size
    out = device.empty(n, inputs[0].dtype if dtype is None else dtype)
    kernel = {1: unary_kernel, 2: binary_kernel, 3: ternary_kernel}[len(inputs)]
    device.run(
        kernel, (cdiv(n, BLOCK),), *map(device.array, inputs), out, n,
        FUNCTION=function, BLOCK=BLOCK,
    )  # fmt: skip
    return out


def cases(table: dict[str, Any], dtypes: Any) -> Any:
    return pytest.mark.parametrize(
        ("name", "dtype"), [(name, dtype) for name in table for dtype in dtypes], ids=str
    )


@cases(functions.BINARY, NUMBERS)
def test_arithmetic(device: Device, rng: np.random.Generator, name: str, dtype: Any):
    """Integers wrap around; a float result is the exact one, rounded once."""
    function, reference = functions.BINARY[name]
    x, y = pairs(rng, 333, dtype)
    extremum = "minimum" in name or "maximum" in name
    assert_same(apply(device, function, x, y), reference(x, y), same_zeros=not extremum)


@cases(functions.DIVISION, INTEGERS)
def test_integer_division(device: Device, rng: np.random.Generator, name: str, dtype: Any):
    """Quotients are rounded towards zero; the remainder has the sign of the dividend.

    Zero divides as one, and the least number by -1 is itself.
    """
    function, reference = functions.DIVISION[name]
    x, y = pairs(rng, 333, dtype)
    assert_same(apply(device, function, x, y), reference(x, y))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int16, np.uint8], ids=str)
@pytest.mark.parametrize("name", functions.DIVISION)
def test_integer_division_next_to_multiples(
    device: Device, rng: np.random.Generator, name: str, dtype: Any
):
    """Quotients are exact for the largest dividends and divisors, and one above and below
    multiples, where a rounded quotient of floats would reach the next integer."""
    function, reference = functions.DIVISION[name]
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    y = rng.integers(1, most, 333, dtype=dtype, endpoint=True)
    y[:8] = [1, 2, 3, 7, most, most - 1, most // 2, most // 3]
    multiple = most // y * y
    x = np.concatenate([multiple, multiple - 1, np.minimum(multiple, most - 1) + 1, -multiple])
    x[:2] = least, most
    y = np.tile(y, 4)
    assert_same(apply(device, function, x, y), reference(x, y))


@jit
def by_zero_kernel(x, out, n, zero, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v // zero)
    tl.store(out + N + i, v % zero)
    tl.store(out + 2 * N + i, (v.to(tl.int16) // (i * zero).to(tl.int16)).to(tl.int32))
    tl.store(out + 3 * N + i, (v.to(tl.int8).to(tl.int32) % (i - i).to(tl.int8).to(tl.int32)))
    tl.store(out + 4 * N + i, n // zero + n % zero)
    zeros = tl.zeros((N,), tl.int32)
    tl.store(out + 5 * N + i, v // zeros + v % zeros)
    tl.store(out + 6 * N + i, tl.full((N,), 7, tl.int32) // zeros)


def test_division_by_zero(device: Device, rng: np.random.Generator):
    """By arguments, by tiles, and by what is known to be zero; of short integers, too."""
    x, out = rng.integers(-999, 999, 64).astype(np.int32), device.empty(7 * 64, np.int32)
    device.run(by_zero_kernel, (1,), device.array(x), out, 7, 0, N=64)
    same, none = np.ones(64, np.int32), np.zeros(64, np.int32)
    assert_same(out, np.concatenate([x, none, x, none, 7 * same, x, 7 * same]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_division(device: Device, rng: np.random.Generator, dtype: Any):
    x, y = pairs(rng, 333, dtype)
    found = apply(device, functions.truediv, x, y)
    if device.is_approximate and dtype == np.float32:
        with np.errstate(all="ignore"):
            assert_near(found, x.astype(np.float64) / y.astype(np.float64), 2.0, TINY)
        return
    assert_same(found, functions.in_float64(np.divide)(x, y))


def test_quotients_by_one_divisor_are_rounded_once(device: Device, rng: np.random.Generator):
    """A divisor for the whole tile, and one for each row; quotients that are floats come out so,
    where others may be wrong by 2 ulp too."""
    whole = np.arange(1, ROWS * BLOCK + 1, dtype=np.float32).reshape(ROWS, BLOCK)
    for divisor in (41, 47, 55, 61, 97, 107, 3.7e-39, 1e-30, 1.7e38, 0.1):
        rows = np.full(ROWS, divisor, np.float32)
        with np.errstate(all="ignore"):
            x = np.where(whole % 3 == 0, rng.normal(size=whole.shape), whole * rows[0])
            x = x.astype(np.float32)
            x[0, :6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45
            expected = x / rows[:, None]
        by_one, by_row = (device.empty(x.shape, np.float32) for _ in range(2))
        device.run(
            divide_rows, (1,), device.array(x), device.array(rows), float(rows[0]), by_one, by_row,
            ROWS=ROWS, BLOCK=BLOCK,
        )  # fmt: skip
        with np.errstate(all="ignore"):
            quotients = x.astype(np.float64) / rows[:, None].astype(np.float64)
        surely = ~np.isfinite(expected) | (quotients == expected)
        for found in (np.asarray(by_one), np.asarray(by_row)):
            assert_near(found, quotients, 2.0 if device.is_approximate else 0.5, TINY)
            chosen = surely if device.is_approximate else np.full(x.shape, True)
            assert_same(found[chosen], expected[chosen])


@jit
def divide_rows(x, rows, divisor, by_one, by_row, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, ROWS)[:, None]
    at = i * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(by_one + at, v / divisor)
    tl.store(by_row + at, v / tl.load(rows + i))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_remainder(device: Device, rng: np.random.Generator, dtype: Any):
    """The remainder of floats has the sign of the dividend, and is exact."""
    x, y = pairs(rng, 333, dtype)
    assert_same(apply(device, functions.mod, x, y), functions.in_float64(np.fmod)(x, y))


@jit
def by_three(x):
    return x % 3.0


@jit
def by_a_negative(x):
    return x % -0.7


@jit
def by_a_subnormal(x):
    return x % 1e-40


@jit
def by_the_least_normal(x):
    return x % 1.2e-38


@jit
def by_a_large_one(x):
    return x % 8.5e37


CONSTANTS = [
    (by_three, 3.0),
    (by_a_negative, -0.7),
    (by_a_subnormal, 1e-40),
    (by_the_least_normal, 1.2e-38),
    (by_a_large_one, 8.5e37),
]


@pytest.mark.parametrize(("function", "divisor"), CONSTANTS)
def test_remainders_of_constants(
    device: Device, rng: np.random.Generator, function: Any, divisor: float
):
    quotients = np.concatenate([rng.integers(-(2**22), 2**22, 150), np.arange(-40, 40)])
    any_bits = rng.integers(0, 2**32, 600, dtype=np.uint32).view(np.float32)
    with np.errstate(over="ignore"):
        multiples = quotients.astype(np.float32) * np.float32(divisor)
    x = np.concatenate([multiples, any_bits, edges(np.dtype(np.float32))]).astype(np.float32)
    expected = functions.in_float64(np.fmod)(x, np.full_like(x, divisor))
    assert_same(apply(device, function, x), expected)


@cases(functions.BITWISE, (BOOL, *INTEGERS))
def test_bitwise(device: Device, rng: np.random.Generator, name: str, dtype: Any):
    function, reference = functions.BITWISE[name]
    x, y = pairs(rng, 333, dtype)
    assert_same(apply(device, function, x, y), reference(x, y))


@jit
def mixed_integers_kernel(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    count = b & 7
    tl.store(out + i, a + b)
    tl.store(out + BLOCK + i, a - b)
    tl.store(out + 2 * BLOCK + i, a * b)
    tl.store(out + 3 * BLOCK + i, a ^ b)
    tl.store(out + 4 * BLOCK + i, a < b)
    tl.store(out + 5 * BLOCK + i, tl.maximum(a, b))
    tl.store(out + 6 * BLOCK + i, tl.where(i < 4, a, b))
    tl.store(out + 7 * BLOCK + i, a << count)
    tl.store(out + 8 * BLOCK + i, a >> count)


def wrapped(value: int, dtype: np.dtype[Any]) -> int:
    """An integer in the range of a dtype."""
    info, span = np.iinfo(dtype), 1 << (8 * dtype.itemsize)
    return (value - info.min) % span + info.min


def common_integer(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The wider; of mixed signedness the unsigned one, unless it is narrower."""
    return max(a, b, key=lambda t: (t.itemsize, t.kind == "u"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (a, b)
        for a in INTEGERS
        for b in INTEGERS
        if a.kind != b.kind and {a.itemsize, b.itemsize} & {4}
    ],
    ids=str,
)
def test_integers_of_different_signedness(
    device: Device, rng: np.random.Generator, left: Any, right: Any
):
    """Both become the common type; a right shift keeps the sign of a signed left operand."""
    common = common_integer(left, right)
    shifted = np.dtype(f"i{common.itemsize}") if left.kind == "i" else common
    x, y = edges(left)[:16], edges(right)[:16]
    x, y = np.resize(x, 16), rng.permutation(np.resize(y, 16))
    out = device.empty((9, 16), np.int64)
    device.run(mixed_integers_kernel, (1,), device.array(x), device.array(y), out, BLOCK=16)
    for k, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        u, v, count = wrapped(a, common), wrapped(b, common), b & 7
        exact = [u + v, u - v, u * v, u ^ v, u < v, max(u, v), u if k < 4 else v, u << count]
        expected = [wrapped(n, common) for n in exact]
        expected += [wrapped(wrapped(a, shifted) >> count, common)]
        assert out[:, k].tolist() == [wrapped(n, np.dtype(np.int64)) for n in expected]


@cases(functions.SHIFTS, INTEGERS)
def test_shifts(device: Device, rng: np.random.Generator, name: str, dtype: Any):
    """A right shift of signed integers keeps the sign."""
    function, reference = functions.SHIFTS[name]
    x = anything(rng, 333, dtype)
    y = rng.integers(0, 8 * dtype.itemsize, x.size).astype(dtype)
    assert_same(apply(device, function, x, y), reference(x, y))


@cases(functions.COMPARISONS, (BOOL, *NUMBERS))
def test_comparisons(device: Device, rng: np.random.Generator, name: str, dtype: Any):
    function, reference = functions.COMPARISONS[name]
    x, y = pairs(rng, 333, dtype)
    assert_same(apply(device, function, x, y, dtype=bool), reference(x, y))


@cases(functions.UNARY, SIGNED + FLOATS)
def test_negation_and_magnitude(device: Device, rng: np.random.Generator, name: str, dtype: Any):
    function, reference = functions.UNARY[name]
    with np.errstate(all="ignore"):
        x = anything(rng, 333, dtype)
        assert_same(apply(device, function, x), reference(x))


@pytest.mark.parametrize("dtype", (BOOL, *INTEGERS), ids=str)
def test_inversion(device: Device, rng: np.random.Generator, dtype: Any):
    x = anything(rng, 333, dtype)
    assert_same(apply(device, functions.invert, x), np.invert(x))


@pytest.mark.parametrize("dtype", (BOOL, *NUMBERS), ids=str)
def test_test_for_zero(device: Device, rng: np.random.Generator, dtype: Any):
    x = anything(rng, 333, dtype)
    x[::3] = 0
    assert_same(apply(device, functions.is_nonzero, x, dtype=bool), x != 0)


@jit
def fma(x, y, z):
    return tl.fma(x, y, z)


@jit
def clamp(x, y, z):
    return tl.clamp(x, y, z)


@jit
def choose(c, x, y):
    return tl.where(c != 0, x, y)


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
def test_fma_rounds_once(device: Device, rng: np.random.Generator, dtype: Any):
    """x * y - (x * y, rounded) is the exact rounding error of the product."""
    x, y = rng.normal(size=(2, 333)).astype(dtype)
    z = (-x * y).astype(dtype)
    exact = [
        float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))
        for a, b, c in zip(x, y, z, strict=True)
    ]
    assert_same(apply(device, fma, x, y, z), np.array(exact, dtype), same_zeros=False)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_clamp(device: Device, rng: np.random.Generator, dtype: Any):
    x = anything(rng, 333, dtype)
    x[np.isnan(x)] = 1
    low, high = np.sort(rng.normal(size=(2, 333)), axis=0).astype(dtype)
    expected = np.minimum(np.maximum(x, low), high)
    assert_same(apply(device, clamp, x, low, high), expected, same_zeros=False)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_where(device: Device, rng: np.random.Generator, dtype: Any):
    x, y = pairs(rng, 333, dtype)
    condition = rng.integers(0, 2, x.size).astype(np.int32)
    out = device.empty(x.size, dtype)
    inputs = map(device.array, (condition, x, y))
    grid = (cdiv(x.size, BLOCK),)
    device.run(ternary_kernel, grid, *inputs, out, x.size, FUNCTION=choose, BLOCK=BLOCK)
    assert_same(out, np.where(condition != 0, x, y))


@jit
def copy_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_copy(device: Device, rng: np.random.Generator, dtype: Any):
    """Loads and stores keep every bit, at any size of the array."""
    for n in (1, 2, 63, 64, 65, 333):
        x, out = device.array(anything(rng, n, dtype)), device.empty(n, dtype)
        device.run(copy_kernel, (cdiv(n, BLOCK),), x, out, n, BLOCK=BLOCK)
        if is_float(dtype):
            x[np.isnan(x)], out[np.isnan(out)] = 1, 1
        np.testing.assert_array_equal(out.view(np.uint8), x.view(np.uint8))


@jit
def mixed_kernel(i8, u16, i32, f16, f32, out_i, out_f, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(i8 + i, mask=m)
    b = tl.load(u16 + i, mask=m)
    c = tl.load(i32 + i, mask=m)
    d = tl.load(f16 + i, mask=m)
    e = tl.load(f32 + i, mask=m)
    tl.store(out_i + i, a * 2 + b - c, mask=m)
    tl.store(out_f + i, d * a + e * 0.5 + c, mask=m)


def test_element_types_of_several_widths_in_one_kernel(device: Device, rng: np.random.Generator):
    n = 333
    a = rng.integers(-20, 20, n).astype(np.int8)
    b = rng.integers(0, 60000, n).astype(np.uint16)
    c = rng.integers(-1000, 1000, n).astype(np.int32)
    d, e = rng.integers(-8, 8, n).astype(np.float16), rng.normal(size=n).astype(np.float32)
    out_i, out_f = device.empty(n, np.int32), device.empty(n, np.float32)
    device.run(
        mixed_kernel, (cdiv(n, BLOCK),), *map(device.array, (a, b, c, d, e)), out_i, out_f, n,
        BLOCK=BLOCK,
    )  # fmt: skip
    product = (d * a).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(out_i, (a * np.int8(2)).astype(np.int32) + b - c)
    np.testing.assert_allclose(out_f, product + e * 0.5 + c, rtol=1e-6)


@jit
def constants_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    v = (1 + v) * 2 - 3
    v = 5 - v
    v = v + tl.full((BLOCK,), 1, v.dtype) - tl.zeros_like(v)
    tl.store(out + i, v, mask=i < n)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_literals_take_the_type_of_the_tile(device: Device, rng: np.random.Generator, dtype: Any):
    x = rng.integers(0, 20, 333).astype(dtype)
    out = device.empty(333, dtype)
    device.run(constants_kernel, (6,), device.array(x), out, 333, BLOCK=BLOCK)
    one, two, three, five = (dtype.type(k) for k in (1, 2, 3, 5))
    with np.errstate(all="ignore"):
        expected = five - ((one + x) * two - three) + one
    assert_same(out, expected.astype(dtype))


def test_edges_are_what_they_claim():
    assert np.isinf(edges(np.float16)).sum() == 2 and np.isnan(edges("float32")).sum() == 1
    assert edges(np.int8).min() == -128 and edges(np.uint64).max() == 2**64 - 1


@jit
def literal_kernel(out, x, VALUE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tile = tl.load(x + i)
    tl.store(out + i, (tile * VALUE).to(tl.float32))
    tl.store(out + BLOCK + i, tl.full([BLOCK], VALUE, tile.dtype).to(tl.float32))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("float16", 70000, np.inf),
        ("float16", -1e300, -np.inf),
        ("float16", 65519.99, 65504),
        ("float16", 1 + 2**-11 + 2**-40, 1 + 2**-10),
        ("bfloat16", 3.4e38, np.inf),
        ("bfloat16", -(10**39), -np.inf),
        ("bfloat16", 1 + 2**-8 + 2**-40, 1 + 2**-7),
        ("bfloat16", 1 + 2**-8 - 2**-40, 1.0),
        ("float32", 3.5e38, np.inf),
    ],
)
def test_literals_beside_floats_are_rounded_as_conversions_are(
    device: Device, name: str, value: float, expected: float
) -> None:
    """Triton calls a literal beside a float one of its type, so what is too large is infinite."""
    dtype = next(kind for kind in FLOATS if kind.name == name)
    x, out = device.array(np.ones(8), dtype), device.empty((2, 8), np.float32)
    device.run(literal_kernel, (1,), out, x, value, 8)
    np.testing.assert_array_equal(out, np.full((2, 8), expected, np.float32))


@jit
def times_minus_zero(x):
    return x * -0.0


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products_with_minus_zero_have_the_sign_of_both(device: Device, dtype: Any) -> None:
    x = np.arange(-3, 4).astype(dtype)
    assert_same(apply(device, times_minus_zero, x), x * np.array(-0.0, dtype))


@jit
def negated_and_widened_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, (-value).to(tl.int32), mask=i < n)
    tl.store(out + n + i, tl.abs(value).to(tl.int32), mask=i < n)
    tl.store(out + 2 * n + i, ((value * -2) >> 3).to(tl.int32), mask=i < n)
    tl.store(out + 3 * n + i, (-value < 0).to(tl.int32), mask=i < n)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_negated_narrow_integers_wrap_before_they_are_widened(device: Device, dtype: Any):
    """ptxas makes +32768 of -(-32768)."""
    x = edges(dtype)
    out = device.empty(4 * x.size, np.int32)
    device.run(negated_and_widened_kernel, (1,), device.array(x), out, x.size, BLOCK=BLOCK)
    expected = [-x, np.abs(x), (x * dtype(-2)) >> 3, -x < 0]
    assert_same(out, np.concatenate(expected).astype(np.int32))


@jit
def shift_kernel(x, y, out, same, N: tl.constexpr):
    i = tl.arange(0, N)
    shifted = tl.load(x + i) >> tl.load(y + i)
    tl.store(out + i, shifted)
    tl.store(same + i, (shifted.dtype == out.dtype.element_ty) & (i >= 0))


@pytest.mark.parametrize("left", INTEGERS, ids=str)
@pytest.mark.parametrize("right", INTEGERS, ids=str)
def test_shifts_of_two_types(device: Device, rng: np.random.Generator, left: Any, right: Any):
    """In the common type, as other operators; but the sign is copied where the left has one."""
    wider, other = (left, right) if left.itemsize > right.itemsize else (right, left)
    unsigned = wider.kind == "u" or other.kind == "u" and wider.itemsize == other.itemsize
    common = np.dtype(f"{'u' if unsigned else 'i'}{wider.itemsize}")
    computed = np.dtype(f"i{wider.itemsize}") if left.kind == "i" else common
    x, y = anything(rng, 64, left), rng.integers(0, 8 * wider.itemsize, 64).astype(right)
    out, same = device.empty(64, common), device.empty(64, bool)
    device.run(shift_kernel, (1,), device.array(x), device.array(y), out, same, N=64)
    assert_same(out, (x.astype(computed) >> y.astype(computed)).astype(common))
    assert same.all()
