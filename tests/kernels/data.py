"""Element types, values that matter for them, and comparisons."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import tilewright.language as tl

Array = np.ndarray[Any, Any]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FP8 = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))
FNUZ = (np.dtype(ml_dtypes.float8_e4m3fnuz), np.dtype(ml_dtypes.float8_e5m2fnuz))
SIGNED = tuple(np.dtype(f"int{n}") for n in (8, 16, 32, 64))
UNSIGNED = tuple(np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
INTEGERS = SIGNED + UNSIGNED
FLOATS = (np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("float64"))
BOOL = np.dtype("bool")
NUMBERS = INTEGERS + FLOATS
ALL = (BOOL, *NUMBERS, *FP8, *FNUZ)

LANGUAGE = {
    **{dtype: getattr(tl, str(dtype)) for dtype in (*INTEGERS, *FLOATS)},
    BOOL: tl.int1,
    FP8[0]: tl.float8e4nv,
    FP8[1]: tl.float8e5,
    FNUZ[0]: tl.float8e4b8,
    FNUZ[1]: tl.float8e5b16,
}
"""NumPy dtype -> dtype of the language."""


def is_float(dtype: Any) -> bool:
    """Whether a dtype is a floating type; those of ml_dtypes have no kind of their own."""
    return np.dtype(dtype) in (*FLOATS, *FP8, *FNUZ)


def finfo(dtype: Any) -> Any:
    """`numpy.finfo` for the types of ml_dtypes too."""
    return ml_dtypes.finfo(np.dtype(dtype))


def edges(dtype: Any) -> Array:
    """Zeros, ones, extremes, denormals, infinities and NaN, as far as the type has them."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return np.array([False, True])
    if not is_float(dtype):
        info = np.iinfo(dtype)
        signed = [-1, -2, info.min + 1] if info.min else []
        return np.array([0, 1, 2, 7, info.max, info.max - 1, info.min, *signed], dtype)
    info = finfo(dtype)
    tiny, small, top = (float(x) for x in (info.smallest_subnormal, info.tiny, info.max))
    plain = [0.0, 1.0, 0.5, 3.0, top, small, tiny, small - tiny, float("inf")]
    return np.array([*plain, *(-x for x in plain), float("nan")]).astype(dtype)


def normals(rng: np.random.Generator, shape: Any, dtype: Any) -> Array:
    """Ordinary values: normally distributed, or small integers."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if is_float(dtype):
        return rng.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -50), min(info.max, 50), shape).astype(dtype)


def anything(rng: np.random.Generator, n: int, dtype: Any) -> Array:
    """Values of every size, and the edges."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return normals(rng, n, dtype)
    raw = rng.integers(0, 256, n * dtype.itemsize).astype(np.uint8).view(dtype)
    mixed = np.where(rng.random(n) < 0.5, raw, normals(rng, n, dtype))
    special = edges(dtype)
    places = rng.choice(n, min(len(special) * 2, n), replace=False)
    mixed[places] = np.resize(special, len(places))
    return mixed


def pairs(rng: np.random.Generator, n: int, dtype: Any) -> tuple[Array, Array]:
    """Two arrays in which every edge meets every other one."""
    special = edges(dtype)
    x, y = (a.reshape(-1) for a in np.meshgrid(special, special))
    more = max(n - x.size, 0)
    return (
        np.concatenate([x, anything(rng, more + 64, dtype)])[: x.size + more],
        np.concatenate([y, anything(rng, more + 64, dtype)])[: x.size + more],
    )


def poison_like(x: Array) -> Array:
    """An array of NaN of the shape and type of another."""
    return np.full_like(x, np.nan)


def assert_same(actual: Array, expected: Array, same_zeros: bool = True) -> None:
    """Equal bit by bit; any NaN is like any other; zeros of both signs only on demand."""
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if not is_float(actual.dtype):
        np.testing.assert_array_equal(actual, expected)
        return
    bits = np.dtype(f"uint{8 * actual.dtype.itemsize}")
    same = actual.view(bits) == np.ascontiguousarray(expected).view(bits)
    same |= np.isnan(actual) & np.isnan(expected)
    if not same_zeros:
        same |= (actual == 0) & (expected == 0)
    if not same.all():
        wrong = np.argwhere(~same)[:5]
        shown = [f"{tuple(i)}: {actual[tuple(i)]} not {expected[tuple(i)]}" for i in wrong]
        raise AssertionError(f"{(~same).sum()} of {same.size} differ: {'; '.join(shown)}")


def assert_near(actual: Array, expected: Array, ulps: Any = 2.0, floor: float = 0.0) -> None:
    """Within `ulps` units in the last place of the type of `actual`, or within `floor`."""
    exact = np.asarray(expected, np.float64)
    info = finfo(actual.dtype)
    rounded = exact.astype(actual.dtype).astype(np.float64)
    special = ~np.isfinite(rounded)
    found = actual.astype(np.float64)
    np.testing.assert_array_equal(found[special], rounded[special])
    exact = np.where(special, 0, exact)
    size = np.maximum(np.abs(exact), float(info.tiny))
    spacing = 2.0 ** (np.floor(np.log2(size)) - info.nmant)
    with np.errstate(invalid="ignore"):
        error = np.where(special, 0, np.abs(found - exact))
    allowed = np.maximum(ulps * spacing, floor)
    bad = ~(error <= allowed)
    if bad.any():
        i = tuple(np.argwhere(bad)[0])
        raise AssertionError(
            f"{bad.sum()} of {bad.size} differ; at {i} {found[i]} not {exact[i]}: "
            f"{(error / spacing)[i]:.1f} ulp"
        )
