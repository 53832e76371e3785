"""The matrix product, in every pairing of types that kernels use."""

import numpy as np
import pytest

import tilewright.ops as ops
from tests.unit.interp.tiles import run, same, tile
from tilewright.interp import NUMPY_DTYPES, round_float
from tilewright.ir.types import bf16, f8e4m3, f8e5m2, f16, f32, f64, i8, i16, i32, i64, u8

RNG = np.random.default_rng(4)


def naive(a, b, acc):
    out = acc.copy()
    for i, j, k in np.ndindex(a.shape[0], b.shape[1], a.shape[1]):
        out[i, j] += a[i, k] * b[k, j]
    return out


@pytest.mark.parametrize(
    "left, right, total",
    [(f16, f16, f32), (bf16, bf16, f32), (f32, f32, f32), (f64, f64, f64), (f16, f16, f16)]
    + [(f8e4m3, f8e5m2, f32)],
    ids=str,
)
def test_floats(left, right, total):
    a = RNG.integers(-8, 8, (4, 16)).astype(np.float64) / 4
    b = RNG.integers(-8, 8, (16, 8)).astype(np.float64) / 4
    acc = RNG.integers(-8, 8, (4, 8)).astype(np.float64)
    found = run(ops.DotOp(tile(left, a), tile(right, b), tile(total, acc)))
    assert same(found, round_float(naive(a, b, acc), total))


@pytest.mark.parametrize(
    "dtype, total", [(i8, i32), (u8, i32), (i16, i32), (i32, i32), (i64, i64)], ids=str
)
def test_integers_are_exact_and_wrap(dtype, total):
    a = RNG.integers(dtype.min_int, dtype.max_int, (3, 32), endpoint=True)
    b = RNG.integers(dtype.min_int, dtype.max_int, (32, 5), endpoint=True)
    acc = RNG.integers(-(2**31), 2**31, (3, 5))
    found = run(ops.DotOp(tile(dtype, a), tile(dtype, b), tile(total, acc)))
    exact = naive(a.astype(object), b.astype(object), acc.astype(object))
    assert (
        found.tolist()
        == (exact & (2**total.bits - 1)).astype(np.uint64).astype(NUMPY_DTYPES[total]).tolist()
    )


def test_batches():
    a, b = RNG.normal(size=(2, 4, 8)), RNG.normal(size=(2, 8, 4))
    found = run(ops.DotOp(tile(f64, a), tile(f64, b), tile(f64, np.zeros((2, 4, 4)))))
    np.testing.assert_allclose(
        found, np.stack([naive(x, y, np.zeros((4, 4))) for x, y in zip(a, b, strict=True)])
    )
