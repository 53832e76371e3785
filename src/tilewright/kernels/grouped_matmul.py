"""Grouped GEMM: matmuls of several shapes in one launch, as in mixtures of experts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import tilewright.language as tl
from tilewright.kernels.arrays import Array, address, dtype_name, empty, integers, is_on_cpu
from tilewright.kernels.matmul import block_of, epilogue, zero_accumulator
from tilewright.kernels.matmul_arrays import COPY_BYTES, checked_arrays
from tilewright.kernels.matmul_plan import CPU_BLOCKS, current_gpu, options_of_group
from tilewright.runtime import cdiv, jit, next_power_of_2


@jit
def grouped_matmul_kernel(
    table_ptr, count, a_ptr, b_ptr, c_ptr, slope,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    COUNT: tl.constexpr, UNITS: tl.constexpr, UNIT: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """One block of one of the matmuls c = activation(a @ b).

    table_ptr: for `count` matmuls, at most COUNT, a power of two: the numbers of their first
    programs; then the addresses of a, b and c; then M, N and K; then six strides. a_ptr, b_ptr,
    c_ptr: any of the arrays, for their types. UNITS: which strides are 1 everywhere; UNIT: the
    common divisor of addresses, sizes and the other strides, in elements, except for M where A has
    contiguous rows.
    """
    pid = tl.program_id(0)
    ids = tl.arange(0, COUNT)
    firsts = tl.load(table_ptr + ids, mask=ids < count, other=1 << 40)
    g = tl.sum((firsts <= pid).to(tl.int32), axis=0) - 1
    entry = table_ptr + g
    inside = pid - tl.load(entry).to(tl.int32)
    a_ptr = tl.load(entry + count).to(a_ptr.dtype)
    b_ptr = tl.load(entry + 2 * count).to(b_ptr.dtype)
    c_ptr = tl.load(entry + 3 * count).to(c_ptr.dtype)
    M = tl.load(entry + 4 * count).to(tl.int32)
    N = tl.load(entry + 5 * count).to(tl.int32)
    K = tl.load(entry + 6 * count).to(tl.int32)
    stride_am = 1 if UNITS[0] else tl.multiple_of(tl.load(entry + 7 * count), UNIT)
    stride_ak = 1 if UNITS[1] else tl.multiple_of(tl.load(entry + 8 * count), UNIT)
    stride_bk = 1 if UNITS[2] else tl.multiple_of(tl.load(entry + 9 * count), UNIT)
    stride_bn = 1 if UNITS[3] else tl.multiple_of(tl.load(entry + 10 * count), UNIT)
    stride_cm = 1 if UNITS[4] else tl.multiple_of(tl.load(entry + 11 * count), UNIT)
    stride_cn = 1 if UNITS[5] else tl.multiple_of(tl.load(entry + 12 * count), UNIT)
    if UNIT > 1:
        a_ptr, b_ptr = tl.multiple_of(a_ptr, 16), tl.multiple_of(b_ptr, 16)
        c_ptr = tl.multiple_of(c_ptr, 16)
        N, K = tl.multiple_of(N, UNIT), tl.multiple_of(K, UNIT)
        if not UNITS[1]:
            M = tl.multiple_of(M, UNIT)
    rows, columns = block_of(inside, M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row_mask = rows[:, None] < M
    column_mask = columns[None, :] < N
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + depth[None, :] * stride_ak
    b_ptrs = b_ptr + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = zero_accumulator(a_ptr, BLOCK_M, BLOCK_N)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=row_mask & (depth[None, :] < K - k), other=0)
        b = tl.load(b_ptrs, mask=(depth[:, None] < K - k) & column_mask, other=0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    acc = epilogue(acc, None, columns, N, slope, c_ptr, ACTIVATION)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=row_mask & column_mask)


def grouped_matmul(
    a: Sequence[Array], b: Sequence[Array], out: Sequence[Array] | None = None,
    *, activation: str = "", slope: float = 0.01,
) -> list[Array]:  # fmt: skip
    """activation(a[i] @ b[i]) for each i: matrices (m_i, k_i) and (k_i, n_i), in one launch.

    All of `a` have one element type, and so have `b`, and `out`; sizes and strides are free, and
    fast where all matrices of a list are contiguous along the same axis and every row starts at a
    multiple of 16 bytes. Element types and activations as for `matmul`; slope: of leaky_relu.
    Raises ValueError for lists of different lengths, mismatched shapes, mixed element types.
    """
    if len(a) != len(b) or (out is not None and len(out) != len(a)):
        raise ValueError(f"lists of {len(a)} and {len(b)} matrices")
    given = [None] * len(a) if out is None else out
    matmuls = [
        checked_arrays(x, y, c, None, activation, None) for x, y, c in zip(a, b, given, strict=True)
    ]
    results = [arrays.c for arrays in matmuls]
    _check_types(a, b, results)
    full = [p for p in matmuls if 0 not in p.c.shape]
    if full:
        # the longest ones start first
        full.sort(key=lambda p: p.sizes[2], reverse=True)
        _launch([(p.a, p.b, p.c) for p in full], [p.numbers for p in full], slope, activation)
    return results


def _check_types(*lists: Sequence[Array]) -> None:
    for arrays in lists:
        names = {dtype_name(x) for x in arrays}
        if len(names) > 1:
            raise ValueError(f"matrices of different element types: {', '.join(sorted(names))}")


def _launch(
    arrays: list[tuple[Array, Array, Array]], numbers: list[tuple[int, ...]], slope: float,
    activation: str,
) -> None:  # fmt: skip
    first = arrays[0]
    item = int(first[0].itemsize)
    addresses = [tuple(address(x) for x in three) for three in arrays]
    units = tuple(all(row[3 + i] == 1 for row in numbers) for i in range(6))
    unit = _unit_of(addresses, numbers, units, COPY_BYTES // item)
    if is_on_cpu(first[0]):
        options = CPU_BLOCKS
    else:
        sizes = tuple((m, n, k) for m, n, k, *_ in numbers)
        options = options_of_group(sizes, item, current_gpu(), unit > 1)
    blocks = [
        cdiv(row[0], options["BLOCK_M"]) * cdiv(row[1], options["BLOCK_N"]) for row in numbers
    ]
    starts = [sum(blocks[:i]) for i in range(len(blocks))]
    columns = zip(*[(s, *x, *row) for s, x, row in zip(starts, addresses, numbers, strict=True)],
                  strict=True)  # fmt: skip
    table = _tables(first[0])(tuple(number for column in columns for number in column))
    grouped_matmul_kernel[(sum(blocks),)](
        table, len(numbers), *first, slope, **options, COUNT=next_power_of_2(len(numbers)),
        UNITS=units, UNIT=unit, ACTIVATION=activation,
    )  # fmt: skip


def _unit_of(
    addresses: list[tuple[int, ...]], numbers: list[tuple[int, ...]], units: tuple[bool, ...],
    unit: int,
) -> int:  # fmt: skip
    """`unit` if all that the kernel assumes to be a multiple of it is one, else 1."""
    m_counts = not units[1]
    for row in numbers:
        sizes = row[0 if m_counts else 1 : 3]
        steps = (s for s, one in zip(row[3:], units, strict=True) if not one)
        if any(number % unit for number in (*sizes, *steps)):
            return 1
    return 1 if any(x % COPY_BYTES for three in addresses for x in three) else unit


class _Tables:
    """A cache of tables on one device, by content: copying one there takes longer than a launch.

    Arrays may be freed and their addresses reused: a table with the addresses of a call is valid
    for any arrays there.
    """

    def __init__(self, like: Array) -> None:
        nothing = empty(like, (0,))  # the array itself may be large
        self._of = lru_cache(64)(lambda numbers: integers(nothing, numbers))

    def __call__(self, numbers: tuple[int, ...]) -> Any:
        return self._of(numbers)


_BY_DEVICE: dict[tuple[str, str], _Tables] = {}


def _tables(like: Array) -> _Tables:
    """The tables of an array's library and device."""
    key = type(like).__module__, str(getattr(like, "device", ""))
    if key not in _BY_DEVICE:
        _BY_DEVICE[key] = _Tables(like)
    return _BY_DEVICE[key]
