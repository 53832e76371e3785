"""Products of factors in microscaling formats, of rank 4, and of bytes."""

# pyright: reportArgumentType=false

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import BFLOAT16, FP8, Array
from tests.kernels.devices import Device
from tilewright import jit

E2M1 = np.dtype(ml_dtypes.float4_e2m1fn)
DTYPES = {"e2m1": E2M1, "e4m3": FP8[0], "e5m2": FP8[1], "bf16": BFLOAT16, "fp16": np.dtype("f2")}
M, N, K = 16, 32, 64


def numbers(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    return (rng.normal(size=shape) * 2).astype(DTYPES[name])


def packed(x: Array, axis: int) -> Array:
    """Two e2m1 numbers a byte along an axis, the first in the low bits; other formats as bits."""
    if x.dtype != E2M1:
        return x.view(np.uint8) if x.dtype.itemsize == 1 else x
    codes = np.moveaxis(x.view(np.uint8), axis, -1)
    return np.ascontiguousarray(np.moveaxis(codes[..., ::2] | codes[..., 1::2] << 4, -1, axis))


def powers(scale: Array) -> Array:
    if scale.dtype == np.uint8:
        return np.exp2(scale.astype(np.float64) - 127)
    return scale.astype(np.float64)


@jit
def scaled_kernel(
    a, a_scale, b, b_scale, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    A_ROWS: tl.constexpr, A_COLUMNS: tl.constexpr, B_ROWS: tl.constexpr, B_COLUMNS: tl.constexpr,
    A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, A_PACK: tl.constexpr, B_PACK: tl.constexpr,
    GROUPS: tl.constexpr, B_SCALED: tl.constexpr,
):  # fmt: skip
    i, j, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, GROUPS)
    left = tl.load(a + tl.arange(0, A_ROWS)[:, None] * A_COLUMNS + tl.arange(0, A_COLUMNS)[None, :])
    right = tl.load(
        b + tl.arange(0, B_ROWS)[:, None] * B_COLUMNS + tl.arange(0, B_COLUMNS)[None, :]
    )
    left_scale = tl.load(a_scale + i[:, None] * GROUPS + g[None, :])
    right_scale = None
    if B_SCALED:
        right_scale = tl.load(b_scale + j[:, None] * GROUPS + g[None, :])
    one = tl.full((M, N), 1.0, tl.float32)
    product = tl.dot_scaled(
        left, left_scale, A_FORMAT, right, right_scale, B_FORMAT, one,
        lhs_k_pack=A_PACK, rhs_k_pack=B_PACK,
    )  # fmt: skip
    tl.store(c + i[:, None] * N + j[None, :], product)


CASES = [
    # formats, packed along K, bytes of scales, whether the right factor has any
    ("e2m1", "e2m1", True, True, "e8m0", True),
    ("e2m1", "e2m1", False, False, "e4m3", True),
    ("e4m3", "e2m1", True, True, "e8m0", True),
    ("e5m2", "e4m3", True, True, "e8m0", False),
    ("e2m1", "bf16", True, True, "e8m0", False),
    ("e4m3", "fp16", True, True, "e8m0", False),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scaled_products(device: Device, rng: np.random.Generator, case: Any):
    left, right, left_pack, right_pack, scales, is_scaled = case
    a, b = numbers(rng, (M, K), left), numbers(rng, (K, N), right)
    groups = K // (32 if scales == "e8m0" else 16)

    def made(rows: int) -> Array:
        if scales == "e8m0":
            return rng.integers(120, 134, (rows, groups)).astype(np.uint8)
        return rng.uniform(0.5, 2, (rows, groups)).astype(FP8[0])

    a_scale, b_scale = made(M), made(N)
    a_bytes, b_bytes = packed(a, 1 if left_pack else 0), packed(b, 0 if right_pack else 1)
    c = device.empty((M, N), np.float32)
    device.run(
        scaled_kernel, (1,), device.array(a_bytes), device.array(a_scale), device.array(b_bytes),
        device.array(b_scale), c, M=M, N=N, K=K, A_ROWS=a_bytes.shape[0],
        A_COLUMNS=a_bytes.shape[1], B_ROWS=b_bytes.shape[0], B_COLUMNS=b_bytes.shape[1],
        A_FORMAT=left, B_FORMAT=right, A_PACK=left_pack, B_PACK=right_pack, GROUPS=groups,
        B_SCALED=is_scaled,
    )  # fmt: skip
    wide = a.astype(np.float64) * np.repeat(powers(a_scale), K // groups, 1)
    other = b.astype(np.float64)
    if is_scaled:
        other = other * np.repeat(powers(b_scale), K // groups, 1).T
    bound = 2.0**-20 * (np.abs(wide) @ np.abs(other)) + 1e-6
    assert (np.abs(c - (wide @ other + 1)) <= bound).all()


@jit
def codes_kernel(a, scale, c):
    """Each number times a scale, through a product with ones in one place."""
    i, k = tl.arange(0, 16), tl.arange(0, 32)
    left = tl.load(a + i[:, None] * 16 + tl.arange(0, 16)[None, :])
    scales = tl.load(scale + i)[:, None]
    unit = (k[:, None] == i[None, :]).to(tl.bfloat16)
    product = tl.dot_scaled(left, scales, "e2m1", unit, None, "bf16")
    tl.store(c + i[:, None] * 16 + i[None, :], product)


def test_every_code_and_extreme_scales(device: Device):
    codes = np.tile(np.arange(16, dtype=np.uint8), (16, 2))
    scale = np.array([127, 0, 1, 254, 255, *range(120, 131)], np.uint8)
    c = device.empty((16, 16), np.float32)
    low = device.array(codes[:, ::2] | codes[:, 1::2] << 4)
    device.run(codes_kernel, (1,), low, device.array(scale), c)
    values = np.arange(16, dtype=np.uint8).view(E2M1).astype(np.float64)
    with np.errstate(over="ignore"):
        exact = (values[None, :] * np.exp2(scale.astype(np.float64) - 127)[:, None]).astype("f4")
    finite = (scale < 250) & (scale > 1)
    np.testing.assert_array_equal(c[finite], exact[finite])
    assert np.isnan(c[scale == 255]).all()
    assert (np.abs(c[scale <= 1]) < 1e-36).all()


@jit
def batched_kernel(a, b, c, SHAPE: tl.constexpr, M: tl.constexpr, OUT: tl.constexpr):
    size: tl.constexpr = SHAPE[0] * SHAPE[1] * M * M
    at = tl.reshape(tl.arange(0, size), (SHAPE[0], SHAPE[1], M, M))
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), out_dtype=OUT))


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_products_of_rank_4(device: Device, rng: np.random.Generator, dtype: str):
    a, b = (rng.integers(-9, 9, (2, 2, 16, 16)).astype(dtype) for _ in range(2))
    out, kind = (np.int32, tl.int32) if dtype == "int8" else (np.float32, tl.float32)
    c = device.empty(a.shape, out)
    device.run(
        batched_kernel, (1,), device.array(a), device.array(b), c, SHAPE=(2, 2), M=16, OUT=kind
    )
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


def test_products_of_bytes_that_wrap_to_bytes(device: Device, rng: np.random.Generator):
    a, b = (rng.integers(-128, 128, (1, 2, 16, 16)).astype(np.int8) for _ in range(2))
    c = device.empty(a.shape, np.int8)
    arrays = device.array(a), device.array(b), c
    device.run(batched_kernel, (1,), *arrays, SHAPE=(1, 2), M=16, OUT=tl.int8)
    np.testing.assert_array_equal(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int8))


@jit
def scaled_batches_kernel(
    a, a_scale, b, b_scale, batched, single, A_FORMAT: tl.constexpr, A_COLUMNS: tl.constexpr,
    A_ROWS: tl.constexpr, A_PACK: tl.constexpr,
):  # fmt: skip
    z = tl.arange(0, 2)[:, None, None]
    i, j, g = tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 2)
    rows, columns, depth = tl.arange(0, A_ROWS), tl.arange(0, A_COLUMNS), tl.arange(0, 64)
    of_a = rows[:, None] * A_COLUMNS + columns[None, :]
    of_b, of_c = depth[:, None] * 32 + j[None, :], i[:, None] * 32 + j[None, :]
    of_a_scale, of_b_scale = i[:, None] * 2 + g[None, :], j[:, None] * 2 + g[None, :]
    product = tl.dot_scaled(
        tl.load(a + z * (A_ROWS * A_COLUMNS) + of_a[None]),
        tl.load(a_scale + z * 32 + of_a_scale[None]), A_FORMAT,
        tl.load(b + z * 2048 + of_b[None]),
        tl.load(b_scale + z * 64 + of_b_scale[None]), "e4m3", lhs_k_pack=A_PACK,
    )  # fmt: skip
    tl.store(batched + z * 512 + of_c[None], product)
    for k in tl.static_range(2):
        product = tl.dot_scaled(
            tl.load(a + k * (A_ROWS * A_COLUMNS) + of_a), tl.load(a_scale + k * 32 + of_a_scale),
            A_FORMAT, tl.load(b + k * 2048 + of_b), tl.load(b_scale + k * 64 + of_b_scale),
            "e4m3", lhs_k_pack=A_PACK,
        )  # fmt: skip
        tl.store(single + k * 512 + of_c, product)


@pytest.mark.parametrize(("format", "packs_k"), [("e5m2", True), ("e2m1", True), ("e2m1", False)])
def test_batches_of_scaled_products(
    device: Device, rng: np.random.Generator, format: str, packs_k: bool
):
    axis = 2 if packs_k else 1
    left = packed(numbers(rng, (2, 16, 64), format), axis)
    arrays = [
        device.array(values)
        for values in (
            left,
            rng.integers(120, 134, (2, 16, 2)).astype(np.uint8),
            packed(numbers(rng, (2, 64, 32), "e4m3"), 1),
            rng.integers(120, 134, (2, 32, 2)).astype(np.uint8),
        )
    ]
    batched, single = (device.empty((2, 16, 32), np.float32) for _ in range(2))
    _, rows, columns = left.shape
    device.run(
        scaled_batches_kernel, (1,), *arrays, batched, single, format, columns, rows, packs_k
    )
    assert np.array_equal(batched, single) and np.count_nonzero(single) > 900
