"""Ops that move elements, of tiles that come from anywhere: each origin with each op.

What a tile comes from decides how a GPU spreads it over threads: by its addresses, by a product, by
what a reduction leaves; or not at all, and then it is made wherever the op wants it.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import ALL, BOOL, FNUZ, FP8, LANGUAGE, Array, assert_same
from tests.kernels.devices import Device
from tilewright import jit

# ---- where tiles come from: (x, n, SHAPE, SIZE) -> integers; x holds integers ------------------


@jit
def counted(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    return tl.reshape(tl.arange(0, SIZE), SHAPE)


@jit
def constant(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    return tl.full(SHAPE, 3, tl.int32)


@jit
def zero(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    return tl.zeros(SHAPE, tl.int32)


@jit
def spread_scalar(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    return tl.zeros(SHAPE, tl.int32) + n


@jit
def whole_sum(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    return tl.zeros(SHAPE, tl.int32) + tl.sum(tl.load(x + tl.arange(0, SIZE)))


@jit
def sum_of_rows(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    rows = tl.load(x + tl.arange(0, SIZE)[:, None] * 4 + tl.arange(0, 4)[None, :])
    return tl.reshape(tl.sum(rows, 1), SHAPE)


@jit
def sum_of_columns(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    rows = tl.load(x + tl.arange(0, 4)[:, None] * SIZE + tl.arange(0, SIZE)[None, :])
    return tl.reshape(tl.sum(rows, 0), SHAPE)


@jit
def carried(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    total = tl.zeros(SHAPE, tl.int32)
    for k in range(n):
        total += tl.reshape(tl.arange(0, SIZE), SHAPE) * k
    return total


@jit
def loaded(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    return tl.load(x + tl.reshape(tl.arange(0, SIZE), SHAPE))


@jit
def multiplied(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, 16)
    square = tl.load(x + i[:, None] * 16 + i[None, :]).to(tl.float16)
    found = tl.dot(square, square).to(tl.int32)
    if SIZE > 256:
        found = tl.broadcast_to(found[None], SIZE // 256, 16, 16)
    else:
        found = tl.max(tl.reshape(found, (SIZE, 256 // SIZE)), 1)
    return tl.reshape(found, SHAPE)


@jit
def joined(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE // 2)
    return tl.reshape(tl.interleave(i, 100 - i), SHAPE)


@jit
def concatenated(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE // 2)
    return tl.reshape(tl.cat(i, 100 - i), SHAPE)


@jit
def scanned(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    return tl.reshape(tl.cumsum(tl.arange(0, SIZE)), SHAPE)


@jit
def chosen(x, n, SHAPE: tl.constexpr, SIZE: tl.constexpr):
    found = tl.reshape(tl.arange(0, SIZE), SHAPE)
    if n > 2:
        found = found * 2
    return found


def _squared(x: Array, size: int) -> Array:
    square = x[:256].reshape(16, 16)
    found = square @ square
    return np.tile(found.ravel(), size // 256) if size > 256 else found.reshape(size, -1).max(1)


def _halves(size: int) -> tuple[Array, Array]:
    i = np.arange(size // 2)
    return i, 100 - i


ORIGINS: dict[Any, Any] = {
    counted: lambda x, n, size: np.arange(size),
    constant: lambda x, n, size: np.full(size, 3),
    zero: lambda x, n, size: np.zeros(size),
    spread_scalar: lambda x, n, size: np.full(size, n),
    whole_sum: lambda x, n, size: np.full(size, x[:size].sum()),
    sum_of_rows: lambda x, n, size: x[: 4 * size].reshape(size, 4).sum(1),
    sum_of_columns: lambda x, n, size: x[: 4 * size].reshape(4, size).sum(0),
    carried: lambda x, n, size: np.arange(size) * sum(range(n)),
    loaded: lambda x, n, size: x[:size],
    multiplied: lambda x, n, size: _squared(x, size),
    joined: lambda x, n, size: np.stack(_halves(size), -1),
    concatenated: lambda x, n, size: np.concatenate(_halves(size)),
    scanned: lambda x, n, size: np.arange(size).cumsum(),
    chosen: lambda x, n, size: np.arange(size) * 2,
}
"""Kernel function -> the same by NumPy, flat."""

# ---- what is done with two of them ---------------------------------------------------------------


@jit
def join(a, b):
    return tl.join(a, b)


@jit
def interleave(a, b):
    return tl.interleave(a, b)


@jit
def cat_first(a, b):
    return tl.cat(a, b)


@jit
def cat_last(a, b):
    return tl.cat(a, b, dim=len(a.shape) - 1)


@jit
def swap_a_pair(a, b):
    first, second = tl.split(tl.join(a, b))
    return tl.join(second, first)


@jit
def neighbours_apart(a, b):
    first, second = tl.split(tl.reshape(tl.cat(a, b), (a.numel, 2)))
    return tl.cat(second, first)


@jit
def permute(a, b):
    return tl.trans(tl.join(a, b))


@jit
def reshape(a, b):
    return tl.trans(tl.reshape(tl.cat(a, b), (2, a.numel)))


@jit
def nested_join(a, b):
    return tl.join(tl.join(a, b), tl.join(b, a))


@jit
def nested_cat(a, b):
    return tl.cat(tl.interleave(a, b), tl.interleave(b, a))


@jit
def flip(a, b):
    return tl.flip(tl.interleave(a, b))


@jit
def scan_of_pairs(a, b):
    return tl.cumsum(tl.join(a, b).to(tl.int32), len(a.shape)).to(a.dtype)


@jit
def sum_of_pairs(a, b):
    return tl.sum(tl.join(a, b).to(tl.int32), len(a.shape)).to(a.dtype)


def _apart(a: Array, b: Array) -> Array:
    both = np.concatenate([a, b]).reshape(-1, 2)
    return np.concatenate([both[:, 1], both[:, 0]])


def _interleaved(a: Array, b: Array) -> Array:
    return np.stack([a, b], -1).reshape(*a.shape[:-1], -1)


OPS: dict[Any, Any] = {
    join: lambda a, b: np.stack([a, b], -1),
    interleave: _interleaved,
    cat_first: lambda a, b: np.concatenate([a, b]),
    cat_last: lambda a, b: np.concatenate([a, b], -1),
    swap_a_pair: lambda a, b: np.stack([b, a], -1),
    neighbours_apart: _apart,
    permute: lambda a, b: np.stack([a, b], -1).swapaxes(-1, -2),
    reshape: lambda a, b: np.concatenate([a, b]).reshape(2, -1).T,
    nested_join: lambda a, b: np.stack([np.stack([a, b], -1), np.stack([b, a], -1)], -1),
    nested_cat: lambda a, b: np.concatenate([_interleaved(a, b), _interleaved(b, a)]),
    flip: lambda a, b: _interleaved(a, b)[..., ::-1],
    scan_of_pairs: lambda a, b: np.stack([a, b], -1).astype(np.int32).cumsum(-1),
    sum_of_pairs: lambda a, b: a.astype(np.int32) + b.astype(np.int32),
}

SHAPES = [(2,), (4,), (64,), (512,), (1024,), (2, 8), (16, 32), (1, 64), (64, 1), (2, 2, 4)]
ADDING = (scan_of_pairs, sum_of_pairs)


@jit
def kernel(
    x, out, n, ORIGIN: tl.constexpr, OP: tl.constexpr, SHAPE: tl.constexpr, SIZE: tl.constexpr,
    DTYPE: tl.constexpr,
):  # fmt: skip
    made = ORIGIN(x, n, SHAPE, SIZE) & 63
    found = OP(made.to(DTYPE), (made * 3 + 1).to(DTYPE))
    tl.store(out + tl.reshape(tl.arange(0, found.numel), found.shape), found)


def assert_moved(
    device: Device, origin: Any, op: Any, shape: tuple[int, ...], dtype: Any, warps: int
) -> None:
    size, n = int(np.prod(shape)), 3
    x = (np.arange(4 * size + 256) * 7 % 11).astype(np.int32)
    made = ORIGINS[origin](x, n, size).astype(np.int32).reshape(shape) & 63
    expected = OPS[op](made.astype(dtype), (made * 3 + 1).astype(dtype)).astype(dtype)
    out = device.empty(expected.shape, dtype)
    device.run(
        kernel, (1,), device.array(x), out, n, ORIGIN=origin, OP=op, SHAPE=shape, SIZE=size,
        DTYPE=LANGUAGE[np.dtype(dtype)], num_warps=warps,
    )  # fmt: skip
    assert_same(out, expected)


CASES = [
    (origin, op, SHAPES[i % len(SHAPES)], ALL[i % len(ALL)], (4, 1, 8, 2)[i % 4])
    for i, (origin, op) in enumerate(product(ORIGINS, OPS))
]
"""Each origin with each op; shapes, types and warps take turns."""


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1].__name__}")
def test_elements_move_to_where_they_belong(device: Device, case: Any):
    origin, op, shape, dtype, warps = case
    if op in ADDING and (dtype == BOOL or dtype in (*FP8, *FNUZ)):
        dtype = np.dtype("int32")
    assert_moved(device, origin, op, shape, dtype, warps)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("origin", [counted, spread_scalar, whole_sum], ids=lambda o: o.__name__)
def test_tiles_of_one_element(device: Device, origin: Any, op: Any):
    assert_moved(device, origin, op, (1,), np.dtype("int64"), 4)


@jit
def scalars_kernel(x, out, n):
    """Pairs of scalars: an argument, a sum, a program's number."""
    i = tl.arange(0, 2)
    total = tl.sum(tl.load(x + tl.arange(0, 16)))
    tl.store(out + i, tl.join(n, total))
    tl.store(out + 2 + i, tl.join(tl.program_id(0) + 7, n * 2))
    tl.store(out + 4 + tl.arange(0, 4), tl.ravel(tl.join(tl.join(total, n), tl.join(1, 2))))


def test_scalars_are_joined(device: Device):
    x, out = np.arange(16, dtype=np.int32), device.empty(8, np.int32)
    device.run(scalars_kernel, (1,), device.array(x), out, 3)
    assert out.tolist() == [3, 120, 7, 6, 120, 1, 3, 2]
