"""Matrix products: operand types, sizes, transposed operands, masks, epilogues, batches."""

# pyright: reportArgumentType=false

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import BFLOAT16, FP8, Array, normals
from tests.kernels.devices import Device
from tilewright import cdiv, jit

TYPES = ["float16", BFLOAT16, "float32", "float64", "int8", "uint8", *FP8]


def result_type(dtype: Any) -> str:
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return "int32"
    return "float64" if dtype == np.float64 else "float32"


def assert_product(found: Array, a: Array, b: Array, extra: Any = 0.0) -> None:
    """Within the error bound of a sum of K products in the type of `found`."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    exact = left @ right + extra
    if found.dtype.kind == "i":
        np.testing.assert_array_equal(found, exact.astype(np.int64))
        return
    unit = 2.0**-53 if found.dtype == np.float64 else 2.0**-24
    bound = (a.shape[-1] + 2) * unit * (np.abs(left) @ np.abs(right) + np.abs(extra))
    assert (np.abs(found - exact) <= bound).all(), np.abs(found - exact).max()


@jit
def one_tile_kernel(
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr = "ieee"
):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + i[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * N + j[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(left, right, input_precision=PRECISION))


def one_tile(device: Device, a: Array, b: Array, **words: Any) -> Array:
    (m, k), n = a.shape, b.shape[1]
    c = device.empty((m, n), result_type(a.dtype))
    device.run(one_tile_kernel, (1,), device.array(a), device.array(b), c, M=m, N=n, K=k, **words)
    return c


SIZES = [
    (16, 16, 16), (32, 64, 16), (64, 32, 128), (1, 16, 16), (16, 1, 32), (4, 8, 2), (2, 2, 1),
    (32, 32, 4), (8, 32, 8), (32, 4, 16), (2, 2, 4), (1, 1, 64),
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_types(device: Device, rng: np.random.Generator, dtype: Any):
    a, b = normals(rng, (32, 16), dtype), normals(rng, (16, 64), dtype)
    assert_product(one_tile(device, a, b), a, b)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
def test_sizes(device: Device, rng: np.random.Generator, size: Any, dtype: str):
    m, n, k = size
    a, b = normals(rng, (m, k), dtype), normals(rng, (k, n), dtype)
    assert_product(one_tile(device, a, b), a, b)


def test_extremes_of_int8(device: Device):
    a, b = np.full((16, 64), -128, np.int8), np.full((64, 16), -128, np.int8)
    assert_product(one_tile(device, a, b), a, b)
    a, b = np.full((16, 64), 255, np.uint8), np.full((64, 16), 255, np.uint8)
    assert_product(one_tile(device, a, b), a, b)


def test_infinities_and_nans_stay_in_their_rows(device: Device, rng: np.random.Generator):
    a, b = normals(rng, (16, 16), "float32"), np.abs(normals(rng, (16, 32), "float32"))
    a[3, 4], a[5, 6] = np.inf, np.nan
    found = one_tile(device, a, b)
    assert (found[3] == np.inf).all() and np.isnan(found[5]).all()
    rest = np.delete(np.arange(16), [3, 5])
    assert_product(found[rest], a[rest], b)


@pytest.mark.parametrize("size", [(16, 8, 4), (4, 32, 4), (32, 2, 8)], ids=str)
def test_what_fills_up_small_products_adds_nothing(device: Device, size: tuple[int, int, int]):
    m, n, k = size
    a, b = np.ones((m, k), np.float16), np.ones((k, n), np.float16)
    a[0, 1], b[2, n - 1] = np.inf, np.inf
    expected = np.full((m, n), float(k), np.float32)
    expected[0], expected[:, n - 1] = np.inf, np.inf
    np.testing.assert_array_equal(one_tile(device, a, b), expected)


ERRORS = {"tf32": -9, "tf32x3": -18, "ieee": -20, "bf16x3": -14, "bf16x6": -18}
"""Exponents of the error of a product relative to its factors."""


@pytest.mark.parametrize("precision", ERRORS)
def test_precisions_of_fp32(device: Device, rng: np.random.Generator, precision: str):
    a, b = normals(rng, (32, 32), "float32"), normals(rng, (32, 32), "float32")
    found = one_tile(device, a, b, PRECISION=precision)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = np.abs(a) @ np.abs(b) * 2.0 ** ERRORS[precision]
    assert (np.abs(found - exact) <= bound).all()


@jit
def imprecise_kernel(a, b, c, LONGEST: tl.constexpr, RESULT: tl.constexpr):
    i, k = tl.arange(0, 32), tl.arange(0, 64)
    left = tl.load(a + i[:, None] * 64 + k[None, :])
    right = tl.load(b + k[:, None] * 32 + i[None, :])
    product = tl.dot(left, right, max_num_imprecise_acc=LONGEST, out_dtype=RESULT)
    tl.store(c + i[:, None] * 32 + i[None, :], product)


@pytest.mark.parametrize("longest", [None, 0, 32, 64])
@pytest.mark.parametrize("dtype", [*FP8, "float16"], ids=str)
def test_runs_of_imprecise_sums(
    device: Device, rng: np.random.Generator, longest: int | None, dtype: Any
):
    """Only fp8 has them, and small integers are exact in any."""
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((32, 64), (64, 32)))
    c = device.empty((32, 32), np.float32)
    words = {"LONGEST": longest, "RESULT": tl.float32}
    device.run(imprecise_kernel, (1,), device.array(a), device.array(b), c, **words)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_products_of_bytes_as_bytes(device: Device, rng: np.random.Generator, dtype: str):
    a, b = (rng.integers(0, 100, shape).astype(dtype) for shape in ((32, 64), (64, 32)))
    c = device.empty((32, 32), dtype)
    words = {"LONGEST": None, "RESULT": getattr(tl, dtype)}
    device.run(imprecise_kernel, (1,), device.array(a), device.array(b), c, **words)
    np.testing.assert_array_equal(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype))


@jit
def matmul_kernel(
    a, b, c, M, N, K, am, ak, bk, bn, cm, cn, slope,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, FUSED: tl.constexpr,
    FORM: tl.constexpr = "accumulate",
):  # fmt: skip
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    left = a + i[:, None] * am + k[None, :] * ak
    right = b + k[:, None] * bk + j[None, :] * bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(left, mask=(i[:, None] < M) & (start + k[None, :] < K), other=0.0)
        y = tl.load(right, mask=(start + k[:, None] < K) & (j[None, :] < N), other=0.0)
        if FORM == "accumulate":
            acc = tl.dot(x, y, acc)
        else:
            acc += tl.dot(x, y)
        left += BLOCK_K * ak
        right += BLOCK_K * bk
    if FUSED:
        acc = tl.where(acc > 0, acc, acc * slope) + tl.exp(-acc * acc)
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c + i[:, None] * cm + j[None, :] * cn, acc, mask=inside)


def steps(x: Array) -> tuple[int, ...]:
    return tuple(s // x.itemsize for s in x.strides)


def matmul(device: Device, a: Array, b: Array, fused: bool = False, **words: Any) -> Array:
    (m, k), n = a.shape, b.shape[1]
    c = device.empty((m, n), np.float32)
    device.run(
        matmul_kernel, (cdiv(m, 32), cdiv(n, 32)), a, b, c, m, n, k, *steps(a), *steps(b),
        *steps(c), 0.125, BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, FUSED=fused, **words,
    )  # fmt: skip
    return c


@pytest.mark.parametrize("form", ["accumulate", "add"])
@pytest.mark.parametrize("size", [(1, 1, 1), (32, 32, 16), (33, 31, 17), (50, 70, 40), (5, 100, 3)])
def test_masked_matmul(device: Device, rng: np.random.Generator, size: Any, form: str):
    m, n, k = size
    a, b = normals(rng, (m, k), "float32"), normals(rng, (k, n), "float32")
    assert_product(matmul(device, device.array(a), device.array(b), FORM=form), a, b)


@pytest.mark.parametrize("dtype", ["float32", "float16", BFLOAT16], ids=str)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_transposed_operands(device: Device, rng: np.random.Generator, layout: str, dtype: Any):
    a = device.array(normals(rng, (48, 40) if layout[0] == "n" else (40, 48), dtype))
    b = device.array(normals(rng, (40, 56) if layout[1] == "n" else (56, 40), dtype))
    left, right = a if layout[0] == "n" else a.T, b if layout[1] == "n" else b.T
    assert_product(matmul(device, left, right), left, right)


def test_fused_epilogue(device: Device, rng: np.random.Generator):
    a, b = normals(rng, (50, 40), "float32"), normals(rng, (40, 70), "float32")
    found = matmul(device, device.array(a), device.array(b), fused=True)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    expected = np.where(exact > 0, exact, exact / 8) + np.exp(-(exact**2))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@jit
def transposed_tiles_kernel(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + k[:, None] * M + i[None, :])
    right = tl.load(b + j[:, None] * K + k[None, :])
    product = tl.dot(tl.trans(left), right.T)
    tl.store(c + j[:, None] * M + i[None, :], tl.trans(product))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_transposed_tiles(device: Device, rng: np.random.Generator, dtype: str):
    a, b = normals(rng, (16, 32), dtype), normals(rng, (64, 16), dtype)
    c = device.empty((64, 32), result_type(dtype))
    arrays = device.array(a), device.array(b), c
    device.run(transposed_tiles_kernel, (1,), *arrays, M=32, N=64, K=16)
    assert_product(np.ascontiguousarray(c.T), a.T, b.T)


@jit
def batched_kernel(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    h = tl.arange(0, B)[:, None, None]
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + h * M * K + i[None, :, None] * K + k[None, None, :])
    right = tl.load(b + h * K * N + k[None, :, None] * N + j[None, None, :])
    tl.store(c + h * M * N + i[None, :, None] * N + j[None, None, :], tl.dot(left, right) * 2)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_batches(device: Device, rng: np.random.Generator, dtype: str):
    a, b = normals(rng, (4, 16, 32), dtype), normals(rng, (4, 32, 16), dtype)
    c = device.empty((4, 16, 16), np.float32)
    device.run(batched_kernel, (1,), device.array(a), device.array(b), c, B=4, M=16, N=16, K=32)
    assert_product(c / 2, a, b)


@jit
def chained_kernel(x, w, v, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    place = i * N + j
    hidden = tl.dot(tl.load(x + place), tl.load(w + place))
    hidden = tl.maximum(hidden, 0.0) + tl.sum(hidden, 1)[:, None]
    tl.store(out + place, tl.dot(hidden, tl.load(v + place), hidden))


def test_products_of_products(device: Device, rng: np.random.Generator):
    x, w, v = rng.normal(size=(3, 32, 32)).astype(np.float32)
    out = device.empty((32, 32), np.float32)
    device.run(chained_kernel, (1,), *map(device.array, (x, w, v)), out, N=32)
    exact = x.astype(np.float64) @ w
    exact = np.maximum(exact, 0) + exact.sum(1, keepdims=True)
    np.testing.assert_allclose(out, exact @ v + exact, rtol=1e-4, atol=2e-3)


@jit
def half_accumulator_kernel(a, b, c, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    place = i * N + j
    tl.store(c + place, tl.dot(tl.load(a + place), tl.load(b + place), out_dtype=tl.float16))


def test_half_precision_results(device: Device, rng: np.random.Generator):
    a, b = normals(rng, (2, 16, 16), "float16")
    c = device.empty((16, 16), np.float16)
    device.run(half_accumulator_kernel, (1,), device.array(a), device.array(b), c, N=16)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-2, atol=2e-2)


@jit
def asked_kernel(a, b, c, N: tl.constexpr, OUT: tl.constexpr):
    place = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + place, tl.dot(tl.load(a + place), tl.load(b + place), out_dtype=OUT))


@pytest.mark.parametrize("out_dtype", ["int8", "int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", BFLOAT16, "float32", "float64"], ids=str)
def test_operands_with_one_accumulator(
    device: Device, rng: np.random.Generator, dtype: Any, out_dtype: str
):
    """Sums of int8 are beyond int8: out_dtype means nothing, as in Triton."""
    a, b = normals(rng, (32, 32), dtype), normals(rng, (32, 32), dtype)
    c, out = device.empty((32, 32), result_type(dtype)), getattr(tl, out_dtype)
    device.run(asked_kernel, (1,), device.array(a), device.array(b), c, N=32, OUT=out)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # tf32 rounds factors to 11 bits; integers are exact.
    tolerance = 0 if c.dtype.kind == "i" else 0.05
    np.testing.assert_allclose(c, exact, rtol=0, atol=tolerance)


@jit
def split_k_kernel(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    k = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    left = tl.load(a + i[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
    right = tl.load(b + k[:, None] * N + j[None, :], mask=k[:, None] < K, other=0.0)
    tl.atomic_add(c + i[:, None] * N + j[None, :], tl.dot(left, right))


def test_split_k_with_atomics(device: Device, rng: np.random.Generator):
    a, b = normals(rng, (16, 100), "float32"), normals(rng, (100, 32), "float32")
    c = device.array(np.zeros((16, 32), np.float32))
    device.run(
        split_k_kernel, (7,), device.array(a), device.array(b), c, 100, M=16, N=32, BLOCK_K=16
    )
    assert_product(c, a, b)


@jit
def reused_operands_kernel(x, out, n, N: tl.constexpr):
    """Powers of a matrix, each factor the product of the iteration before."""
    place = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    base = tl.load(x + place)
    power = base
    for _ in range(n):
        power = tl.dot(power, base) * 0.5
        base = tl.trans(base)
    tl.store(out + place, power)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_products_carried_as_operands(device: Device, rng: np.random.Generator, n: int):
    x = rng.normal(size=(16, 16)).astype(np.float32) / 4
    out = device.empty((16, 16), np.float32)
    device.run(reused_operands_kernel, (1,), device.array(x), out, n, N=16)
    power, base = x.astype(np.float64), x.astype(np.float64)
    for _ in range(n):
        power, base = power @ base * 0.5, base.T
    np.testing.assert_allclose(out, power, rtol=1e-4, atol=1e-5)


@jit
def of_matrices(a, b, c, SHAPE: tl.constexpr, COUNT: tl.constexpr):
    """c = a @ b, of as many matrices as the first dims say."""
    i = tl.arange(0, COUNT)
    x, y = tl.load(a + i).reshape(SHAPE), tl.load(b + i).reshape(SHAPE)
    tl.store(c + i, tl.dot(x, y).reshape((COUNT,)))


@pytest.mark.parametrize("warps", [4, 16])
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(BFLOAT16, (2, 2, 2, 2, 32, 32)), ("float16", (2, 2, 16, 16)), ("float64", (4, 16, 16))],
    ids=str,
)
def test_products_of_any_rank(
    device: Device, rng: np.random.Generator, dtype: Any, shape: tuple[int, ...], warps: int
) -> None:
    x, y = rng.integers(-3, 4, shape), rng.integers(-3, 4, shape)
    out = device.empty(shape, np.float64 if dtype == "float64" else np.float32)
    a, b = device.array(x.astype(dtype)), device.array(y.astype(dtype))
    device.run(of_matrices, (1,), a, b, out, SHAPE=shape, COUNT=x.size, num_warps=warps)
    np.testing.assert_array_equal(out, x @ y)
