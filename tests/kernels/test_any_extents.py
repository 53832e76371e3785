"""Tiles whose extents are no powers of two, and indices and slices of tiles."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false, reportCallIssue=false

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_same
from tests.kernels.devices import Device
from tilewright import jit

ARRAY = np.ndarray[Any, Any]


@jit
def latest(a_value, a_key, b_value, b_key):
    """Associative and commutative, as no two keys are equal, without a neutral element."""
    newer = b_key > a_key
    return tl.where(newer, b_value, a_value), tl.where(newer, b_key, a_key)


@jit
def affine(a_scale, a_shift, b_scale, b_shift):
    return a_scale * b_scale, a_shift * b_scale + b_shift


CASES: dict[str, tuple[Callable[..., Any], Callable[[ARRAY], Any]]] = {}


def case(expected: Callable[[ARRAY], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a function of a tile, and what NumPy makes of the array."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = (jit(function), expected)
        return function

    return register


@case(lambda x: 2 * x.T + x.sum(1)[None])
def sums_and_transposes(x):
    return 2 * tl.trans(x) + tl.sum(x, 1)[None, :]


@case(lambda x: x.max(0)[None] + x.argmin(0)[None] + x.min())
def extremes(x):
    return (tl.max(x, 0) + tl.argmin(x, 0) + tl.min(x))[None, :]


@case(lambda x: np.cumsum(x, 0) + np.cumsum(x[:, ::-1], 1)[:, ::-1])
def sums_so_far(x):
    return tl.cumsum(x, 0) + tl.cumsum(x, 1, reverse=True)


def newest(x: ARRAY) -> ARRAY:
    """Of each row the element of the last largest |x| % 5."""
    keys = np.abs(x) % 5
    last = keys.shape[1] - 1 - keys[:, ::-1].argmax(1)
    return np.take_along_axis(x, last[:, None], 1)


@case(newest)
def folds_of_pairs(x):
    key = (tl.abs(x) % 5) * 16 + tl.arange(0, x.shape[1])[None, :]
    return tl.reduce((x, key), 1, latest)[0][:, None]


def recurrences(x: ARRAY) -> ARRAY:
    """y[j] = y[j + 1] * (x[j] % 2) + x[j], from the last one on; of |x|."""
    y = np.zeros_like(x)
    for j in reversed(range(x.shape[1])):
        y[:, j] = x[:, j] + (y[:, j + 1] * (np.abs(x[:, j]) % 2) if j + 1 < x.shape[1] else 0)
    return y


@case(recurrences)
def scans_of_pairs_backwards(x):
    return tl.associative_scan((tl.abs(x) % 2, x), 1, affine, reverse=True)[1]


@case(lambda x: x.T @ x)
def products(x):
    exact = tl.dot(tl.trans(x).to(tl.float32), x.to(tl.float32), input_precision="ieee")
    return exact.to(x.dtype)


@case(lambda x: x.reshape(x.shape[1], x.shape[0]))
def reshapes(x):
    return tl.reshape(tl.reshape(x, (x.shape[0] * x.shape[1],)), (x.shape[1], x.shape[0]))


@case(lambda x: np.concatenate([x, x + 1, x[:, :1]], 1))
def joins(x):
    return tl.cat(tl.cat(x, x + 1, dim=1), x[:, :1], dim=1)


@case(lambda x: np.stack([x, 2 * x], -1).reshape(x.shape[0], -1)[:, ::2] + x[:, ::-1])
def interleaves_and_flips(x):
    first, second = tl.split(tl.join(x, 2 * x))
    return tl.interleave(first, second)[:, ::2] + tl.flip(x, 1)


@case(lambda x: np.take_along_axis(x, np.abs(x) % x.shape[0], 0))
def gathers(x):
    return tl.gather(x, tl.abs(x) % x.shape[0], 0)


@case(lambda x: np.bincount(np.abs(x).ravel() % 4, minlength=7)[None])
def counts(x):
    return tl.histogram(tl.reshape(tl.abs(x) % 4, x.shape[0] * x.shape[1]), 7)[None, :]


@case(lambda x: np.where(x.sum() > 0, x + 3 * 2, x - x[1, 2]))
def carries_and_branches(x):
    result = x
    if tl.sum(x) > 0:
        for _ in range(3):
            result += 2
    else:
        result -= x[1, 2]
    return result


@case(lambda x: x[0][:, None] + x[-1, -2] * x[1:, 1][None] + x[0, 1:][None].sum())
def indices(x):
    return x[0][:, None] + x[-1, -2] * x[1:, 1][None, :] + tl.sum(x[0, 1:])


@case(lambda x: x[::-1][::2, 1:3][..., None][:, :, 0] - x[:, 0:-1][0, -1])
def slices(x):
    return x[::-1][::2, 1:3][..., None][:, :, 0] - x[:, 0:-1][0, -1]


@jit
def tile_kernel(x, out, FUNCTION: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    result = FUNCTION(tl.load(x + i * N + j))
    p, q = tl.arange(0, result.shape[0])[:, None], tl.arange(0, result.shape[1])[None, :]
    tl.store(out + p * result.shape[1] + q, result)


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("shape", [(6, 3), (5, 12), (3, 8), (4, 4)], ids=str)
def test_functions_of_tiles_of_any_extents(
    device: Device, rng: np.random.Generator, name: str, shape: tuple[int, int]
):
    function, expected = CASES[name]
    x = rng.integers(-9, 9, shape).astype(np.int32)
    wanted = np.broadcast_to(expected(x), np.broadcast_shapes(np.shape(expected(x)), (1, 1)))
    out = device.empty(wanted.shape, np.int32)
    device.run(tile_kernel, (1,), device.array(x), out, FUNCTION=function, M=shape[0], N=shape[1])
    np.testing.assert_array_equal(out, wanted)


@jit
def masked_kernel(x, out, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i, mask=i < n, other=0)
    halves = tl.exp(tile.to(tl.float16)).to(tl.float32)
    tl.store(out + i, tl.where(tile > 0, tile, halves), mask=i < n)
    tl.atomic_add(total + i % 3, tile, mask=i % 2 == 0)
    tl.atomic_add(total + 3, tl.sum(tile))


@pytest.mark.parametrize("block", [1, 3, 24, 100])
@pytest.mark.parametrize("n", [1, 77])
def test_programs_of_any_block_size(device: Device, rng: np.random.Generator, n: int, block: int):
    x = rng.integers(-4, 4, n).astype(np.float32)
    out, total = device.empty(n, np.float32), device.array(np.zeros(4, np.float32))
    grid = (-(-n // block),)
    device.run(masked_kernel, grid, device.array(x), out, total, n, BLOCK=block)
    assert_same(total[3], np.float32(x.sum()))
    even = x * (np.arange(n) % 2 == 0)
    assert_same(total[:3], np.array([even[k::3].sum() for k in range(3)], np.float32))
    np.testing.assert_allclose(out, np.where(x > 0, x, np.exp(x)), rtol=2e-3)


@jit
def printing_kernel(x, N: tl.constexpr):
    tl.device_print("x", tl.load(x + tl.arange(0, N)))


@jit
def asserting_kernel(x, N: tl.constexpr):
    tl.device_assert(tl.load(x + tl.arange(0, N)) > 0, "positive")


def test_padding_is_not_printed_and_not_asserted(device: Device, capfd: Any):
    x = device.array(np.arange(1, 6, dtype=np.int32))
    device.run(printing_kernel, (1,), x, N=5)
    device.run(asserting_kernel, (1,), x, N=5, debug=True)
    printed = [line for line in capfd.readouterr().out.splitlines() if "x" in line]
    assert len(printed) == 5 and printed[-1].endswith("5")
