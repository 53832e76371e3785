"""Loads through pointers that the copy engine makes: bit for bit what they are otherwise."""

# pyright: reportOperatorIssue=false

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Array, Device
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright import cdiv, jit

BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 2}


def steps(x: Array) -> tuple[int, ...]:
    return tuple(s // x.itemsize for s in x.strides)


def both(device: Device, run: Callable[[str, Array], Any], shape: Any, dtype: Any) -> list[Array]:
    """What a launch computes with the copy engine for descriptors alone, and for all loads."""
    outputs = [device.empty(shape, dtype) for _ in range(2)]
    for bulk_loads, out in zip(("descriptors", "all"), outputs, strict=True):
        run(bulk_loads, out)
    return outputs


def promoted_loads(device: Device, kernels: list[Any]) -> int | None:
    """Arrays that only the second of two kernels copies by the copy engine; None if none can."""
    if device.name != "emulated":
        return None
    maps = [len(kernel.metadata.as_dict().get("tensor_maps", ())) for kernel in kernels]
    assert not maps[0]
    return maps[1]


def random_of(dtype: Any, *shape: int) -> Array:
    random = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind in "iu":
        return random.integers(-9, 9, shape).astype(dtype)
    return random.normal(size=shape).astype(dtype)


def assert_product(found: Array, a: Array, b: Array) -> None:
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=8e-3, atol=3e-2)


def multiply(device: Device, a: Array, b: Array, dtype: Any, **words: Any) -> int | None:
    """The tutorials' product both ways, which must be equal; how many operands are promoted."""
    (m, k), n = a.shape, b.shape[1]
    kernels: list[Any] = []

    def run(bulk_loads: str, c: Array) -> None:
        kernels.append(device.run(
            tutorial_matmul, (cdiv(m, 64) * cdiv(n, 64),), a, b, c, m, n, k,
            *steps(a), *steps(b), *steps(c), EVEN_K=False, bulk_loads=bulk_loads,
            **{**BLOCKS, "num_warps": 4, **words},
        ))  # fmt: skip

    plain, promoted = both(device, run, (m, n), dtype)
    np.testing.assert_array_equal(plain, promoted)
    assert_product(promoted, a, b)
    return promoted_loads(device, kernels)


@pytest.mark.parametrize("majors", ["rows rows", "rows columns", "columns rows", "columns columns"])
@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (72, 136, 200), (8, 16, 24)])
def test_product_of_the_tutorials(device: Device, m: int, n: int, k: int, majors: str) -> None:
    a, b = (
        device.array(x.T).T if major == "columns" else device.array(x)
        for x, major in zip(
            (random_of(np.float16, m, k), random_of(np.float16, k, n)), majors.split(), strict=True
        )
    )
    assert multiply(device, a, b, np.float16) in (2, None)


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn], ids=lambda d: d.__name__
)
@pytest.mark.parametrize("m, n, k", [(64, 64, 128), (80, 144, 208)])
def test_types_of_elements(device: Device, m: int, n: int, k: int, dtype: Any) -> None:
    a, b = device.array(random_of(dtype, m, k)), device.array(random_of(dtype, n, k)).T
    out = np.float16 if np.dtype(dtype).itemsize == 1 else dtype
    assert multiply(device, a, b, out) in (2, None)


VIEWS: dict[str, Callable[[Array], Array]] = {
    "a part": lambda x: x[8:80, 16:144],
    "a part of rows that are no multiples of 16": lambda x: x[8:80, 16:105],
    "no columns": lambda x: x[:72, :0],
    "one row again and again": lambda x: np.lib.stride_tricks.as_strided(
        x[8], (72, 128), (0, x.itemsize), subok=True
    ),
    "from the last row on": lambda x: x[71::-1, :128],
    "from the last column on": lambda x: x[:72, 127::-1],
    "each second column": lambda x: x[:72, :256:2],
    "not aligned": lambda x: x[:72, 1:129],
}
"""Of a matrix of 88 x 264; the first four are promoted."""


@pytest.mark.parametrize("view", VIEWS)
def test_views(device: Device, view: str) -> None:
    """What is around a view must not matter: there it is NaN."""
    plain = random_of(np.float16, 88, 264)
    seen = VIEWS[view](plain).copy()
    whole = device.array(np.full((88, 264), np.nan, np.float16))
    a = VIEWS[view](whole)
    a[...] = seen[:1] if view == "one row again and again" else seen
    b = device.array(random_of(np.float16, seen.shape[1] or 64, 64))[: seen.shape[1]]
    promoted = 2 if view in list(VIEWS)[:4] else 1
    assert multiply(device, a, b, np.float16) in (promoted, None)


@jit
def masked_product(
    a, b, bias, c, sums, M, N, K, stride_a, stride_b, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr, INTEGER: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """relu(a @ b.T + bias) with masks for rows and columns; SUMS: those of the rows of a, too."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32 if INTEGER else tl.float32)
    total = tl.zeros((BM,), tl.float32)
    for start in range(0, K, BK):
        inside = start + k < K
        x = tl.load(
            a + rows[:, None] * stride_a + start + k[None, :],
            (rows[:, None] < M) & inside[None, :], other=0,
        )  # fmt: skip
        y = tl.load(
            b + columns[:, None].to(tl.int64) * stride_b + (start + k)[None, :],
            (columns[:, None] < N) & inside[None, :], other=0,
        )  # fmt: skip
        acc = tl.dot(x, y.T, acc, out_dtype=tl.int32 if INTEGER else tl.float32)
        if SUMS:
            total += tl.sum(x.to(tl.float32), 1)
    acc += tl.load(bias + columns, columns < N, other=0)[None, :]
    acc = tl.where(acc > 0, acc, 0)
    tl.store(
        c + rows[:, None] * N + columns[None, :], acc, (rows[:, None] < M) & (columns[None, :] < N)
    )
    if SUMS:
        tl.store(sums + rows, total, rows < M)


@pytest.mark.parametrize("sums", [False, True], ids=["", "and sums of rows"])
@pytest.mark.parametrize("dtype", [np.float16, np.int8], ids=["fp16", "int8"])
@pytest.mark.parametrize("m, n, k", [(64, 64, 128), (80, 104, 208)])
def test_masked_blocks(device: Device, m: int, n: int, k: int, dtype: Any, sums: bool) -> None:
    """A block that is summed, too, goes through registers."""
    integer = dtype is np.int8
    a, b = device.array(random_of(dtype, m, k)), device.array(random_of(dtype, n, k))
    bias = device.array(random_of(np.int32 if integer else np.float32, n))
    kernels: list[Any] = []
    of_rows = device.empty(m, np.float32)

    def run(bulk_loads: str, c: Array) -> None:
        kernels.append(device.run(
            masked_product, (cdiv(m, 64), cdiv(n, 64)), a, b, bias, c, of_rows, m, n, k,
            a.shape[1], b.shape[1], BM=64, BN=64, BK=64, INTEGER=integer, SUMS=sums,
            bulk_loads=bulk_loads, num_warps=4,
        ))  # fmt: skip

    plain, promoted = both(device, run, (m, n), np.int32 if integer else np.float32)
    np.testing.assert_array_equal(plain, promoted)
    exact = np.maximum(a.astype(np.float64) @ b.T.astype(np.float64) + bias, 0)
    np.testing.assert_allclose(promoted, exact, rtol=1e-4, atol=1e-3)
    assert promoted_loads(device, kernels) in (1 if sums else 2, None)
