"""Products of blocks that tensor descriptors describe, large enough for the copy engine's loads."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit
from tilewright.language import TensorDescriptor


@jit
def product(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURNED: tl.constexpr,
):  # fmt: skip
    """a, b: host descriptors; b is (N, K) if it is TURNED."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = a.load([row, k * BK])
        if TURNED:
            right = b.load([column, k * BK]).T
        else:
            right = b.load([k * BK, column])
        acc = tl.dot(left, right, acc)
    i, j = row + tl.arange(0, BM), column + tl.arange(0, BN)
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), inside)


@jit
def product_of_pointers(x, y, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The same, with descriptors that the kernel makes."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    i, j = row + tl.arange(0, BM), column + tl.arange(0, BN)
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), inside)


@jit
def product_of_what_it_stores(
    x, y, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """The same, of an array that the program itself has filled."""
    i, k = tl.arange(0, BM), tl.arange(0, BK)
    for start in range(0, K, BK):
        inside = (i[:, None] < M) & (start + k[None, :] < K)
        pointers = x + i[:, None] * K + start + k[None, :]
        tl.store(pointers, tl.load(pointers, inside) * 2, inside)
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        acc = tl.dot(a.load([0, start]), b.load([start, 0]), acc)
    j = tl.arange(0, BN)
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), inside)


@jit
def sum_of_blocks(x, y, c, M, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Loads two blocks of K, whatever K is."""
    a = tl.make_tensor_descriptor(x, [M, K], [64, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [64, 1], [BK, BN])
    acc = tl.full((BM, BN), 1.0, tl.float32)
    for start in range(0, 2 * BK, BK):
        acc = tl.dot(a.load([0, start]), b.load([start, 0]), acc)
    i, j = tl.arange(0, BM), tl.arange(0, BN)
    tl.store(c + i[:, None] * BN + j[None, :], acc.to(tl.float16))


BLOCKS = {"BM": 64, "BN": 64, "BK": 64}
SIZES = [(64, 64, 64), (72, 136, 200), (8, 64, 16), (64, 72, 640)]


def operands(device: Device, m: int, n: int, k: int, turned: bool) -> list[Any]:
    random = np.random.default_rng(m + n + k)
    a = random.standard_normal((m, k)).astype(np.float16)
    b = random.standard_normal((n, k) if turned else (k, n)).astype(np.float16)
    expected = a.astype(np.float64) @ (b.T if turned else b).astype(np.float64)
    return [device.array(a), device.array(b), device.empty((m, n), np.float16), expected]


def assert_product(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("m, n, k", SIZES)
def test_descriptors_of_the_host(
    device: Device, m: int, n: int, k: int, turned: bool, stages: int
) -> None:
    a, b, c, expected = operands(device, m, n, k, turned)
    left = TensorDescriptor.from_tensor(a, [64, 64])
    right = TensorDescriptor.from_tensor(b, [64, 64])
    grid = (-(-m // 64), -(-n // 64))
    options = {"num_warps": 4, "num_stages": stages}
    device.run(product, grid, left, right, c, m, n, k, **BLOCKS, TURNED=turned, **options)
    assert_product(c, expected)


@pytest.mark.parametrize("m, n, k", [(64, 64, 256), (80, 144, 208), (65, 67, 33)])
def test_descriptors_that_a_kernel_makes(device: Device, m: int, n: int, k: int) -> None:
    a, b, c, expected = operands(device, m, n, k, False)
    grid = (-(-m // 64), -(-n // 64))
    device.run(product_of_pointers, grid, a, b, c, m, n, k, **BLOCKS, num_warps=4)
    assert_product(c, expected)


def test_what_the_program_itself_has_stored(device: Device) -> None:
    a, b, c, expected = operands(device, 64, 64, 256, False)
    device.run(product_of_what_it_stores, (1,), a, b, c, 64, 64, 256, **BLOCKS, num_warps=4)
    assert_product(c, 2 * expected)


@pytest.mark.parametrize("m, n, k", [(0, 64, 64), (64, 0, 64), (64, 64, 0), (0, 0, 0), (3, 5, 7)])
def test_arrays_without_elements_are_zeros(device: Device, m: int, n: int, k: int) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    c = device.empty((64, 64), np.float16)
    arrays = (device.array(a), device.array(b), c)
    device.run(sum_of_blocks, (1,), *arrays, m, k, n, **BLOCKS, num_warps=4)
    expected = np.ones((64, 64))
    expected[:m, :n] += a[:m, :k].astype(np.float64) @ b[:k, :n].astype(np.float64)
    assert_product(c, expected)
