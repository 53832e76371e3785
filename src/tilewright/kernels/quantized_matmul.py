"""Matmuls with weights of 8 or 4 bits, dequantized inside the loop."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, as_type, dtype_name, empty, is_on_cpu, strides
from tilewright.kernels.matmul import block_of, epilogue, multiply_on_gpu
from tilewright.kernels.matmul_arrays import MatmulArrays, check_epilogue, fits, grid_of
from tilewright.kernels.matmul_plan import CPU_BLOCKS, HOPPER, current_gpu, options_of_weights
from tilewright.runtime import cdiv, jit

HALF = 64
"""Distance of the two rows of 4-bit weights that share a byte."""


@jit
def quantized_matmul_kernel(
    a_ptr, w_ptr, scale_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_wk, stride_wn, stride_cm, stride_cn, slope, bias_ptr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr, BITS: tl.constexpr, GROUP_K: tl.constexpr, WRAP: tl.constexpr,
):  # fmt: skip
    """One block of c = activation(a @ (w * scale) + bias).

    BITS: of a weight; bytes of two 4-bit weights hold rows that are BLOCK_K apart, as from
    `pack_int4`. GROUP_K: rows that share scales, a multiple of BLOCK_K; 0: one scale per column;
    WRAP: as in `matmul_kernel`
    """
    rows, columns = block_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row_mask = rows[:, None] < M
    column_mask = columns[None, :] < N
    depth = tl.arange(0, BLOCK_K)
    dtype = a_ptr.dtype.element_ty
    a_rows, w_columns = rows % M if WRAP else rows, columns % N if WRAP else columns
    a_ptrs = a_ptr + a_rows[:, None].to(tl.int64) * stride_am + depth[None, :] * stride_ak
    w_ptrs = w_ptr + depth[:, None] * stride_wk + w_columns[None, :].to(tl.int64) * stride_wn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # a step reads BLOCK_K rows of w, and as many columns of a; twice as many for 4 bits
    for k in range(0, K, BLOCK_K * (8 // BITS)):
        there = depth[None, :] < K - k
        a = tl.load(a_ptrs, mask=there if WRAP else row_mask & there, other=0)
        # blocks of 4 bits are whole: rows past the end exist, and are multiplied by zeros of a
        there = depth[:, None] < (K - k if BITS == 8 else BLOCK_K)
        stored = tl.load(w_ptrs, mask=there if WRAP else there & column_mask, other=0)
        w = stored if BITS == 8 else stored & 15
        w = scaled(w, BITS, scale_ptr, k, columns, N, dtype, GROUP_K)
        acc = tl.dot(a, w, acc)
        if BITS == 4:
            a_ptrs += BLOCK_K * stride_ak
            there = depth[None, :] < K - k - BLOCK_K
            a = tl.load(a_ptrs, mask=there if WRAP else row_mask & there, other=0)
            w = scaled(
                stored >> 4, BITS, scale_ptr, min(k + BLOCK_K, K - 1), columns, N, dtype, GROUP_K
            )
            acc = tl.dot(a, w, acc)
        a_ptrs += BLOCK_K * stride_ak
        w_ptrs += BLOCK_K * stride_wk
    if GROUP_K == 0:
        acc *= tl.load(scale_ptr + columns, mask=columns < N, other=0)[None, :].to(tl.float32)
    acc = epilogue(acc, bias_ptr, columns, N, slope, c_ptr, ACTIVATION)
    c_ptrs = c_ptr + rows[:, None].to(tl.int64) * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=row_mask & column_mask)


@jit
def scaled(
    w, BITS: tl.constexpr, scale_ptr, k, columns, N, dtype, GROUP_K: tl.constexpr
):  # fmt: skip
    """Weights as `dtype`, times the scales of row k's group if there are groups."""
    w = w.to(dtype)
    if BITS == 4:
        w -= 8
    if GROUP_K > 0:
        scale = tl.load(scale_ptr + k // GROUP_K * N + columns, mask=columns < N, other=0)
        w = w * scale[None, :].to(dtype)
    return w


@jit
def convert_kernel(
    w_ptr, scale_ptr, out_ptr, N, K, stride_wk, stride_wn,
    BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr, BITS: tl.constexpr, GROUP_K: tl.constexpr,
):  # fmt: skip
    """out = w * scale, contiguous (K, N), from weights and scales as `quantized_matmul` takes
    them."""
    depth = tl.arange(0, BLOCK_K)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    stored_row = tl.program_id(0) * BLOCK_K
    row = stored_row * (8 // BITS)
    column_mask = columns[None, :] < N
    dtype = out_ptr.dtype.element_ty
    there = (depth[:, None] < (K - row if BITS == 8 else BLOCK_K)) & column_mask
    w_ptrs = w_ptr + (stored_row + depth)[:, None].to(tl.int64) * stride_wk
    stored = tl.load(w_ptrs + columns[None, :].to(tl.int64) * stride_wn, mask=there, other=0)
    out_ptrs = out_ptr + (row + depth)[:, None].to(tl.int64) * N + columns[None, :]
    for half in tl.static_range(8 // BITS):
        w = stored if BITS == 8 else stored >> 4 * half & 15
        first = row + half * BLOCK_K
        if GROUP_K > 0:
            w = scaled(w, BITS, scale_ptr, min(first, K - 1), columns, N, dtype, GROUP_K)
        else:
            w = scaled(w, BITS, scale_ptr, 0, columns, N, dtype, 1)
        tl.store(out_ptrs + half * BLOCK_K * N, w, mask=(depth[:, None] < K - first) & column_mask)


def quantized_matmul(
    a: Array, weights: Array, scales: Array, *, bits: int = 8, bias: Array | None = None,
    activation: str = "", slope: float = 0.01, out: Array | None = None,
) -> Array:  # fmt: skip
    """activation(a @ (weights * scales) + bias) for a (m, k) of fp16, bf16 or fp32.

    weights: for 8 bits int8 (k, n) with any strides; for 4 bits what `pack_int4` makes.
    scales: contiguous, (n,): one a column; or (groups, n): row i of the weights has those of row
        i // (k / groups), where k / groups is a multiple of 64. Weights are multiplied by them in
        the type of `a`; those of columns are applied to accumulators in fp32 instead where weights
        are converted inside the loop, as they are unless `a` has many rows.
    out: (m, n), of the type of `a` if not given. bias, activation and slope as for `matmul`.
    Raises ValueError for mismatched shapes and types.
    """
    (m, k), n = (int(e) for e in a.shape), int(weights.shape[1])
    _check(k, n, weights, scales, bits)
    result = empty(a, (m, n)) if out is None else out
    check_epilogue(result, (m, n), bias, activation)
    if 0 in (m, n):
        return result
    options: dict[str, int] | None = CPU_BLOCKS | {"BLOCK_K": HALF}
    wraps = False
    if not is_on_cpu(a):
        wraps = current_gpu().capability == HOPPER
        aligned = fits(a) and fits(weights.T)
        options = options_of_weights(m, n, k, int(a.itemsize), current_gpu(), aligned)
    if options is None:
        converted = _converted(a, weights, scales, bits, k, n)
        multiply_on_gpu(MatmulArrays(a, converted, result, bias, slope, activation))
        return result
    quantized_matmul_kernel[grid_of(m, n)](
        a, weights, scales, result, m, n, k, *strides(a), *strides(weights), *strides(result),
        slope, bias, **options, ACTIVATION=activation, BITS=bits, WRAP=wraps,
        GROUP_K=_rows_of_a_group(k, scales),
    )  # fmt: skip
    return result


def _converted(a: Array, weights: Array, scales: Array, bits: int, k: int, n: int) -> Array:
    """The weights times their scales, as elements of the type of `a`."""
    result = empty(a, (k, n))
    convert_kernel[cdiv(int(weights.shape[0]), HALF), cdiv(n, 64)](
        weights, scales, result, n, k, *strides(weights), BLOCK_K=HALF, BLOCK_N=64, BITS=bits,
        GROUP_K=_rows_of_a_group(k, scales),
    )  # fmt: skip
    return result


def _rows_of_a_group(k: int, scales: Array) -> int:
    """The rows that share scales; 0 for one scale per column."""
    return 0 if len(scales.shape) == 1 else k // int(scales.shape[0])


def _check(k: int, n: int, weights: Array, scales: Array, bits: int) -> None:
    """Raise ValueError as `quantized_matmul` documents."""
    wanted = {8: ("int8", k), 4: ("uint8", -(-k // (2 * HALF)) * HALF)}
    if bits not in wanted:
        raise ValueError(f"weights have 8 or 4 bits, not {bits}")
    found = dtype_name(weights), int(weights.shape[0])
    if found != wanted[bits]:
        raise ValueError(
            "{2} bits and k = {3}: weights are {0} with {1} rows,".format(*wanted[bits], bits, k)
            + " not {} with {}".format(*found)
        )
    shape = tuple(int(e) for e in scales.shape)
    groups = shape[0] if len(shape) == 2 else 1
    if shape[-1:] != (n,) or len(shape) > 2 or groups == 0:
        raise ValueError(f"scales have the shape {shape}, not ({n},) or (groups, {n})")
    if len(shape) == 2 and k % (groups * HALF):
        raise ValueError(f"{groups} groups of {k} rows: not of multiples of {HALF}")
    if strides(scales)[-1] != 1 or (len(shape) == 2 and strides(scales)[0] != n):
        raise ValueError("scales are not contiguous")


def pack_int4(weights: Array) -> Array:
    """uint8 (ceil(k / 128) * 64, n) from int8 (k, n) of -8 to 7.

    For each 128 rows, padded by zeros, byte row i holds row i in the lower bits and row i + 64 in
    the upper ones, both plus 8: a block of bytes unpacks to two whole blocks of rows.
    """
    k, n = (int(e) for e in weights.shape)
    blocks = -(-k // (2 * HALF))
    rows = empty(weights, (blocks * 2 * HALF, n), "uint8")
    rows[k:] = 8
    rows[:k] = as_type(weights + 8, "uint8")
    halves = rows.reshape(blocks, 2, HALF, n)
    return (halves[:, 0] | (halves[:, 1] << 4)).reshape(blocks * HALF, n)
