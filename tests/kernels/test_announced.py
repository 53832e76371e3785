"""The shapes of kernel that the announcement and its followers show, in this project's words.

Bare names, block sizes as plain globals or locals, `arange` with one argument, `**META`, loops that
count down, pointers that are reassigned, `num_warps` at the launch.
"""

# ruff: noqa: B007 -- the loop variable of the announcement

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.kernels.announced_matmul import matmul
from tests.kernels.data import assert_near, assert_same
from tests.kernels.devices import Array, Device
from tilewright import arange, jit, load, program_id, store, testing

BLOCK = 512


@jit
def add(X, Y, Z, N):
    # one program adds one block
    pid = program_id(0)
    # where the block is
    idx = pid * BLOCK + arange(BLOCK)
    mask = idx < N
    # addresses are pointers plus offsets
    x = load(X + idx, mask=mask)
    y = load(Y + idx, mask=mask)
    store(Z + idx, x + y, mask=mask)


@jit
def add_with_literals(X, Y, Z, N):
    pid = program_id(0)
    idx = pid * 512 + arange(512)
    mask = idx < N
    x = load(X + idx, mask=mask)
    y = load(Y + idx, mask=mask)
    store(Z + idx, x + y, mask=mask)


@pytest.mark.parametrize("kernel", [add, add_with_literals], ids=["global", "literal"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("n", [1, 512, 1337])
def test_add(device: Device, rng: np.random.Generator, kernel: Any, dtype: str, n: int):
    x, y = (rng.normal(size=(2, n)) * 100).astype(dtype)
    z = device.empty(n, dtype)
    grid = (tilewright.cdiv(n, BLOCK),)
    device.run(kernel, grid, device.array(x), device.array(y), z, n)
    assert_same(z, x + y)


@jit
def softmax(Y, stride_ym, stride_yn, X, stride_xm, stride_xn, M, N):
    # one row for each program
    m = tl.program_id(0)
    # rows are shorter than this
    BLOCK_SIZE = 1024
    n = tl.arange(0, BLOCK_SIZE)
    # the parameter itself becomes the addresses
    X = X + m * stride_xm + n * stride_xn
    # what lies past the end must not count
    x = tl.load(X, mask=n < N, other=-float("inf"))
    # no overflow: the largest exponent is 0
    z = x - tl.max(x, axis=0)
    num = tl.exp(z)
    denom = tl.sum(num, axis=0)
    y = num / denom
    Y = Y + m * stride_ym + n * stride_yn
    tl.store(Y, y, mask=n < N)


def exact_softmax(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def steps(x: Array) -> tuple[int, ...]:
    return tuple(s // x.itemsize for s in x.strides)


@pytest.mark.parametrize("transposed", [False, True])
def test_softmax(device: Device, rng: np.random.Generator, transposed: bool):
    shape = device.pick((9, 31), (583, 931))
    x = rng.normal(size=shape).astype(np.float32)
    there = device.array(x.T).T if transposed else device.array(x)
    y = device.empty(shape, np.float32)
    device.run(softmax, (shape[0],), y, *steps(y), there, *steps(there), *shape)
    assert_near(y, exact_softmax(x), 32)


@jit
def fused_softmax_kernel(input_ptr, output_ptr, input_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(axis=0)
    row_start_ptr = input_ptr + row_idx * input_row_stride
    col_offsets = tl.arange(0, BLOCK_SIZE)
    row_input = tl.load(row_start_ptr + col_offsets, mask=col_offsets < n_cols, other=-float("inf"))
    numerator = tl.exp(row_input - tl.max(row_input, axis=0))
    denominator = tl.sum(numerator, axis=0)
    output_ptrs = output_ptr + row_idx * input_row_stride + col_offsets
    tl.store(output_ptrs, numerator / denominator, mask=col_offsets < n_cols)


@jit
def softmax_forward_kernel(
    output_ptr, stride_output_row, input_ptr, stride_input_row, num_cols, block_size: tl.constexpr
):
    row_index = tl.program_id(0)
    col_offsets = tl.arange(0, block_size)
    input_ptrs = input_ptr + row_index * stride_input_row + col_offsets
    mask = col_offsets < num_cols
    row = tl.load(input_ptrs, mask=mask, other=float("-inf"))
    safe_row = row - tl.max(row, axis=0)
    numerator = tl.exp(safe_row)
    sm_output = numerator / tl.sum(numerator, axis=0)
    tl.store(output_ptr + row_index * stride_output_row + col_offsets, sm_output, mask=mask)


def warps(block: int) -> int:
    return 16 if block >= 4096 else 8 if block >= 2048 else 4


@pytest.mark.parametrize("columns", [1, 64, 781])
def test_fused_softmax_with_warps(device: Device, rng: np.random.Generator, columns: int):
    x = rng.normal(size=(13, columns)).astype(np.float32)
    there, y = device.array(x), device.empty(x.shape, np.float32)
    block = tilewright.next_power_of_2(columns)
    device.run(
        fused_softmax_kernel, lambda meta: (13,), there, y, columns, columns, BLOCK_SIZE=block,
        num_warps=warps(block),
    )  # fmt: skip
    assert_near(y, exact_softmax(x), 32)
    device.run(
        softmax_forward_kernel, (13,), y, steps(y)[0], there, steps(there)[0], columns,
        block_size=block, num_warps=warps(block),
    )  # fmt: skip
    assert_near(y, exact_softmax(x), 32)


@jit
def leaky_matmul(
    A, B, C, M, N, K, alpha, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    **META,
):  # fmt: skip
    BLOCK_M, BLOCK_N, BLOCK_K = META["BLOCK_M"], META["BLOCK_N"], META["BLOCK_K"]
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    A = A + (rm[:, None] * stride_am + rk[None, :] * stride_ak)
    B = B + (rk[:, None] * stride_bk + rn[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(K, 0, -BLOCK_K):
        acc += tl.dot(tl.load(A), tl.load(B))
        A += BLOCK_K * stride_ak
        B += BLOCK_K * stride_bk
    acc = tl.where(acc >= 0, acc, alpha * acc)
    C = C + (rm[:, None] * stride_cm + rn[None, :] * stride_cn)
    tl.store(C, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


META = {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 16}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_matmul_with_meta(device: Device, rng: np.random.Generator, dtype: str):
    m, n, k = device.pick((32, 64, 48), (128, 256, 192))
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    c = device.empty((m, n), dtype)
    grid = (m // 16 * 2, n // 32 // 2)
    arrays = device.array(a), device.array(b), c
    device.run(matmul, grid, *arrays, m, n, k, *steps(a), *steps(b), *steps(c), **META, GROUP_M=2)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    tolerance = 1e-3 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(c, exact, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("size", [(32, 32, 16), (45, 50, 32)], ids=str)
def test_matmul_with_leaky_relu(device: Device, rng: np.random.Generator, size: Any):
    m, n, k = size
    rows, columns = -(-m // 16) * 16, -(-n // 32) * 32
    a = rng.normal(size=(rows, k)).astype(np.float32)
    b = rng.normal(size=(k, columns)).astype(np.float32)
    c = device.empty((m, n), np.float32)
    arrays = device.array(a), device.array(b), c
    device.run(
        leaky_matmul, (rows // 16, columns // 32), *arrays, m, n, k, 0.125, *steps(a), *steps(b),
        *steps(c), **META,
    )  # fmt: skip
    exact = (a.astype(np.float64) @ b)[:m, :n]
    np.testing.assert_allclose(c, np.where(exact >= 0, exact, exact / 8), rtol=1e-4, atol=1e-4)


# --- torch tensors and the host's tools -----------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_torch_tensors(interpret: bool):
    torch = pytest.importorskip("torch")
    run = [jit(interpret=interpret)(k.fn) for k in (add, softmax, fused_softmax_kernel, matmul)]
    x, y = torch.rand(2, 700)
    z = torch.full_like(x, float("nan"))
    run[0][(2,)](x, y, z, 700)
    assert torch.equal(z, x + y)
    x = torch.randn(7, 60)
    y = torch.full_like(x, float("nan"))
    run[1][(7,)](y, y.stride(0), y.stride(1), x, x.stride(0), x.stride(1), 7, 60)
    torch.testing.assert_close(y, torch.softmax(x, 1))
    y.fill_(float("nan"))
    run[2][(7,)](x, y, x.stride(0), 60, BLOCK_SIZE=64, num_warps=4)
    torch.testing.assert_close(y, torch.softmax(x, 1))
    a, b = torch.randn(32, 16, dtype=torch.bfloat16), torch.randn(16, 64, dtype=torch.bfloat16)
    c = torch.empty(32, 64)
    run[3][(4, 1)](a, b, c, 32, 64, 16, *a.stride(), *b.stride(), *c.stride(), **META, GROUP_M=2)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.torch
@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    "name", ["bool", "int8", "int64", "uint8", "float16", "bfloat16", "float32", "float64",
             "float8_e4m3fn", "float8_e5m2"],
)  # fmt: skip
def test_torch_dtypes(name: str, interpret: bool):
    torch = pytest.importorskip("torch")
    x = torch.randint(0, 2, (100,)).to(getattr(torch, name))
    out = torch.zeros(100, dtype=x.dtype)
    copy = jit(interpret=interpret)(double_copy.fn)
    copy[(1,)](x, out, 100, BLOCK=128)
    assert torch.equal(out.float(), x.float())


@jit
def double_copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.dev("matplotlib", "pandas")
def test_perf_report(device: Device, tmp_path: Path):
    """A benchmark as the tutorials write it: table, plot and data go to a folder."""

    @testing.perf_report(
        testing.Benchmark(
            x_names=["N"], x_vals=[128, 256], line_arg="provider", line_vals=["tile", "numpy"],
            line_names=["Tilewright", "NumPy"], styles=[("blue", "-"), ("green", "-")],
            ylabel="GB/s", plot_name="softmax-performance", args={"M": 4},
        )
    )  # fmt: skip
    def benchmark(M: int, N: int, provider: str):
        x, y = device.array(np.ones((M, N), np.float32)), device.empty((M, N), np.float32)

        def tile() -> None:
            device.run(fused_softmax_kernel, (M,), x, y, N, N, BLOCK_SIZE=N)

        run = tile if provider == "tile" else lambda: exact_softmax(x)
        times = testing.do_bench(run, quantiles=[0.5, 0.2, 0.8], warmup=1, rep=2)
        assert isinstance(times, list)
        ms, low, high = times
        assert 0 < low <= ms <= high
        return 2 * x.nbytes * 1e-6 / ms

    found = benchmark.run(
        show_plots=False, print_data=False, save_path=str(tmp_path), return_df=True
    )
    assert list(found.columns)[:3] == ["N", "Tilewright", "NumPy"]
    assert (found[["Tilewright", "NumPy"]] > 0).all().all()
    assert (tmp_path / "softmax-performance.png").exists()
    assert (tmp_path / "softmax-performance.csv").exists()
