"""The kernels of `tilewright.kernels`, at odd sizes, on every device and kind of array."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.data import BFLOAT16, Array, assert_near, assert_same, poison_like
from tests.kernels.devices import Device
from tilewright import cdiv, kernels, next_power_of_2
from tilewright.kernels.dropout import dropout_kernel
from tilewright.kernels.elementwise import add_kernel
from tilewright.kernels.matmul import matmul_kernel
from tilewright.kernels.matmul_arrays import PLAIN
from tilewright.kernels.matmul_plan import Gpu
from tilewright.kernels.norm import layer_norm_kernel
from tilewright.kernels.softmax import programs_of, softmax_ahead_kernel, softmax_kernel
from tilewright.kernels.transpose import transpose_kernel

ROUNDED_EXPONENTS = 32
"""Ulps: exp(x - max) of arguments around -30 that were rounded to fp32 before."""
APPROXIMATE_EXPONENTS = 48
"""The same by 2^(x log2 e), whose product around 43 is rounded too: half an ulp of it is 22 of the
result, that of the argument 16."""


def steps(x: Array) -> tuple[int, ...]:
    return tuple(s // x.itemsize for s in x.strides)


def exact_softmax(x: Array) -> Array:
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("n", [1, 100, 1024, 3001])
def test_add(device: Device, rng: np.random.Generator, n: int):
    x, y = rng.normal(size=(2, n)).astype(np.float32)
    out = device.empty(n, np.float32)
    device.run(add_kernel, (cdiv(n, 1024),), device.array(x), device.array(y), out, n, BLOCK=1024)
    assert_same(out, x + y)


@pytest.mark.parametrize("dtype", ["float32", "float16", BFLOAT16, "float64"], ids=str)
@pytest.mark.parametrize("columns", [1, 17, 256, 781])
def test_softmax(device: Device, rng: np.random.Generator, columns: int, dtype: Any):
    x = (rng.normal(size=(5, columns)) * 4).astype(dtype)
    if columns > 2:
        x[1, 1:] = -np.inf
        x[2] = 80
    out = device.empty(x.shape, dtype)
    block = next_power_of_2(columns)
    device.run(softmax_kernel, (5,), out, device.array(x), columns, columns, columns, BLOCK=block)
    exact = exact_softmax(x)
    if dtype == "float64":  # exp runs in fp32 there
        np.testing.assert_allclose(out, exact, rtol=4e-6)
    else:
        rounded = APPROXIMATE_EXPONENTS if device.is_approximate else ROUNDED_EXPONENTS
        assert_near(out, exact, rounded if dtype == "float32" else 1)


@pytest.mark.parametrize("programs", [1, 3, 8])
@pytest.mark.parametrize("columns", [17, 264])
def test_softmax_of_rows_that_are_loaded_ahead(
    device: Device, rng: np.random.Generator, columns: int, programs: int
):
    """Bit for bit what programs of one row each compute."""
    x = (rng.normal(size=(8, columns)) * 4).astype(np.float16)
    x[1, 1:] = -np.inf
    steps, block = (columns, columns), {"BLOCK": next_power_of_2(columns)}
    plain, source = device.empty(x.shape, np.float16), device.array(x)
    device.run(softmax_kernel, (8,), plain, source, *steps, columns, **block)
    out = device.empty(x.shape, np.float16)
    device.run(softmax_ahead_kernel, (programs,), out, source, *steps, 8, columns, **block)
    assert_same(out, plain)
    assert_near(out, exact_softmax(x), 1)


H200 = Gpu(90, 132)


@pytest.mark.parametrize(
    ("shape", "dtype", "gpu", "programs"),
    [
        ((4096, 32768), np.float16, H200, 132),
        ((4096, 20008), np.float16, H200, 132),
        ((100, 32768), np.float16, H200, 100),
        ((4096, 32767), np.float16, H200, 4096),
        ((4096, 16384), np.float16, H200, 4096),
        ((4096, 32768), np.float32, H200, 4096),
        ((4096, 32768), np.float16, Gpu(80, 108), 4096),
    ],
    ids=str,
)
def test_rows_are_loaded_ahead_where_two_fit(shape: Any, dtype: Any, gpu: Gpu, programs: int):
    item = np.dtype(dtype).itemsize
    x, out = (
        np.lib.stride_tricks.as_strided(np.zeros(64, dtype), shape, (shape[1] * item, item))
        for _ in range(2)
    )
    assert x.ctypes.data % 16 == out.ctypes.data % 16 == 0
    assert programs_of(x, out, gpu) == programs
    assert programs_of(x, x, gpu) == shape[0]


@pytest.mark.parametrize("shape", [(1, 1), (64, 64), (65, 130), (3, 200)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_transpose(device: Device, rng: np.random.Generator, shape: Any, dtype: str):
    x = rng.integers(0, 100, shape).astype(dtype)
    out = device.empty(shape[::-1], dtype)
    grid = (cdiv(shape[0], 64), cdiv(shape[1], 64))
    device.run(
        transpose_kernel, grid, device.array(x), out, *shape, shape[1], shape[0],
        BLOCK_M=64, BLOCK_N=64,
    )  # fmt: skip
    assert_same(out, x.T)


@pytest.mark.parametrize("leaky", [False, True])
@pytest.mark.parametrize("size", [(1, 1, 1), (32, 64, 32), (70, 50, 45)], ids=str)
def test_matmul(device: Device, rng: np.random.Generator, size: Any, leaky: bool):
    m, n, k = size
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    c = device.empty((m, n), np.float32)
    device.run(
        matmul_kernel, lambda meta: (cdiv(m, meta["BLOCK_M"]) * cdiv(n, meta["BLOCK_N"]),),
        device.array(a), device.array(b), c, m, n, k, *steps(a), *steps(b), *steps(c), 0.25,
        BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, GROUP_M=2,
        **PLAIN | {"ACTIVATION": "leaky_relu" if leaky else ""},
    )  # fmt: skip
    exact = a.astype(np.float64) @ b
    expected = np.where(exact >= 0, exact, exact / 4) if leaky else exact
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns", [1, 33, 128])
def test_layer_norm(device: Device, rng: np.random.Generator, columns: int):
    x = (rng.normal(size=(7, columns)) * 3 + 1).astype(np.float32)
    weight, bias = rng.normal(size=(2, columns)).astype(np.float32)
    out = device.empty(x.shape, np.float32)
    device.run(
        layer_norm_kernel, (7,), *map(device.array, (x, weight, bias)), out, columns, columns,
        columns, 1e-5, BLOCK=next_power_of_2(columns),
    )  # fmt: skip
    wide = x.astype(np.float64)
    centered = wide - wide.mean(1, keepdims=True)
    normal = centered / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, normal * weight + bias, rtol=1e-4, atol=1e-4)


def exact_attention(q: Array, k: Array, v: Array, causal: bool) -> Array:
    wide = [x.astype(np.float64) for x in (q, k, v)]
    scores = wide[0] @ wide[1].swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    return exact_softmax(scores) @ wide[2]


def test_dropout(device: Device, rng: np.random.Generator):
    x, out = rng.normal(size=2000).astype(np.float32), device.empty(2000, np.float32)
    device.run(dropout_kernel, (2,), device.array(x), out, 2000, 0.5, 7, BLOCK=1024)
    kept = out != 0
    assert 0.4 < kept.mean() < 0.6
    np.testing.assert_array_equal(out[kept], 2 * x[kept])
    # neighbours share a counter, and each has a number of its own
    words = kept.reshape(-1, 4)
    assert all(0.3 < (words[:, 0] != words[:, k]).mean() < 0.7 for k in (1, 2, 3))


# --- as functions over arrays ---------------------------------------------------------------------


def as_torch(x: Array) -> Any:
    torch = pytest.importorskip("torch")
    return torch.from_numpy(x)


NUMPY_AND_TORCH = [
    pytest.param(lambda x: x, id="numpy"),
    pytest.param(as_torch, id="torch", marks=pytest.mark.torch),
]


@pytest.mark.parametrize("kind", NUMPY_AND_TORCH)
def test_functions_over_arrays(rng: np.random.Generator, kind: Callable[[Array], Any]):
    x, y = rng.normal(size=(2, 37, 53)).astype(np.float32)
    assert_same(np.asarray(kernels.add(kind(x), kind(y))), x + y)
    assert_near(np.asarray(kernels.softmax(kind(x))), exact_softmax(x), ROUNDED_EXPONENTS)
    assert_same(np.asarray(kernels.transpose(kind(x))), x.T)
    product = np.asarray(kernels.matmul(kind(x), kind(y).T, slope=0.5))
    exact = x.astype(np.float64) @ y.T
    np.testing.assert_allclose(
        product, np.where(exact >= 0, exact, exact / 2), rtol=1e-4, atol=1e-4
    )
    ones, zeros = np.ones(53, np.float32), np.zeros(53, np.float32)
    normal = np.asarray(kernels.layer_norm(kind(x), kind(ones), kind(zeros)))
    np.testing.assert_allclose(normal.std(1), 1, rtol=1e-3)
    q, k, v = rng.normal(size=(3, 2, 37, 16)).astype(np.float32)
    found = np.asarray(kernels.attention(kind(q), kind(k), kind(v), causal=True))
    np.testing.assert_allclose(found, exact_attention(q, k, v, True), rtol=1e-4, atol=1e-5)
    dropped = np.asarray(kernels.dropout(kind(x), 0.5, 3))
    np.testing.assert_array_equal(dropped, np.asarray(kernels.dropout(kind(x), 0.5, 3)))


def test_results_go_to_out(rng: np.random.Generator):
    x = rng.normal(size=(37, 53)).astype(np.float32)
    out = poison_like(x)
    assert kernels.softmax(x, out=out) is out
    assert_near(out, exact_softmax(x), ROUNDED_EXPONENTS)


def test_in_place_softmax(rng: np.random.Generator):
    x = rng.normal(size=(37, 5000)).astype(np.float32)
    expected = exact_softmax(x)
    assert_near(kernels.softmax(x, out=x), expected, ROUNDED_EXPONENTS)


@pytest.mark.parametrize("size", [(200, 300, 100), (513, 255, 129)], ids=str)
def test_large_matmul(rng: np.random.Generator, size: Any):
    m, n, k = size
    for dtype in (np.float32, np.float16):
        a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        found = kernels.matmul(a, b)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        tolerance = 1e-4 if dtype == np.float32 else 2e-2
        np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)


def test_tuned_matmul(rng: np.random.Generator):
    a, b = rng.normal(size=(2, 64, 64)).astype(np.float32)
    found = kernels.matmul(a, b, tune=True)
    np.testing.assert_allclose(found, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
