"""Matrix multiplication with a fused bias and activation."""

from __future__ import annotations

from typing import Any

import tilewright.language as tl
from tilewright.kernels.arrays import Array, dtype_name, empty, is_on_cpu, strides
from tilewright.kernels.matmul_arrays import (
    MatmulArrays,
    checked_arrays,
    is_aligned,
    packed,
    units_of,
)
from tilewright.kernels.matmul_plan import (
    HOPPER,
    Plan,
    blocks_for_threads,
    current_gpu,
    is_worth_threads,
    plan_of,
    threads_for,
)
from tilewright.runtime import Config, autotune, cdiv, jit
from tilewright.support import settings


@jit
def activate(x, slope, ACTIVATION: tl.constexpr):
    """Apply an activation to accumulators; leaky_relu has `slope` below zero."""
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0)
    elif ACTIVATION == "leaky_relu":
        x = tl.where(x >= 0, x, slope * x)
    elif ACTIVATION == "gelu_tanh":
        # (1 + tanh(z)) / 2 is the sigmoid of 2 z
        x = x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    elif ACTIVATION == "silu":
        x = x / (1.0 + tl.exp(-x))
    return x


@jit
def zero_accumulator(a_ptr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A zero accumulator for a's elements: int32 for integers, else fp32 or fp64."""
    integer: tl.constexpr = a_ptr.dtype.element_ty.is_int()
    double: tl.constexpr = a_ptr.dtype.element_ty.is_fp64()
    summed = tl.int32 if integer else tl.float64 if double else tl.float32
    return tl.zeros((BLOCK_M, BLOCK_N), dtype=summed)


@jit
def epilogue(acc, bias_ptr, columns, N, slope, c_ptr, ACTIVATION: tl.constexpr):
    """activation(acc + bias) in c's type; integers stay integers if c is one."""
    dtype = c_ptr.dtype.element_ty
    if acc.dtype.is_int() and not dtype.is_int():
        acc = acc.to(tl.float32)
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + columns, mask=columns < N, other=0)[None, :].to(acc.dtype)
    return activate(acc, slope, ACTIVATION).to(dtype)


@jit
def block_of(
    pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Rows and columns of a program's block; groups of GROUP_M blocks share columns of b."""
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * blocks_n) * GROUP_M
    height = min(blocks_m - first_m, GROUP_M)
    inside = pid % (GROUP_M * blocks_n)
    rows = (first_m + inside % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = inside // height * BLOCK_N + tl.arange(0, BLOCK_N)
    return rows, columns


@jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, slope, bias_ptr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr, PARTS: tl.constexpr, UNITS: tl.constexpr, WIDE: tl.constexpr,
    WRAP: tl.constexpr,
):  # fmt: skip
    """One block of c = activation(a @ b + bias); blocks run in groups of GROUP_M for the L2 cache.

    bias_ptr: N elements, or None. PARTS: c is an array of so many partial results, over consecutive
    parts of K (split-K); UNITS: divisors of M, N, K and the strides; WIDE: offsets may exceed 31
    bits; WRAP: rows and columns beyond the last wrap to the first, without a mask
    """
    if UNITS is not None:
        M = tl.multiple_of(M, UNITS[0])
        N = tl.multiple_of(N, UNITS[1])
        K = tl.multiple_of(K, UNITS[2])
        stride_am = tl.multiple_of(stride_am, UNITS[3])
        stride_ak = tl.multiple_of(stride_ak, UNITS[4])
        stride_bk = tl.multiple_of(stride_bk, UNITS[5])
        stride_bn = tl.multiple_of(stride_bn, UNITS[6])
        stride_cm = tl.multiple_of(stride_cm, UNITS[7])
        stride_cn = tl.multiple_of(stride_cn, UNITS[8])
    rows, columns = block_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row_mask = rows[:, None] < M
    column_mask = columns[None, :] < N
    a_rows, b_columns = rows % M if WRAP else rows, columns % N if WRAP else columns
    if WIDE:
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
        a_rows, b_columns = a_rows.to(tl.int64), b_columns.to(tl.int64)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + a_rows[:, None] * stride_am + depth[None, :] * stride_ak
    b_ptrs = b_ptr + depth[:, None] * stride_bk + b_columns[None, :] * stride_bn
    if PARTS > 1:
        # whole blocks for all parts but the last, which may be shorter
        length = tl.cdiv(tl.cdiv(K, BLOCK_K), PARTS) * BLOCK_K
        start = tl.program_id(1) * length
        a_ptrs += start.to(tl.int64) * stride_ak
        b_ptrs += start.to(tl.int64) * stride_bk
        c_ptr += tl.program_id(1).to(tl.int64) * M * N
        K = min(K - start, length)
    acc = zero_accumulator(a_ptr, BLOCK_M, BLOCK_N)
    for k in range(0, K, BLOCK_K):
        a_mask, b_mask = depth[None, :] < K - k, depth[:, None] < K - k
        a = tl.load(a_ptrs, mask=a_mask if WRAP else row_mask & a_mask, other=0)
        b = tl.load(b_ptrs, mask=b_mask if WRAP else b_mask & column_mask, other=0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    acc = epilogue(acc, bias_ptr, columns, N, slope, c_ptr, ACTIVATION)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=row_mask & column_mask)


@jit
def sum_parts_kernel(
    parts_ptr, c_ptr, M, N, stride_cm, stride_cn, slope, bias_ptr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, PARTS: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """c = activation(sum of the parts + bias): the reduction of split-K.

    Parts are added in order, so that results are deterministic.
    """
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    parts_ptr += rows[:, None].to(tl.int64) * N + columns[None, :]
    acc = tl.load(parts_ptr, mask=mask, other=0)
    for _ in tl.static_range(1, PARTS):
        parts_ptr += tl.cast(M, tl.int64) * N
        acc += tl.load(parts_ptr, mask=mask, other=0)
    acc = epilogue(acc, bias_ptr, columns, N, slope, c_ptr, ACTIVATION)
    c_ptrs = c_ptr + rows[:, None].to(tl.int64) * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=mask)


CONFIGS = [
    Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}, num_warps=w, num_stages=s)
    for m, n, k, w, s in (
        (128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 32, 4, 4), (64, 128, 32, 4, 4),
        (64, 64, 32, 4, 4),
    )
]  # fmt: skip

tuned_matmul_kernel = autotune(configs=CONFIGS, key=["M", "N", "K"])(matmul_kernel)


# --- over arrays ----------------------------------------------------------------------------------


def matmul(
    a: Array, b: Array, slope: float | None = None, out: Array | None = None, tune: bool = False,
    *, bias: Array | None = None, activation: str = "",
) -> Array:  # fmt: skip
    """activation(a @ b + bias) of matrices (m, k) and (k, n) with any strides.

    fp16, bf16, fp32 (as tf32 on GPUs) and fp8 accumulate in fp32; fp64 in fp64; int8 and uint8 in
    int32.

    bias: n numbers, added to each row, on the same device. activation: one of ACTIVATIONS.
    slope: the activation is a leaky ReLU with this slope below zero.
    out: (m, n), of any element type; if not given, an array of the operands' type, of int32 for
        8-bit integers and of fp32 for fp8.
    tune: choose the block sizes by timing.
    Raises ValueError for mismatched shapes, an unknown activation, and one other than relu for an
    integer result. Results are deterministic: the order of additions depends on the shapes only.
    """
    findable = out is not None and not tune
    layouts = _prepared.launch(a, b, out, bias, activation, slope) if findable else b""
    if layouts is None:
        return out
    arrays = checked_arrays(a, b, out, bias, activation, slope)
    result = arrays.c
    if 0 in result.shape:
        return result
    if tune:
        tuned_matmul_kernel[arrays.grid](*arrays.arguments, **arrays.constants)
    elif is_on_cpu(a):
        multiply_on_cpu(arrays, layouts, activation, slope)
    else:
        multiply_on_gpu(arrays)
    return result


_prepared = matmul_kernel.prepared_launches("a_ptr", "b_ptr", "c_ptr", "bias_ptr", "", "")
"""Prepared launches, without which planning takes half the time of 64^3."""


def multiply_on_cpu(
    arrays: MatmulArrays, layouts: bytes, activation: str, slope: float | None
) -> None:
    """Launch in blocks for the cores, and prepare the launch for equal layouts of arrays.

    layouts: the key of the arrays in `_prepared`; activation, slope: as passed by the user
    """
    sizes, bias = arrays.sizes, arrays.bias
    blocks = blocks_for_threads(*sizes, int(arrays.a.itemsize), threads_for(*sizes))
    words = {**arrays.constants, **blocks}
    # by position, which is faster than by name
    constants = (words[name] for name in matmul_kernel.arg_names[len(arrays.arguments) :])
    arguments = *arrays.arguments, *constants
    grid = arrays.grid(blocks)
    matmul_kernel[grid](*arguments)
    objects = arrays.a, arrays.b, arrays.c, bias, activation, slope
    # the query takes half a microsecond, so small matmuls on one thread omit it
    threads = [(_threads, None, settings().cpu.threads)] if is_worth_threads(*sizes) else []
    _prepared.add(layouts, objects, grid, arguments, threads)


def _threads(_: object) -> int:
    return settings().cpu.threads


def multiply_on_gpu(arrays: MatmulArrays) -> None:
    """Launch as planned: operands are packed before and parts reduced after, where that is
    faster."""
    gpu = current_gpu()
    m, n, k = arrays.sizes
    if gpu.capability == HOPPER:
        arrays = packed(arrays)
    plan = plan_of(m, n, k, int(arrays.a.itemsize), gpu, is_aligned(arrays))
    # a mask for columns would slow down the largest matmuls
    run_plan(arrays, plan, {"UNITS": units_of(arrays), "WRAP": gpu.capability == HOPPER})


def run_plan(arrays: MatmulArrays, plan: Plan, known: dict[str, Any]) -> None:
    """Run the launches of a matmul; known: further constants of `matmul_kernel`."""
    words = {**arrays.constants, **plan.options, **known}
    if plan.parts == 1:
        matmul_kernel[arrays.grid](*arrays.arguments, **words)
        return
    m, n, _ = arrays.sizes
    accumulator = "int32" if "int" in dtype_name(arrays.a) else "float32"  # fp64 has no parts
    parts = empty(arrays.a, (plan.parts * m, n), accumulator)
    partial = MatmulArrays(arrays.a, arrays.b, parts[:m], None, 0.0, "")
    words |= {"bias_ptr": None, "ACTIVATION": "", "PARTS": plan.parts}
    matmul_kernel[partial.grid](*partial.arguments, **words)
    block = {"BLOCK_M": 8, "BLOCK_N": 128}
    sum_parts_kernel[cdiv(m, 8), cdiv(n, 128)](
        parts, arrays.c, m, n, *strides(arrays.c), arrays.slope, arrays.bias, **block,
        PARTS=plan.parts, ACTIVATION=arrays.activation,
    )  # fmt: skip
