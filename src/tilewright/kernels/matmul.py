"""Matrix multiplication with a fused activation."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty, is_on_cpu, strides
from tilewright.runtime import Config, autotune, cdiv, jit


@jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, slope,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    LEAKY: tl.constexpr,
):  # fmt: skip
    """One block of c = activation(a @ b); blocks go in groups of GROUP_M rows for the L2."""
    pid = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * blocks_n) * GROUP_M
    height = min(blocks_m - first_m, GROUP_M)
    inside = pid % (GROUP_M * blocks_n)
    rows = (first_m + inside % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = inside // height * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + depth[None, :] * stride_ak
    b_ptrs = b_ptr + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (depth[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(depth[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if LEAKY:
        acc = tl.where(acc >= 0, acc, slope * acc)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


def _blocks(m: int, n: int, k: int, group: int) -> dict[str, int]:
    return {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group}


CPU_BLOCKS = _blocks(128, 256, 64, 1)
"""What keeps the operands of one step in the L2 of a core."""

GPU_BLOCKS = _blocks(128, 128, 32, 8)

GPU_OPTIONS = {"num_warps": 4, "num_stages": 3}


def gpu_launch_options(item_bytes: int) -> dict[str, int]:
    """Blocks and launch options; elements of 32 bits need twice the warps to stay in registers."""
    return {**GPU_BLOCKS, **GPU_OPTIONS, "num_warps": 8 if item_bytes > 2 else 4}


CONFIGS = [
    Config(_blocks(128, 256, 64, 8), num_warps=8, num_stages=3),
    Config(_blocks(128, 128, 64, 8), num_warps=8, num_stages=3),
    Config(_blocks(128, 128, 32, 8), num_warps=4, num_stages=4),
    Config(_blocks(64, 128, 32, 8), num_warps=4, num_stages=4),
    Config(_blocks(64, 64, 32, 8), num_warps=4, num_stages=4),
]

tuned_matmul_kernel = autotune(configs=CONFIGS, key=["M", "N", "K"])(matmul_kernel)


def matmul(
    a: Array, b: Array, slope: float | None = None, out: Array | None = None, tune: bool = False
) -> Array:
    """a @ b of matrices with any strides, summed in fp32; into `out` if given.

    slope: apply a leaky ReLU with this slope below zero; tune: choose the block sizes by timing.
    """
    (m, k), n = (int(e) for e in a.shape), int(b.shape[1])
    if int(b.shape[0]) != k:
        raise ValueError(f"shapes do not fit: {tuple(a.shape)} and {tuple(b.shape)}")
    result = empty(a, (m, n)) if out is None else out
    args = (a, b, result, m, n, k, *strides(a), *strides(b), *strides(result), slope or 0.0)
    if tune:
        tuned_matmul_kernel[_grid(m, n)](*args, LEAKY=slope is not None)
        return result
    options = CPU_BLOCKS if is_on_cpu(a) else gpu_launch_options(int(a.itemsize))
    matmul_kernel[_grid(m, n)](*args, **options, LEAKY=slope is not None)
    return result


def _grid(m: int, n: int):
    return lambda meta: (cdiv(m, meta["BLOCK_M"]) * cdiv(n, meta["BLOCK_N"]),)
