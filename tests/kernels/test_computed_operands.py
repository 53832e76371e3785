"""Products of whole warpgroups with an operand that is computed from what is loaded, or that lies
in memory otherwise than the instructions read it: it comes from registers, as A or, where it is B,
as A of the transposed product."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import normals
from tests.kernels.devices import Array, Device
from tilewright import jit


@jit
def loop_kernel(
    a, b, scales, c, M, N, K, am, ak, bk, bn, HOW: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        rest = K - start
        x = tl.load(
            a + i[:, None] * am + (start + k)[None, :] * ak,
            mask=(i[:, None] < M) & (k[None, :] < rest), other=0,
        )  # fmt: skip
        y = tl.load(
            b + (start + k)[:, None] * bk + j[None, :] * bn,
            mask=(j[None, :] < N) & (k[:, None] < rest), other=0,
        )  # fmt: skip
        if HOW == "b":
            y = y.to(x.dtype)
        if HOW == "a":
            x = x.to(y.dtype)
        if HOW == "scaled":
            scale = tl.load(scales + start // 32 * N + j, mask=j < N, other=0)
            y = (y.to(x.dtype) - 3) * scale[None, :]
        acc = tl.dot(x, y, acc, input_precision=PRECISION)
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c + i[:, None] * N + j[None, :], acc, mask=inside)


def strided(device: Device, values: Array, order: str) -> Array:
    """values, stored by rows ("n") or by columns ("t")."""
    return device.array(values) if order == "n" else device.array(values.T.copy()).T


def product(
    device: Device, a: Array, b: Array, how: str, precision: str = "ieee",
    scales: Any = None, **words: Any,
) -> Array:  # fmt: skip
    (m, k), n = a.shape, b.shape[1]
    c = device.empty((m, n), np.float32)
    blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32} | words
    grid = (-(-m // blocks["BLOCK_M"]), -(-n // blocks["BLOCK_N"]))
    steps = [s // x.itemsize for x in (a, b) for s in x.strides]
    scales = a if scales is None else scales
    device.run(
        loop_kernel, grid, a, b, scales, c, m, n, k, *steps, HOW=how, PRECISION=precision,
        **blocks,
    )  # fmt: skip
    return c


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("size", [(64, 64, 96), (70, 72, 40)], ids=str)
def test_tf32_loses_the_last_bits_of_operands_at_most(
    device: Device, rng: np.random.Generator, size: tuple[int, int, int], layout: str
) -> None:
    m, n, k = size
    x, y = normals(rng, (m, k), "float32"), normals(rng, (k, n), "float32")
    found = product(
        device, strided(device, x, layout[0]), strided(device, y, layout[1]), "", "tf32"
    )
    exact = x.astype(np.float64) @ y.astype(np.float64)
    # 10 bits of each fraction stay: what is lost is below 2^-10 of a factor, 2^-9 of a product.
    assert (np.abs(found - exact) <= 2.0**-9 * (np.abs(x) @ np.abs(y))).all()


@pytest.mark.parametrize("precision", ["tf32x3", "bf16x3"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_parts_of_fp32_are_multiplied_by_warpgroups(
    device: Device, rng: np.random.Generator, precision: str, layout: str
) -> None:
    """The parts of one operand are computed from one load, and each is multiplied twice."""
    x, y = normals(rng, (64, 96), "float32"), normals(rng, (96, 64), "float32")
    a, b = strided(device, x, layout[0]), strided(device, y, layout[1])
    found = product(device, a, b, "", precision)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    limit = 2.0**-18 if precision == "tf32x3" else 2.0**-14
    assert (np.abs(found - exact) <= limit * (np.abs(x) @ np.abs(y))).all()


@jit
def gated_kernel(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    """c = (a @ b[0]) * (a @ b[1]), a in 8 bits."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    up, gate = tl.zeros((M, N), tl.float32), tl.zeros((M, N), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(a + i[:, None] * K + start + k[None, :]).to(tl.float16)
        rows = (start + k)[:, None] * N + j[None, :]
        up = tl.dot(x, tl.load(b + rows), up)
        gate = tl.dot(x, tl.load(b + K * N + rows), gate)
    tl.store(c + i[:, None] * N + j[None, :], up * gate)


def test_an_operand_of_two_products(device: Device, rng: np.random.Generator) -> None:
    x, y = rng.integers(-4, 5, (64, 160)), rng.integers(-4, 5, (2, 160, 64))
    out = device.empty((64, 64), np.float32)
    a, b = device.array(x, np.int8), device.array(y, np.float16)
    device.run(gated_kernel, (1,), a, b, out, 160, M=64, N=64, BLOCK_K=32)
    up, gate = x @ y
    np.testing.assert_array_equal(out, up * gate)


@pytest.mark.parametrize("layout", ["nn", "nt", "tt"])
@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2], ids=str)
def test_fp8_along_any_dim(
    device: Device, rng: np.random.Generator, dtype: Any, layout: str
) -> None:
    x, y = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((64, 96), (96, 72)))
    found = product(device, strided(device, x, layout[0]), strided(device, y, layout[1]), "")
    np.testing.assert_array_equal(found, x.astype(np.float64) @ y.astype(np.float64))


SHAPES = [((64, 64), 4), ((128, 64), 8), ((64, 128), 8), ((32, 128), 4)]


@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize(("dtypes", "how"), [
    (("float16", "int8"), "b"), (("float16", "uint8"), "b"), (("int8", "float16"), "a"),
    (("float16", "float32"), "b"), (("float32", "float16"), "a"), (("float32", "int8"), "b"),
])  # fmt: skip
def test_operands_that_are_cast(
    device: Device, rng: np.random.Generator, dtypes: tuple[str, str], how: str, layout: str
) -> None:
    x = rng.integers(0 if "uint8" in dtypes else -4, 5, (64, 96)).astype(dtypes[0])
    y = rng.integers(0 if "uint8" in dtypes else -4, 5, (96, 64)).astype(dtypes[1])
    a, b = strided(device, x, layout[0]), strided(device, y, layout[1])
    found = product(device, a, b, how, "tf32")
    np.testing.assert_array_equal(found, x.astype(np.float64) @ y.astype(np.float64))


@pytest.mark.parametrize(("block", "warps"), SHAPES, ids=str)
@pytest.mark.parametrize("layout", ["nn", "nt"])
def test_weights_with_scales_of_groups(
    device: Device, rng: np.random.Generator, block: tuple[int, int], warps: int, layout: str
) -> None:
    m, n, k = block[0], block[1] + 8, 88
    x = rng.integers(-4, 5, (m, k)).astype(np.float16)
    y = rng.integers(-100, 101, (k, n)).astype(np.int8)
    scales = 2.0 ** rng.integers(-2, 3, (-(-k // 32), n))
    found = product(
        device, device.array(x), strided(device, y, layout[1]), "scaled",
        scales=device.array(scales, np.float16), BLOCK_M=block[0], BLOCK_N=block[1],
        num_warps=warps,
    )  # fmt: skip
    weights = (y.astype(np.float64) - 3) * scales.repeat(32, 0)[:k]
    np.testing.assert_array_equal(found, x @ weights)


@jit
def packed_kernel(
    a, b, zeros, c, K, HOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """c = a @ (w - zeros) for weights of 4 bits, two in a byte."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    half = tl.arange(0, BLOCK_K // 2)
    zero = tl.load(zeros + j).to(tl.float16)
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, K, BLOCK_K, num_stages=STAGES):
        packed = tl.load(b + (start // 2 + half)[:, None] * N + j[None, :])
        low, high = packed & 15, packed >> 4
        if HOW == "halves":
            x = tl.load(a + i[:, None] * K + start + half[None, :])
            y = tl.load(a + i[:, None] * K + start + BLOCK_K // 2 + half[None, :])
            acc = tl.dot(x, low.to(tl.float16) - zero[None, :], acc)
            acc = tl.dot(y, high.to(tl.float16) - zero[None, :], acc)
        else:
            x = tl.load(a + i[:, None] * K + start + k[None, :])
            if HOW == "joined":
                w = tl.join(low, high).permute(0, 2, 1).reshape(BLOCK_K, N)
            else:
                w = tl.interleave(low.trans(), high.trans()).trans()
            acc = tl.dot(x, w.to(tl.float16) - zero[None, :], acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@pytest.mark.parametrize("how", ["halves", "joined", "interleaved"])
@pytest.mark.parametrize(("stages", "length"), [(1, 128), (2, 192), (3, 64), (3, 320), (4, 128)])
def test_weights_of_4_bits(
    device: Device, rng: np.random.Generator, how: str, stages: int, length: int
) -> None:
    x = rng.integers(-4, 5, (64, length))
    w = rng.integers(0, 16, (length, 64))
    if how == "halves":
        low, high = (w.reshape(-1, 2, 32, 64)[:, part].reshape(-1, 64) for part in range(2))
    else:
        low, high = w[::2], w[1::2]
    zeros = rng.integers(0, 16, 64)
    packed = device.array(low | high << 4, np.uint8)
    out = device.empty((64, 64), np.float32)
    device.run(
        packed_kernel, (1,), device.array(x, np.float16), packed, device.array(zeros, np.int8),
        out, length, HOW=how, M=64, N=64, BLOCK_K=64, STAGES=stages,
    )  # fmt: skip
    np.testing.assert_array_equal(out, x @ (w - zeros))


@jit
def exchanged_before(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Threads exchange the first operand, before copies go where they did."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    sums = tl.cumsum(tl.load(a + i[:, None] * K + k[None, :]).to(tl.float32), 0)
    x = tl.clamp(sums, -8, 8).to(b.dtype.element_ty)
    acc = tl.zeros((M, N), c.dtype.element_ty)
    for s in range(n):
        w = tl.load(b + (s * 16 + k)[:, None] * 128 + k[None, :])
        z = tl.dot(x, w).to(x.dtype)
        acc = tl.dot(z, tl.load(b + (s * 16 + k)[:, None] + j[None, :] * 128), acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def of_two_loads(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The second operand of the first product goes through registers, that of the second does not:
    what is loaded for the next iteration is waited for by itself."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    acc = tl.zeros((M, N), c.dtype.element_ty)
    for s in range(n):
        z = tl.dot(x, tl.load(b + (s * 16 + k)[:, None] * 128 + k[None, :]))
        y = tl.load(b + (s * 16 + k)[:, None] + j[None, :] * 128)
        acc = tl.dot(z.to(x.dtype), y, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


NARROW = [np.dtype(np.int8), np.dtype(ml_dtypes.float8_e5m2)]


@pytest.mark.parametrize("words", [{}, {"maxnreg": 168}], ids=["", "maxnreg"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_copies_where_threads_have_written(
    device: Device, rng: np.random.Generator, dtype: Any, words: dict[str, int]
) -> None:
    (m, n, k), steps = (128, 32, 32), 4
    x, y = rng.integers(-1, 2, (m, k)), np.eye(128, dtype=int)[rng.permutation(128)]
    out = device.empty((m, n), np.int32 if dtype.kind == "i" else np.float32)
    a, b = device.array(x.astype(dtype)), device.array(y.astype(dtype))
    device.run(exchanged_before, (1,), a, b, out, steps, m, n, k, num_stages=2, **words)
    x = np.clip(np.cumsum(x, 0), -8, 8)
    rows = [slice(16 * s, 16 * s + k) for s in range(steps)]
    np.testing.assert_array_equal(out, sum(x @ y[r, :k] @ y[:n, r].T for r in rows))


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("shape", [(128, 64), (64, 64), (128, 32)], ids=str)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_a_product_of_an_operand_that_goes_through_registers(
    device: Device, rng: np.random.Generator, dtype: Any, shape: tuple[int, int], warps: int
) -> None:
    (m, n), k, steps = shape, 64, 4
    x, y = rng.integers(-8, 9, (m, k)), np.eye(128, dtype=int)[rng.permutation(128)]
    out = device.empty((m, n), np.int32 if dtype.kind == "i" else np.float32)
    a, b = device.array(x.astype(dtype)), device.array(y.astype(dtype))
    device.run(of_two_loads, (1,), a, b, out, steps, m, n, k, num_warps=warps)
    rows = [slice(16 * s, 16 * s + k) for s in range(steps)]
    np.testing.assert_array_equal(out, sum(x @ y[r, :k] @ y[:n, r].T for r in rows))


@jit
def turned_before(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """All iterations multiply a tile that is in registers, in four elements each."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] + k[None, :] * M)
    acc = tl.zeros((M, N), c.dtype.element_ty)
    for s in range(n):
        y = tl.load(b + (s * 16 + k)[:, None] + j[None, :] * 128)
        acc = tl.dot(x, (y.to(tl.float32) * 2).to(x.dtype), acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_operands_that_are_packed_for_each_product(
    device: Device, rng: np.random.Generator, dtype: Any
) -> None:
    """A product that goes on may read the registers that are packed for the next one."""
    (m, n, k), steps = (128, 16, 64), 4
    x, y = rng.integers(-4, 5, (k, m)), rng.integers(-2, 3, (128, 128))
    out = device.empty((m, n), np.int32 if dtype.kind == "i" else np.float32)
    a, b = device.array(x.astype(dtype)), device.array(y.astype(dtype))
    device.run(turned_before, (1,), a, b, out, steps, m, n, k)
    rows = [slice(16 * s, 16 * s + k) for s in range(steps)]
    np.testing.assert_array_equal(out, sum(2 * x.T @ y[:n, r].T for r in rows))
