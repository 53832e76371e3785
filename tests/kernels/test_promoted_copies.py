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
from tilewright.kernels.attention import attention_kernel

BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 2}


def steps(x: Array) -> tuple[int, ...]:
    return tuple(s // x.itemsize for s in x.strides)


def both(device: Device, run: Callable[[str, Array], Any], shape: Any, dtype: Any) -> list[Array]:
    """What a launch computes with the copy engine for descriptors alone, and for all loads. Devices
    without one have one way."""
    ways = ("descriptors", "all") if device.name in ("emulated", "nvidia") else ("all",)
    outputs = [device.empty(shape, dtype) for _ in ways]
    for bulk_loads, out in zip(ways, outputs, strict=True):
        run(bulk_loads, out)
    return [outputs[0], outputs[-1]]


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
            *steps(a), *steps(b), *steps(c), EVEN_K=k == 320, bulk_loads=bulk_loads,
            **{**BLOCKS, "num_warps": 4, **words},
        ))  # fmt: skip

    plain, promoted = both(device, run, (m, n), dtype)
    np.testing.assert_array_equal(plain, promoted)
    assert_product(promoted, a, b)
    return promoted_loads(device, kernels)


@pytest.mark.parametrize("majors", ["rows rows", "rows columns", "columns rows", "columns columns"])
@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (72, 136, 200), (8, 16, 24), (72, 64, 320)])
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


@jit
def widened_product(
    a, b, c, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    TYPE: tl.constexpr,
):  # fmt: skip
    """a @ b of what both are as a wider type; rows and columns wrap around."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x = a + (rows % M)[:, None] * am + k[None, :] * ak
    y = b + k[:, None] * bk + (columns % N)[None, :] * bn
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(x, k[None, :] < K - start, 0).to(TYPE)
        right = tl.load(y, k[:, None] < K - start, 0).to(TYPE)
        acc = tl.dot(left, right, acc, input_precision="tf32")
        x += BK * ak
        y += BK * bk
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, inside)


WIDENED = [
    (np.float32, np.float32, tl.float32), (np.float16, np.int8, tl.float16),
    (np.uint8, np.float16, tl.float16), (np.float32, np.int8, tl.float32),
]  # fmt: skip


@pytest.mark.parametrize(
    "sizes, block, warps",
    [((80, 80, 208), (64, 64), 4), ((80, 144, 48), (128, 128), 8), ((64, 144, 96), (64, 128), 4)],
)
@pytest.mark.parametrize("types", WIDENED, ids=lambda t: f"{t[0].__name__} x {t[1].__name__}")
def test_operands_in_registers(
    device: Device, types: Any, sizes: tuple[int, int, int], block: tuple[int, int], warps: int
) -> None:
    """Threads read what the copy engine has loaded, while warpgroups multiply what they read."""
    m, n, k = sizes
    left, right = (
        np.abs(random_of(dtype, *shape))
        if np.dtype(dtype).kind == "u"
        else random_of(dtype, *shape)
        for dtype, shape in zip(types, ((m, k), (k, n)), strict=False)
    )
    a, b, kernels = device.array(left), device.array(right), list[Any]()

    def run(bulk_loads: str, c: Array) -> None:
        kernels.append(device.run(
            widened_product, (cdiv(m, block[0]), cdiv(n, block[1])), a, b, c, m, n, k, *steps(a),
            *steps(b), BM=block[0], BN=block[1], BK=32, TYPE=types[2], bulk_loads=bulk_loads,
            num_warps=warps,
        ))  # fmt: skip

    plain, promoted = both(device, run, (m, n), np.float32)
    np.testing.assert_array_equal(plain, promoted)
    np.testing.assert_allclose(promoted, a.astype(np.float64) @ b.astype(np.float64), 5e-3, 0.1)
    assert promoted_loads(device, kernels) in (2, None)


@jit
def scaled_product(
    a, b, scales, c, M, N, K, STORE: tl.constexpr, B: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Sums of products of BK columns times scales of their own; STORE: twice the scales, too, which
    the next iteration loads."""
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    k = tl.arange(0, BK)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, tl.cdiv(K, BK)):
        inside = start * BK + k < K
        x = tl.load(a + (rows % M)[:, None] * K + (start * BK + k)[None, :], inside[None, :], 0)
        y = tl.load(b + (start * BK + k)[:, None] * N + (columns % N)[None, :], inside[:, None], 0)
        scale = tl.load(scales + start * N + columns, columns < N, 0)
        acc += tl.dot(x, y.to(x.dtype)) * scale[None, :]
        if STORE:
            tl.store(scales + (start + 1) * N + columns, 2 * scale, columns < N)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, inside)


@pytest.mark.parametrize("store", [False, True], ids=["", "stored"])
@pytest.mark.parametrize("dtype", [np.float16, np.int8], ids=["fp16", "int8"])
@pytest.mark.parametrize("m, n, k, block", [(48, 144, 208, 64), (80, 128, 400, 128)])
def test_sums_of_scaled_products(
    device: Device, m: int, n: int, k: int, block: int, dtype: Any, store: bool
) -> None:
    """Threads load scales an iteration ahead, a producer the rest; but not what is stored."""
    steps_of_k, kernels = cdiv(k, block), list[Any]()
    left, right = random_of(np.int8, m, k), random_of(np.int8, k, n)
    a, b = device.array(left.astype(np.float16)), device.array(right.astype(dtype))
    first = 2.0 ** np.random.default_rng(k).integers(-2, 3, (steps_of_k, n))
    powers = first[0] * 2.0 ** np.arange(steps_of_k)[:, None] if store else first

    def run(bulk_loads: str, c: Array) -> None:
        scales = device.array(np.pad(first, ((0, 1), (0, 0))).astype(np.float32))
        kernels.append(device.run(
            scaled_product, (cdiv(m, block), cdiv(n, block)), a, b, scales,
            c, m, n, k, STORE=store, B=block, BK=block, bulk_loads=bulk_loads,
            num_warps=block // 16,
        ))  # fmt: skip

    plain, promoted = both(device, run, (m, n), np.float32)
    np.testing.assert_array_equal(plain, promoted)
    sums = (
        left[:, at : at + block].astype(float) @ right[at : at + block] * powers[at // block]
        for at in range(0, k, block)
    )
    np.testing.assert_array_equal(promoted, sum(sums))
    assert promoted_loads(device, kernels) in (2, None)


VIEWS: dict[str, Callable[[Array], Array]] = {
    "a part": lambda x: x[8:80, 16:144],
    "a part of rows that are no multiples of 16": lambda x: x[8:80, 16:105],
    "no columns": lambda x: x[:72, :0],
    "one row again and again": lambda x: np.ndarray(
        (72, 128), x.dtype, x, 8 * x.strides[0], (0, x.itemsize)
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


@jit
def batched_product(
    a, b, c, M, N, K, stride_ab, stride_am, stride_bb, stride_bn, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """c[z] = a[z] @ b[z].T; all of a block is there but along K."""
    z = tl.program_id(2)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x = a + z * stride_ab + rows[:, None] * stride_am + k[None, :]
    y = b + z * stride_bb + columns[None, :] * stride_bn + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        there = k < K - start
        acc = tl.dot(tl.load(x, there[None, :], 0.0), tl.load(y, there[:, None], 0.0), acc)
        x += BK
        y += BK
    tl.store(c + z * M * N + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.parametrize("k", [64, 136])
def test_batches_are_a_further_dimension(device: Device, k: int) -> None:
    """Between the rows of one matrix, or behind them all."""
    z, m, n = 3, 64, 128
    a = device.array(random_of(np.float16, m, z, k)).transpose(1, 0, 2)
    b = device.array(random_of(np.float16, z, n, k))
    kernels: list[Any] = []

    def run(bulk_loads: str, c: Array) -> None:
        kernels.append(device.run(
            batched_product, (1, 2, z), a, b, c, m, n, k, *steps(a)[:2], *steps(b)[:2],
            BM=64, BN=64, BK=64, bulk_loads=bulk_loads, num_warps=4,
        ))  # fmt: skip

    plain, promoted = both(device, run, (z, m, n), np.float32)
    np.testing.assert_array_equal(plain, promoted)
    assert_product(promoted, a, b.transpose(0, 2, 1))
    assert promoted_loads(device, kernels) in (2, None)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("length, head", [(64, 64), (104, 64), (136, 128)])
def test_keys_and_values_of_attention(device: Device, length: int, head: int, causal: bool) -> None:
    q, k, v = (
        device.array(random_of(np.float16, 2, length, head + i)[..., :head]) for i in range(3)
    )
    kernels: list[Any] = []

    def run(bulk_loads: str, out: Array) -> None:
        kernels.append(device.run(
            attention_kernel, (cdiv(length, 64), 2), q, k, v, out, None, None, None,
            *(n for x in (q, k, v) for n in (0, *steps(x)[:2])), 1, 0, *steps(out)[:2], 0, 0, 2,
            length, length, head**-0.5, None, 0, (), BLOCK_M=64, BLOCK_N=64, HEAD=head,
            VALUE=head, SHARED=1, LEFT=-1, RIGHT=0 if causal else -1, AT_END=False, SCORE=None,
            DROPOUT=0.0, GROUP=1, ROUND=1, num_warps=4, bulk_loads=bulk_loads,
        ))  # fmt: skip

    plain, promoted = both(device, run, (2, length, head), np.float16)
    np.testing.assert_array_equal(plain, promoted)
    scores = (q.astype(np.float64) @ k.transpose(0, 2, 1)) * head**-0.5
    if causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    exact = weights @ v.astype(np.float64) / weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(promoted.astype(np.float64), exact, rtol=4e-3, atol=4e-3)
    assert promoted_loads(device, kernels) in (2, None)


@jit
def persistent_product(
    a, b, c, M, N, K, stride_a, stride_b, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    FIRST: tl.constexpr,
):  # fmt: skip
    """A loop over tiles around the one along K. FIRST: the first step is made before that."""
    k = tl.arange(0, BK)
    tiles_m = tl.cdiv(M, BM)
    for tile in range(tl.program_id(0), tiles_m * tl.cdiv(N, BN), tl.num_programs(0)):
        rows = tile % tiles_m * BM + tl.arange(0, BM)
        columns = tile // tiles_m * BN + tl.arange(0, BN)
        x = a + (rows % M)[:, None] * stride_a + k[None, :]
        y = b + (columns % N)[None, :] * stride_b + k[:, None]
        acc = tl.zeros((BM, BN), tl.float32)
        if FIRST:
            acc = tl.dot(tl.load(x, k[None, :] < K, 0.0), tl.load(y, k[:, None] < K, 0.0))
        for step in range(FIRST, tl.cdiv(K, BK)):
            left = tl.load(x + step * BK, k[None, :] < K - step * BK, 0.0)
            right = tl.load(y + step * BK, k[:, None] < K - step * BK, 0.0)
            acc = tl.dot(left, right, acc)
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c + rows[:, None] * N + columns[None, :], acc, inside)


@pytest.mark.parametrize("first", [0, 1], ids=["", "first step apart"])
@pytest.mark.parametrize("aligned", ["both", "a", "b", "none"])
def test_loops_over_tiles(device: Device, aligned: str, first: int) -> None:
    """Operands that begin anywhere are loaded by the threads beside those of the copy engine."""
    m, n, k = 136, 72, 200
    a, b = (
        device.array(random_of(np.float16, rows, k + 8))[:, start : start + k]
        for rows, start in ((m, aligned not in ("both", "a")), (n, aligned not in ("both", "b")))
    )
    kernels: list[Any] = []

    def run(bulk_loads: str, c: Array) -> None:
        kernels.append(device.run(
            persistent_product, (2,), a, b, c, m, n, k, *steps(a)[:1], *steps(b)[:1],
            BM=64, BN=64, BK=64, FIRST=first, bulk_loads=bulk_loads, num_warps=4,
        ))  # fmt: skip

    plain, promoted = both(device, run, (m, n), np.float32)
    np.testing.assert_array_equal(plain, promoted)
    assert_product(promoted, a, b.T)
    loads = {"both": 2, "none": 0}.get(aligned, 1)
    assert promoted_loads(device, kernels) in (loads, None)


# --- bounds with divisions ------------------------------------------------------------------------


@jit
def packed_product(
    a, w, c, N, K, stride, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, END: tl.constexpr,
    WRAP: tl.constexpr,
):  # fmt: skip
    """c = a @ w for weights of 4 bits, neighbouring rows in a byte; END: how the mask says where
    bytes end. Of an odd number of rows the last one has a byte of its own, or is left out. WRAP:
    columns past the end are the first ones again."""
    i, j = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    k, half = tl.arange(0, BK), tl.arange(0, BK // 2)
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(
            a + i[:, None] * stride + step * BK + k[None, :], k[None, :] < K - step * BK, other=0
        )
        row = step * (BK // 2) + half
        inside = row < K // 2
        if END == "rest":
            inside = half < (K - step * BK) // 2
        elif END == "whole bytes":
            inside = row < (K + 1) // 2
        elif END == "rest of whole bytes":
            inside = half < tl.cdiv(K - BK * step, 2)
        columns = (j % N if WRAP else j)[None, :]
        there = inside[:, None] if WRAP else inside[:, None] & (columns < N)
        bytes = tl.load(w + row[:, None] * N + columns, there, other=0)
        weights = tl.join(bytes & 15, bytes >> 4).permute(0, 2, 1).reshape(BK, BN)
        acc = tl.dot(x, weights.to(tl.float16), acc)
    tl.store(c + i[:, None] * N + j[None, :], acc, j[None, :] < N)


@pytest.mark.parametrize("end", ["", "rest", "whole bytes", "rest of whole bytes"])
@pytest.mark.parametrize(("n", "k"), [(64, 128), (80, 33), (16, 3), (112, 191), (128, 258)])
def test_bytes_of_two_weights_end_at_half_of_the_rows(
    device: Device, n: int, k: int, end: str
) -> None:
    """The last rows of `a` and bytes past the end are there, and must not be read."""
    stride = -(-k // 8) * 8 + 8
    values = np.random.default_rng(n + k).integers(-4, 5, (64, stride))
    a, packed = device.array(values, np.float16), cdiv(k, 2) + 32
    weights = np.random.default_rng(k).integers(0, 256, (packed, n))
    w, kernels = device.array(weights, np.uint8), list[Any]()

    def run(bulk_loads: str, c: Array) -> None:
        kernels.append(device.run(
            packed_product, (cdiv(n, 64),), a, w, c, n, k, stride, BM=64, BN=64, BK=64,
            END=end, WRAP=end in ("rest", "whole bytes"), bulk_loads=bulk_loads, num_warps=4,
        ))  # fmt: skip

    plain, promoted = both(device, run, (64, n), np.float32)
    np.testing.assert_array_equal(plain, promoted)
    ends = cdiv(k, 2) if "whole" in end else k // 2
    rows = np.stack([weights & 15, weights >> 4], 1).reshape(-1, n)[: 2 * ends]
    rows = np.pad(rows, ((0, 1), (0, 0)))[:k]
    np.testing.assert_array_equal(promoted, values[:, :k] @ rows)
    assert promoted_loads(device, kernels) in (2, None)


@jit
def prefetched_operand(a, b, c, K, stride_a, stride_b, LEFT: tl.constexpr):
    """One operand is loaded an iteration ahead by hand; its last tile is used after the loop."""
    i, k = tl.arange(0, 64), tl.arange(0, 64)
    at_a = a + i[:, None] * stride_a + k[None, :]
    at_b = b + k[:, None] * stride_b + i[None, :]
    x, y = tl.load(at_a), tl.load(at_b)
    acc = tl.zeros((64, 64), tl.float32)
    for step in range(0, K - 64, 64):
        if LEFT:
            y = tl.load(at_b + step * stride_b)
            acc = tl.dot(x, y, acc)
            x = tl.load(at_a + step + 64)
        else:
            x = tl.load(at_a + step)
            acc = tl.dot(x, y, acc)
            y = tl.load(at_b + (step + 64) * stride_b)
    if LEFT:
        y = tl.load(at_b + (K - 64) * stride_b)
    else:
        x = tl.load(at_a + K - 64)
    tl.store(c + i[:, None] * 64 + i[None, :], tl.dot(x, y, acc))


@pytest.mark.parametrize("left", [True, False])
def test_an_operand_that_is_loaded_ahead_by_hand(device: Device, left: bool):
    a, b = random_of(np.float16, 64, 256), random_of(np.float16, 256, 64)
    c = device.empty((64, 64), np.float32)
    device.run(
        prefetched_operand, (1,), device.array(a), device.array(b), c, 256, 256, 64, LEFT=left
    )
    assert_product(c, a, b)


@jit
def carried_operand(a, b, c, K, stride_a, stride_b):
    """The last tile that the loop loads is multiplied once more."""
    i, k = tl.arange(0, 64), tl.arange(0, 64)
    at_a = a + i[:, None] * stride_a + k[None, :]
    at_b = b + k[:, None] * stride_b + i[None, :]
    x, y = tl.load(at_a), tl.load(at_b)
    acc = tl.zeros((64, 64), tl.float32)
    for step in range(0, K - 64, 64):
        x = tl.load(at_a + step)
        acc = tl.dot(x, y, acc)
        y = tl.load(at_b + (step + 64) * stride_b)
    tl.store(c + i[:, None] * 64 + i[None, :], tl.dot(x, y, acc))


def test_an_operand_that_a_loop_carries_to_its_end(device: Device):
    a, b = random_of(np.float16, 64, 256), random_of(np.float16, 256, 64)
    c = device.empty((64, 64), np.float32)
    device.run(carried_operand, (1,), device.array(a), device.array(b), c, 256, 256, 64)
    assert_product(c, np.concatenate([a[:, :192], a[:, 128:192]], 1), b)


@jit
def product_in_two_loops(
    a, b, c, blocks, K, am, bk, cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """a @ b; the second loop continues with the pointers of the first."""
    rows, columns, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    x = a + rows[:, None] * am + k[None, :]
    y = b + k[:, None] * bk + columns[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    middle = blocks * BK
    for _ in range(0, middle, BK):
        acc = tl.dot(tl.load(x), tl.load(y), acc)
        x += BK
        y += BK * bk
    for _ in range(middle, K, BK):
        acc = tl.dot(tl.load(x), tl.load(y), acc * 0.5)
        x += BK
        y += BK * bk
    tl.store(c + rows[:, None] * cm + columns[None, :], acc.to(tl.float16))


@pytest.mark.parametrize("blocks", range(4))
def test_pointers_that_one_loop_leaves_to_the_next(device: Device, blocks: int) -> None:
    a, b = random_of(np.float16, 64, 192), random_of(np.float16, 192, 64)
    arrays, kernels = (device.array(a), device.array(b)), list[Any]()

    def run(bulk_loads: str, c: Array) -> None:
        kernels.append(device.run(
            product_in_two_loops, (1,), *arrays, c, blocks, 192, 192, 64, 64, BM=64, BN=64, BK=64,
            bulk_loads=bulk_loads, num_warps=4,
        ))  # fmt: skip

    plain, promoted = both(device, run, (64, 64), np.float16)
    np.testing.assert_array_equal(plain, promoted)
    steps = np.split(a.astype(np.float64), 3, axis=1), np.split(b.astype(np.float64), 3)
    exact = np.zeros((64, 64))
    for number, (left, right) in enumerate(zip(*steps, strict=True)):
        exact = exact * (1.0 if number < blocks else 0.5) + left @ right
    np.testing.assert_allclose(promoted.astype(np.float64), exact, rtol=8e-3, atol=3e-2)
    assert promoted_loads(device, kernels) in (2, None)
    assert device.name != "emulated" or "cp.async.cg" not in kernels[1].asm["llir"]
