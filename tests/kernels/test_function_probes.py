"""Functions that people try, each in one expression of a tile, on every device, against NumPy.

The files named for what they test (`test_sorting.py`, `test_scans.py`, `test_libdevice.py` ...)
look at types, shapes and extremes; here is what there is, in one place.
"""

# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit

Array = np.ndarray[Any, Any]
PROBES: dict[str, tuple[Callable[..., Any], Callable[[Array], Any]]] = {}


def probe(expected: Callable[[Array], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function of x, 16x16 int32 from -50 to 50, and of its address."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROBES[function.__name__] = (jit(function), expected)
        return function

    return register


@jit
def larger_by_key(a, key_a, b, key_b):
    return tl.where(key_a >= key_b, a, b), tl.maximum(key_a, key_b)


@jit
def collatz(n):
    steps = n * 0
    n = abs(n) + 1
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps, n


def collatz_steps(n: int) -> int:
    n, steps = abs(n) + 1, 0
    while n > 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def by_row(function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    return lambda x: np.stack([np.broadcast_to(function(row), 16) for row in x])


def f64(function: Callable[..., Any]) -> Callable[[Array], Any]:
    """Of x / 8 as a float."""
    return lambda x: function(x / 8)


@probe(lambda x: np.sort(x, 1)[:, ::-1])
def sort(x, p):
    return tl.sort(x, 1, descending=True)


@probe(by_row(lambda row: np.tile(np.sort(row)[::-1][:4], 4)))
def topk(x, p):
    best = tl.reshape(tl.topk(x, 4), (16, 1, 4))
    return tl.reshape(tl.broadcast_to(best, (16, 4, 4)), (16, 16))


@probe(lambda x: np.bincount(np.abs(x[0][x[0] > 0]) % 16, minlength=16) + 0 * x)
def histogram(x, p):
    row = tl.load(p + tl.arange(0, 16))
    return tl.histogram(tl.abs(row) % 16, 16, mask=row > 0)[None, :] + 0 * x


@probe(np.vectorize(collatz_steps))
def map_elementwise(x, p):
    steps, ends = tl.map_elementwise(collatz, x)
    return steps * ends


@probe(lambda x: x ^ 7)
def inline_asm_elementwise(x, p):
    return tl.inline_asm_elementwise("xor.b32 $0, $1, 7;", "=r,r", [x], tl.int32, True, 1)


@probe(by_row(lambda row: row[row.argmax()]))
def reduce(x, p):
    value, _ = tl.reduce((x, x), 1, larger_by_key)
    return value[:, None]


@probe(lambda x: np.maximum.accumulate(x[:, ::-1], 1)[:, ::-1])
def associative_scan(x, p):
    return tl.associative_scan((x, x), 1, larger_by_key, reverse=True)[1]


@probe(lambda x: np.cumsum(x, 0) + np.cumprod(np.sign(x), 1))
def cumsum_and_cumprod(x, p):
    sign = (x > 0).to(tl.int32) - (x < 0).to(tl.int32)
    return tl.cumsum(x, 0) + tl.cumprod(sign, 1)


@probe(lambda x: x.sum(0) + x.max(0) * x.min(0) + x.argmax(0) - x.argmin(0) + 0 * x)
def reductions(x, p):
    largest, place = tl.max(x, 0, return_indices=True)
    return (tl.sum(x, 0) + largest * tl.min(x, 0) + place - tl.argmin(x, 0))[None, :] + 0 * x


@probe(lambda x: np.bitwise_xor.reduce(x, 1)[:, None] + np.bitwise_or.reduce(x, 1)[:, None] + 0 * x)
def bitwise_reductions(x, p):
    return (tl.xor_sum(x, 1) + tl.reduce_or(x, 1))[:, None] + 0 * x


@probe(lambda x: np.take_along_axis(x, np.abs(x) % 16, 1))
def gather(x, p):
    return tl.gather(x, tl.abs(x) % 16, 1)


@probe(lambda x: x[:, ::-1].T)
def flip_and_trans(x, p):
    return tl.trans(tl.flip(x, 1))


@probe(lambda x: np.repeat(x[:, :8], 2, 1) + np.tile([0, 1], 8))
def join_split_interleave(x, p):
    first, second = tl.split(tl.reshape(tl.permute(tl.reshape(x, (16, 2, 8)), 0, 2, 1), (16, 8, 2)))
    pair = tl.join(first, first + 1)
    return tl.reshape(pair, (16, 16)) + 0 * tl.interleave(second, first)


@probe(lambda x: np.concatenate([x, x + 1], 0)[8:24])
def cat(x, p):
    return tl.cat(x, x + 1, dim=0)[8:24, :]


@probe(lambda x: x + x.ravel()[:1])
def shapes(x, p):
    first = tl.unsqueeze(tl.squeeze(tl.expand_dims(tl.ravel(x)[:1], 0), 0), 0)
    a, b = tl.broadcast(x, first)
    return a + tl.view(b, (16, 16))


@probe(lambda x: x.astype(np.int64) @ x.T)
def dot_of_bytes(x, p):
    return tl.dot(x.to(tl.int8), tl.trans(x.to(tl.int8)))


@probe(lambda x: (x % 4).astype(np.float64) @ (x % 4).T)
def dot_of_floats(x, p):
    a = (((x % 4) + 4) % 4).to(tl.float32)
    return tl.dot(a, tl.trans(a), input_precision="ieee")


@probe(lambda x: 2.0 * (x % 4) @ (x % 4).T)
def dot_scaled(x, p):
    a = (((x % 4) + 4) % 4).to(tl.bfloat16)
    a = tl.cat(a, tl.zeros((16, 16), tl.bfloat16), dim=1)
    scale = tl.full((16, 1), 128, tl.uint8)
    return tl.dot_scaled(a, scale, "bf16", tl.trans(a), None, "bf16")


@probe(lambda x: np.where(x > 0, np.clip(x, 3, 20), np.minimum(np.maximum(x, -9), -2)))
def where_and_clamp(x, p):
    return tl.where(x > 0, tl.clamp(x, 3, 20), tl.minimum(tl.maximum(x, -9), -2))


@probe(lambda x: -(-np.abs(x) // 3) + np.abs(x) % 5)
def quotients(x, p):
    return tl.cdiv(tl.abs(x), 3) + tl.abs(x) % 5


@probe(f64(lambda y: np.floor(y) + 10 * np.ceil(y) + np.sqrt(np.abs(y)) + 1 / np.sqrt(1 + y * y)))
def roots_and_roundings(x, p):
    y = x.to(tl.float32) / 8
    root = tl.sqrt_rn(tl.abs(y)) + tl.rsqrt(tl.fma(y, y, 1.0))
    return tl.floor(y) + 10 * tl.ceil(y) + root


@probe(f64(lambda y: np.exp(y) + np.exp2(y) + np.sin(y) * np.cos(y) + np.log(1 + y * y)))
def elementary_functions(x, p):
    y = x.to(tl.float32) / 8
    return tl.exp(y) + tl.exp2(y) + tl.sin(y) * tl.cos(y) + tl.log(1 + y * y)


@probe(f64(lambda y: 1 / (1 + np.exp(-y)) + np.exp(y) / np.exp(y).sum(0) + np.tanh(y)))
def composed_functions(x, p):
    y = x.to(tl.float32) / 8
    return tl.sigmoid(y) + tl.softmax(y, dim=0) + tl.extra.libdevice.tanh(y)


@probe(lambda x: np.vectorize(lambda n: (int(n) & 0xFFFFFFFF).bit_count())(x) + np.rint(x / 8))
def libdevice(x, p):
    y = x.to(tl.float32) / 8
    return tl.extra.libdevice.popc(x) + tl.extra.libdevice.llrint(y)


@probe(lambda x: x.T + 1)
def block_pointers(x, p):
    block = tl.make_block_ptr(p, (16, 16), (1, 16), (16, 0), (16, 16), (0, 1))
    return tl.load(tl.advance(block, (-16, 0)), boundary_check=(0, 1)) + 1


@probe(lambda x: np.pad(x, ((0, 0), (0, 4)))[:, 4:])
def tensor_descriptors(x, p):
    return tl.make_tensor_descriptor(p, [16, 16], [16, 1], [16, 16]).load([0, 4])


@probe(lambda x: x.astype(np.float16).view(np.int16).astype(np.int32))
def casts(x, p):
    return x.to(tl.float16).to(tl.int16, bitcast=True)


@probe(lambda x: x / 2)
def every_fp8(x, p):
    y = ((x % 4) * 0.25).to(tl.float8e4b15).to(tl.float8e4b8).to(tl.float8e5b16).to(tl.float32)
    z = (x.to(tl.float32) * 0 + y).to(tl.float8e4nv).to(tl.float8e5).to(tl.float32)
    return x * 0.5 + z - (x % 4) * 0.25


@jit
def probe_kernel(x, out, FUNCTION: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + i, FUNCTION(tl.load(x + i), x))


@pytest.mark.parametrize("name", PROBES)
def test_what_people_try_is_there_and_right(device: Device, rng: np.random.Generator, name: str):
    function, expected = PROBES[name]
    x = rng.permutation(np.arange(-128, 128)).astype(np.int32).reshape(16, 16) // 3
    out = device.empty((16, 16), np.float32)
    device.run(probe_kernel, (1,), device.array(x), out, FUNCTION=function)
    np.testing.assert_allclose(out, expected(x), rtol=1e-5, atol=1e-6)
