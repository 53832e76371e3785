"""How far the compiled elementary functions are from the exact values, over all kinds of arguments.

An ulp is the distance of floats at the exact value. The bounds are what was measured on many more
values than here, rounded up; docs/internals/math.md has the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.backends.cpu.elementwise import (
    Array,
    compiled,
    interpreted,
    math_kernel,
    prepared,
)
from tilewright.llvm import host_cpu

COUNT = 1 << 20

Reference = Callable[[Array], Array]


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _erf(x: Array) -> Array:
    return np.array([math.erf(v) for v in x], np.float64)


REFERENCES: dict[str, Reference] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "erf": _erf, "sqrt": np.sqrt, "rsqrt": _rsqrt,
}  # fmt: skip

BOUNDS = {
    ("f32", True): {
        "exp": 0.9, "exp2": 1.0, "log": 1.2, "log2": 1.6, "sin": 1.6, "cos": 1.6, "tanh": 1.4,
        "erf": 1.3, "sqrt": 0.5, "rsqrt": 1.5,
    },
    ("f32", False): {
        "exp": 1.2, "exp2": 1.2, "log": 1.2, "log2": 2.6, "sin": 2.5, "cos": 2.5, "tanh": 1.4,
        "erf": 1.6, "sqrt": 0.5, "rsqrt": 1.5,
    },
    ("f64", True): {
        "exp": 1.0, "exp2": 1.0, "log": 0.8, "log2": 0.9, "sin": 1.6, "cos": 1.6, "tanh": 1.4,
        "erf": 2.0, "sqrt": 0.5, "rsqrt": 1.5,
    },
    ("f64", False): {
        "exp": 1.2, "exp2": 1.2, "log": 0.8, "log2": 1.6, "sin": 2.5, "cos": 2.5, "tanh": 1.4,
        "erf": 2.0, "sqrt": 0.5, "rsqrt": 1.5,
    },
}  # fmt: skip
"""Largest error by (type, fma) and function; erf in f64 is compared with the C library's, which is
up to 1 ulp off itself."""

RANGES = {"exp": 110, "exp2": 155, "tanh": 12, "erf": 6, "sin": 1000, "cos": 1000}
"""Half of the argument range that gets most of the values; others take positive numbers."""


def _arguments(function: str, dtype: str, count: int) -> Array:
    """Of the interesting range, of all bit patterns, close to 0, 1 and multiples of pi/2."""
    random = np.random.default_rng(7)
    float_type = np.dtype("f4" if dtype == "f32" else "f8")
    quarter = count // 4
    widest = RANGES.get(function, 100) * (7 if dtype == "f64" and function.startswith("exp") else 1)
    usual = random.uniform(-widest, widest, quarter)
    near_one = 1 + random.normal(0, 1e-2, quarter)
    quarter_turns = random.integers(-(10**5), 10**5, quarter) * (np.pi / 2)
    bits = random.integers(0, 2 ** (8 * float_type.itemsize), quarter, dtype=np.uint64)
    any_bits = bits.astype(f"u{float_type.itemsize}").view(float_type)
    found = np.concatenate(
        [v.astype(float_type) for v in (usual, near_one, quarter_turns)] + [any_bits]
    )
    found[np.isnan(found)] = 0.5
    return np.abs(found) if function in ("log", "log2", "sqrt", "rsqrt") else found


def ulps(found: Array, exact: Array) -> Array:
    """Distance in units of the last place of `exact` as a float of the type of `found`."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = exact.astype(found.dtype)
        distance = np.abs(found - exact) / np.spacing(np.abs(near))
    same = (found == near) | (np.isnan(found) & np.isnan(near))
    return np.where(same & ~np.isfinite(near), 0.0, distance).astype(np.float64)


def _worst(
    function: str, dtype: str, fma: bool, count: int, avx512: bool = False
) -> tuple[float, float]:
    x = _arguments(function, dtype, count)
    found = compiled(math_kernel(function, dtype), dtype, fma, avx512=avx512)(x)
    wide = np.float64 if dtype == "f32" or function == "erf" else np.longdouble
    with np.errstate(all="ignore"):
        errors = ulps(found, REFERENCES[function](x.astype(wide)))
    worst = (
        int(np.nanargmax(errors)) if not np.isnan(errors).any() else int(np.isnan(errors).argmax())
    )
    return float(errors[worst]), float(x[worst])


@pytest.mark.parametrize("function", REFERENCES)
def test_f32_is_within_its_bound(function: str) -> None:
    error, at = _worst(function, "f32", True, COUNT)
    assert error <= BOUNDS["f32", True][function], f"{error} ulp at {at!r}"


@pytest.mark.skipif(not host_cpu().has_avx512, reason="another CPU")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("function", REFERENCES)
def test_avx512_is_within_the_bound(function: str, dtype: str) -> None:
    error, at = _worst(function, dtype, True, COUNT if dtype == "f32" else COUNT // 8, True)
    assert error <= BOUNDS[dtype, True][function], f"{error} ulp at {at!r}"


ENDS = {"erf": [(i + 0.5) * 8 / 31 for i in range(16)],
        "tanh": [2.0**e * (1 + q / 4) for e in range(-5, 4) for q in range(4)]}  # fmt: skip


@pytest.mark.parametrize("function", ENDS)
def test_where_pieces_meet_each_number_has_the_polynomial_of_its_piece(function: str) -> None:
    """By the NumPy rules, so that it is seen on any machine."""
    ends = np.array(ENDS[function], np.float32).view(np.int32)
    x = np.resize(ends[:, None] + np.arange(-3, 4, dtype=np.int32), 256).view(np.float32)
    function_text = math_kernel(function, "f32", 256)
    found = interpreted(prepared(function_text, avx512=True), "f32", x, block=256)
    errors = ulps(found, REFERENCES[function](x.astype(np.float64)))
    assert errors.max() <= BOUNDS["f32", True][function], x[errors.argmax()]


@pytest.mark.parametrize("function", REFERENCES)
def test_f32_without_fused_products_is_within_its_bound(function: str) -> None:
    error, at = _worst(function, "f32", False, COUNT // 4)
    assert error <= BOUNDS["f32", False][function], f"{error} ulp at {at!r}"


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no extended precision here")
@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("function", REFERENCES)
def test_f64_is_within_its_bound(function: str, fma: bool) -> None:
    error, at = _worst(function, "f64", fma, COUNT // 8)
    assert error <= BOUNDS["f64", fma][function], f"{error} ulp at {at!r}"


def test_a_result_off_by_one_is_one_ulp() -> None:
    """The measure itself."""
    exact = np.array([1.0, 3.0, 1e-45, np.inf, np.nan])
    found = np.array([1.0, 3.0, 0.0, np.inf, np.nan], np.float32)
    found[0] += np.float32(2**-23)
    assert ulps(found, exact).round(1).tolist() == [1.0, 0.0, 0.7, 0.0, 0.0]
