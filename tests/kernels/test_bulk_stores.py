"""Blocks that tensor descriptors describe, stored and combined with what is there: on machines with
a copy engine by that, where products have made them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit
from tilewright.language import TensorDescriptor

BF16 = ml_dtypes.bfloat16


@jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """a, b, c: host descriptors."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    c.store([row, column], acc.to(c.dtype))


@jit
def product_in_halves(
    x, y, z, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEP: tl.constexpr
):
    """Descriptors that the kernel makes; the columns of a block are stored in two halves."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    c = tl.make_tensor_descriptor(z, [M, N], [N, 1], [BM, BN // 2])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    left, right = acc.reshape(BM, 2, BN // 2).permute(0, 2, 1).split()
    c.store([row, column], left.to(tl.float16))
    c.store([row, column + STEP], right.to(tl.float16))


@jit
def products_of_many_blocks(
    x, y, z, w, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """One program makes all blocks, and stores each twice."""
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    c = tl.make_tensor_descriptor(z, [M, N], [N, 1], [BM, BN])
    d = tl.make_tensor_descriptor(w, [M, N], [N, 1], [BM, BN])
    for tile in range(0, tl.cdiv(M, BM) * tl.cdiv(N, BN)):
        row, column = tile // tl.cdiv(N, BN) * BM, tile % tl.cdiv(N, BN) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
        c.store([row, column], acc.to(tl.float16))
        d.store([row, column], (acc * 2).to(tl.float16))


@jit
def product_in_place(x, y, z, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """What is stored is loaded again through pointers, stored through them, and stored anew."""
    i, j = tl.arange(0, BM), tl.arange(0, BN)
    inside = (i[:, None] < M) & (j[None, :] < N)
    pointers = z + i[:, None] * N + j[None, :]
    c = tl.make_tensor_descriptor(z, [M, N], [N, 1], [BM, BN])
    a = tl.load(x + i[:, None] * BM + i[None, :])
    b = tl.load(y + i[:, None] * BN + j[None, :])
    acc = tl.dot(a, b)
    tl.store(pointers, acc * 0 - 1, inside)
    c.store([0, 0], acc)
    turned = tl.load(z + (M - 1 - i[:, None]) * N + (N - 1 - j[None, :]), inside, 0)
    tl.store(out + i[:, None] * N + j[None, :], turned, inside)
    c.store([0, 0], acc * 2)
    c.store([0, 0], acc * 3)


@jit
def blocks_of_rank_3(x, y, z, B, M, N, BM: tl.constexpr, BN: tl.constexpr):
    c = tl.make_tensor_descriptor(z, [B, M, N], [M * N, N, 1], [4, BM // 4, BN])
    i, j = tl.arange(0, BM), tl.arange(0, BN)
    a = tl.load(x + i[:, None] * BM + i[None, :])
    b = tl.load(y + i[:, None] * BN + j[None, :])
    c.store([1, 1, 2], tl.dot(a, b).to(tl.float16).reshape(4, BM // 4, BN))


@jit
def combined(d, x, KIND: tl.constexpr, RANK: tl.constexpr, AT: tl.constexpr):
    """Block of x, which lies at the origin, with the one of d at AT in each dimension."""
    at, zero = [AT] * RANK, [0] * RANK
    if KIND == "add":
        d.atomic_add(at, x.load(zero))
        d.atomic_add(at, x.load(zero))
    elif KIND == "min":
        d.atomic_min(at, x.load(zero))
    elif KIND == "max":
        d.atomic_max(at, x.load(zero))
    elif KIND == "and":
        d.atomic_and(at, x.load(zero))
    elif KIND == "or":
        d.atomic_or(at, x.load(zero))
    else:
        d.atomic_xor(at, x.load(zero))


def operands(device: Device, m: int, n: int, k: int, dtype: Any = np.float16) -> list[Any]:
    random = np.random.default_rng(m + n + k)
    a, b = (random.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return [device.array(a), device.array(b), device.empty((m, n), dtype), expected]


def assert_near(found: Any, expected: Any, tolerance: float = 2e-3) -> None:
    found = found.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=10 * tolerance)


SHAPES = [(64, 64, 4), (64, 128, 4), (128, 128, 8), (128, 32, 4)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, BF16], ids=["f16", "f32", "bf16"])
@pytest.mark.parametrize("rows, columns, warps", SHAPES)
def test_blocks_of_a_product(
    device: Device, rows: int, columns: int, warps: int, dtype: Any
) -> None:
    """Cut off at both edges."""
    m, n, k = rows + 24, columns + 8, 128
    a, b, c, expected = operands(device, m, n, k, dtype)
    blocks = [(a, [rows, 64]), (b, [64, columns]), (c, [rows, columns])]
    described = [TensorDescriptor.from_tensor(array, block) for array, block in blocks]
    words = {"BM": rows, "BN": columns, "BK": 64, "num_warps": warps, "num_stages": 2}
    device.run(product, (2, 2), *described, k, **words)
    assert_near(c, expected, 1e-2 if dtype is BF16 else 2e-3)


@pytest.mark.parametrize("step", [64, 8])
def test_halves_of_blocks(device: Device, step: int) -> None:
    """Blocks of 64 columns, 64 apart; or 8, so that the second must come later."""
    a, b, c, expected = operands(device, 72, 136, 64)
    if step == 8:
        c[:] = 0
        expected = np.concatenate([expected[:, :8], expected[:, 64:128], c[:, 72:]], 1)
        grid = (2, 1)
    else:
        grid = (2, 2)
    words = {"BM": 64, "BN": 128, "BK": 64, "STEP": step, "num_warps": 4, "num_stages": 2}
    device.run(product_in_halves, grid, a, b, c, 72, 136, 64, **words)
    assert_near(c, expected)


def test_blocks_of_a_loop(device: Device) -> None:
    a, b, c, expected = operands(device, 136, 72, 64)
    d = device.empty((136, 72), np.float16)
    words = {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4, "num_stages": 2}
    device.run(products_of_many_blocks, (1,), a, b, c, d, 136, 72, 64, **words)
    assert_near(c, expected)
    assert_near(d, 2 * expected, 4e-3)


@pytest.mark.parametrize("m, n", [(64, 32), (61, 28)])
def test_what_is_stored_is_in_order_with_other_accesses(device: Device, m: int, n: int) -> None:
    random = np.random.default_rng(m)
    x, y = (random.integers(-3, 3, s).astype(np.float16) for s in ((64, 64), (64, 32)))
    z, out = (device.empty((m, n), np.float32) for _ in range(2))
    words = {"BM": 64, "BN": 32, "num_warps": 4}
    device.run(product_in_place, (1,), device.array(x), device.array(y), z, out, m, n, **words)
    expected = (x.astype(np.float64) @ y)[:m, :n]
    np.testing.assert_array_equal(out, expected[::-1, ::-1])
    np.testing.assert_array_equal(z, 3 * expected)


def test_three_dimensions(device: Device) -> None:
    random = np.random.default_rng(0)
    x, y = (random.integers(-3, 3, s).astype(np.float16) for s in ((64, 64), (64, 64)))
    z = device.array(np.full((4, 9, 24), 99, np.float16))
    words = {"BM": 64, "BN": 64, "num_warps": 4}
    device.run(blocks_of_rank_3, (1,), device.array(x), device.array(y), z, 4, 9, 24, **words)
    expected = np.full((4, 9, 24), 99.0)
    block = (x.astype(np.float64) @ y).reshape(4, 16, 64)
    expected[1:, 1:, 2:] = block[:3, :8, :22]
    np.testing.assert_array_equal(z, expected)


@pytest.mark.parametrize("m, n", [(0, 64), (64, 0), (8, 8)])
def test_arrays_without_elements_are_not_written(device: Device, m: int, n: int) -> None:
    """The descriptor says how large the array is, not its memory."""
    a, b, c, expected = operands(device, 64, 64, 64)
    c[:] = 99
    blocks = [TensorDescriptor.from_tensor(array, [64, 64]) for array in (a, b, c)]
    blocks[2].shape = (m, n)
    words = {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4}
    device.run(product, (1, 1), *blocks, 64, **words)
    assert_near(c[:m, :n], expected[:m, :n])
    assert (c[m:] == 99).all() and (c[:, n:] == 99).all()


# ---- reductions ----------------------------------------------------------------------------------

NUMPY = {
    "add": lambda x, y: x + y + y, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
KINDS = [
    *(("add", t) for t in (np.float32, np.float16, BF16, np.int32, np.uint32, np.uint64)),
    *(("add", t) for t in (np.float64, np.int64)),
    *((kind, t) for kind in ("min", "max") for t in (np.int32, np.uint64, np.float16, np.float32)),
    *((kind, t) for kind in ("and", "or", "xor") for t in (np.int32, np.int64)),
]


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    low = 0 if np.dtype(dtype).kind == "u" else -50
    return np.random.default_rng(seed).integers(low, 50, shape).astype(dtype)


@pytest.mark.parametrize(
    "kind, dtype", KINDS, ids=[f"{kind}-{np.dtype(t).name}" for kind, t in KINDS]
)
@pytest.mark.parametrize("at", [0, 8, 5, -3])
def test_reductions(device: Device, kind: str, dtype: Any, at: int) -> None:
    before, x = numbers((15, 24), dtype, 1), numbers((8, 16), dtype, 2)
    d = device.array(before)
    described = [TensorDescriptor.from_tensor(a, [8, 16]) for a in (d, device.array(x))]
    device.run(combined, (1,), *described, kind, 2, at, num_warps=2)
    first = max(at, 0)
    part = before[first : at + 8, first : at + 16]
    block = x[first - at :, first - at :][: part.shape[0], : part.shape[1]]
    before[first : at + 8, first : at + 16] = NUMPY[kind](part, block)
    np.testing.assert_array_equal(d, before)


@pytest.mark.parametrize(
    "block", [(64,), (512,), (2, 4, 8), (2, 2, 2, 32), (1, 2, 2, 2, 8)], ids=str
)
def test_reductions_of_any_rank(device: Device, block: tuple[int, ...]) -> None:
    shape = tuple(extent + 3 for extent in block[:-1]) + (block[-1] + 8,)
    before, x = numbers(shape, np.int32, 1), numbers(shape, np.int32, 2)
    d = device.array(before)
    described = [TensorDescriptor.from_tensor(a, list(block)) for a in (d, device.array(x))]
    device.run(combined, (1,), *described, "add", len(block), 1, num_warps=2)
    here = tuple(slice(1, extent + 1) for extent in block)
    before[here] += 2 * x[tuple(slice(0, extent) for extent in block)]
    np.testing.assert_array_equal(d, before)
