"""Loops of products that are done as one product of matrices in memory, and those that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as tl
from tilewright.llvm import host_cpu


@tw.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """FORM: how indices stay inside, and what a loop does beside."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    row, column = rows, columns
    if FORM == "wraps":
        row, column = rows % M, columns % N
    a_ptrs = a_ptr + row[:, None] * am + depth[None, :] * ak
    b_ptrs = b_ptr + depth[:, None] * bk + column[None, :] * bn
    acc = tl.zeros((BM, BN), tl.int32 if a_ptr.dtype.element_ty.is_int() else tl.float32)
    for k in range(0, K, BK):
        inside = depth < K - k
        if FORM == "wraps":
            a = tl.load(a_ptrs, mask=inside[None, :], other=0)
            b = tl.load(b_ptrs, mask=inside[:, None], other=0)
        elif FORM == "squares":
            a = tl.load(a_ptr + row[:, None] * am + ((k + depth) ^ 1)[None, :] * ak,
                        mask=(rows < M)[:, None] & inside[None, :], other=0)  # fmt: skip
            b = tl.load(b_ptrs, mask=inside[:, None] & (columns < N)[None, :], other=0)
        elif FORM == "indices":
            at = k + depth
            a = tl.load(a_ptr + row[:, None] * am + at[None, :] * ak,
                        mask=(rows < M)[:, None] & (at < K)[None, :], other=0)  # fmt: skip
            b = tl.load(b_ptr + at[:, None] * bk + column[None, :] * bn,
                        mask=(K > at)[:, None] & (columns < N)[None, :], other=0)  # fmt: skip
        else:
            a = tl.load(a_ptrs, mask=(rows < M)[:, None] & inside[None, :], other=0)
            b = tl.load(b_ptrs, mask=inside[:, None] & (columns < N)[None, :], other=0)
        if FORM == "scaled":
            a = a * 2
        acc = tl.dot(a, b, acc)
        a_ptrs += BK * ak
        b_ptrs += BK * bk
    if FORM == "scaled":
        acc = acc // 2 if acc.dtype.is_int() else acc * 0.5
    here = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=here)


def multiplied(
    a: Any, b: Any, form: str, blocks: tuple[int, int, int] = (32, 32, 16)
) -> tuple[Any, str]:
    """The product, and the LLVM IR of its kernel."""
    (m, k), n = a.shape, b.shape[1]
    out = np.full((m, n), -1, np.int32 if a.dtype == np.int8 else np.float32)
    bm, bn, bk = blocks
    steps = [s // x.itemsize for x in (a, b) for s in x.strides]
    kernel = product_kernel[-(-m // bm), -(-n // bn)](
        a, b, out, m, n, k, *steps, BM=bm, BN=bn, BK=bk, FORM=form
    )
    return out, kernel.asm["llir"]


def operands(m: int, n: int, k: int, dtype: str, column_major: bool = False) -> tuple[Any, Any]:
    random = np.random.default_rng(m + n + k)
    a, b = (random.integers(-9, 10, shape).astype(dtype) for shape in ((m, k), (k, n)))
    return a, np.asfortranarray(b) if column_major else b


@pytest.mark.parametrize("column_major", [False, True])
@pytest.mark.parametrize("sizes", [(64, 32, 64), (33, 65, 40), (5, 3, 7), (64, 96, 700)])
@pytest.mark.parametrize("form", ["masks", "wraps", "indices"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_products_of_every_extent(
    dtype: str, form: str, sizes: tuple[int, int, int], column_major: bool
):
    a, b = operands(*sizes, dtype, column_major)
    out, text = multiplied(a, b, form, (32, 32, 64 if dtype == "int8" else 16))
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b)
    native = dtype == "float32" or "int8" in (*host_cpu().dots, *host_cpu().tile_dots)
    assert ("i64 %depth" in text) == (native and not host_cpu().is_arm64)


@pytest.mark.parametrize("form", ["scaled", "squares"])
def test_loops_that_compute_or_permute_are_left_alone(form: str):
    a, b = operands(64, 64, 64, "float32")
    out, text = multiplied(a, b, form)
    expected = a[:, np.arange(64) ^ 1] if form == "squares" else a
    np.testing.assert_array_equal(out, expected.astype(np.float64) @ b)
    assert "i64 %depth" not in text


@pytest.mark.parametrize("k", [0, 1, 15, 16, 17, 31, 32, 33])
def test_loops_of_no_iteration_of_one_and_of_two(k: int):
    a, b = operands(32, 32, k, "float32")
    out, _ = multiplied(a, b, "masks")
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b)


def test_matrices_with_strides_of_their_own():
    """Rows that lie backwards, elements that do not lie side by side, one row for all."""
    a, b = operands(64, 64, 64, "float32")
    wide = np.zeros((64, 128), np.float32)
    wide[:, ::2] = a
    for left in (a[::-1], wide[:, ::2], np.broadcast_to(a[3], (64, 64))):
        out, _ = multiplied(left, b, "masks")
        np.testing.assert_array_equal(out, left.astype(np.float64) @ b)


@pytest.mark.parametrize(("dtype", "from_memory"), [("float32", True), ("int8", False)])
def test_column_major_left_operands(dtype: str, from_memory: bool):
    """Bytes would have to be put side by side."""
    for sizes in ((64, 64, 64), (37, 50, 43)):
        a, b = operands(*sizes, dtype)
        out, text = multiplied(np.asfortranarray(a), b, "masks")
        np.testing.assert_array_equal(out, a.astype(np.float64) @ b)
        assert ("i64 %depth" in text) == (from_memory and not host_cpu().is_arm64)


@tw.jit
def edge_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    USE: tl.constexpr,
):  # fmt: skip
    """One tile; USE: what becomes of it. Of A columns below K are loaded, of B rows below L."""
    rows, columns, depth = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(max(K, L), BK)):
        at = k * BK + depth
        a = tl.load(a_ptr + (rows % M)[:, None] * K + at[None, :], mask=at[None, :] < K, other=0)
        b = tl.load(b_ptr + at[:, None] * N + columns[None, :],
                    mask=(at[:, None] < L) & (columns[None, :] < N), other=0)  # fmt: skip
        acc = tl.dot(a, b, acc)
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    to = c_ptr + rows[:, None] * N + columns[None, :]
    if USE == "stored twice":
        tl.store(to, acc, mask=mask & (rows < 3)[:, None])
        tl.store(to + M * N, acc * 2, mask=mask)
    elif USE == "summed":
        tl.store(c_ptr + columns, tl.sum(acc, 0), mask=columns < N)
    elif USE == "in a branch":
        if M > 1:
            last = M // (M - 1) + M - 2
            tl.store(to, acc, mask=mask & (rows <= last)[:, None])


@pytest.mark.parametrize("use", ["stored twice", "summed", "in a branch"])
@pytest.mark.parametrize("sizes", [(33, 29, 40), (1, 64, 64), (64, 3, 100), (5, 33, 17)])
def test_tiles_at_edges_that_are_used_as_a_whole_or_in_parts(use: str, sizes: tuple[int, int, int]):
    """As interpreted: a sum over rows has all of them, those that wrap around included."""
    m, n, k = sizes
    a, b = operands(m, n, k, "float32")
    outs = [np.full((2, m, n), -1, np.float32) for _ in range(2)]
    compiled: Any = edge_kernel
    kernels: list[Any] = [compiled, tw.jit(compiled.fn, interpret=True)]
    for out, kernel in zip(outs, kernels, strict=True):
        kernel[(1,)](a, b, out, m, n, k, k, BM=64, BN=64, BK=16, USE=use)
    np.testing.assert_array_equal(outs[0], outs[1])
    assert (outs[0] != -1).any() or m == 1


def test_infinities_beyond_the_end_of_the_other_side():
    """A zero that one mask gives is multiplied by what the other lets through."""
    m, n, k = 20, 24, 32
    a, b = operands(m, n, k, "float32")
    whole = np.zeros((k + 16, n), np.float32)
    whole[:k], whole[k:] = b, np.inf
    out = np.zeros((2, m, n), np.float32)
    for length in (k, k + 16, k - 3):
        edge_kernel[(1,)](a, whole, out, m, n, k, length, BM=32, BN=32, BK=16, USE="stored twice")
        if length > k:
            assert np.isnan(out[1]).all()
        else:
            np.testing.assert_array_equal(out[1], 2 * (a[:, :length] @ b[:length]))


@tw.jit
def sum_kernel(a_ptr, b_ptr, c_ptr, start, end, STEP: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    acc = tl.load(c_ptr + at[:, None] * SIZE + at[None, :])
    used = 0
    for k in range(start, end, STEP):
        a = tl.load(a_ptr + at[:, None] * 256 + (k + at)[None, :])
        b = tl.load(b_ptr + (k + at)[:, None] * SIZE + at[None, :])
        acc = tl.dot(a, b, acc)
        used += 3
    tl.store(c_ptr + at[:, None] * SIZE + at[None, :], acc + used)


@pytest.mark.parametrize(("start", "end"), [(0, 256), (16, 80), (40, 57), (64, 0)])
@pytest.mark.parametrize("step", [16, 8, 32])
def test_steps_that_leave_out_or_repeat_parts_of_k(start: int, end: int, step: int):
    """Only a step of the tile's length goes on where the last one ended; a count is carried on."""
    a, b = operands(16, 16, 256 + 32, "float32")
    a = np.ascontiguousarray(a[:, :256])
    out = np.ones((16, 16), np.float32)
    starts = [k for k in range(start, end, step) if k + 16 <= 256]
    expected = 1 + 3 * len(range(start, end, step)) + sum(
        (a[:, k : k + 16].astype(np.float64) @ b[k : k + 16] for k in starts), np.zeros((16, 16))
    )  # fmt: skip
    if len(starts) == len(range(start, end, step)):
        sum_kernel[(1,)](a, b, out, start, end, STEP=step, SIZE=16)
        np.testing.assert_array_equal(out, expected)
    else:
        assert step == 32 or end == 256


@tw.jit
def moving_bases_kernel(a_ptr, b_ptr, c_ptr, K, SIZE: tl.constexpr, BK: tl.constexpr):
    at, depth = tl.arange(0, SIZE), tl.arange(0, BK)
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for _ in range(0, K // BK):
        a = tl.load(a_ptr + at[:, None] * K + depth[None, :])
        b = tl.load(b_ptr + depth[:, None] * SIZE + at[None, :])
        acc = tl.dot(a, b, acc)
        a_ptr += BK
        b_ptr += BK * SIZE
    tl.store(c_ptr + at[:, None] * SIZE + at[None, :], acc)


@pytest.mark.parametrize("k", [16, 64, 608])
def test_pointers_that_a_loop_moves(k: int):
    a, b = operands(32, 32, k, "float32")
    out = np.zeros((32, 32), np.float32)
    kernel = moving_bases_kernel[(1,)](a, b, out, k, SIZE=32, BK=16)
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b)
    assert "i64 %depth" in kernel.asm["llir"] or host_cpu().is_arm64


@tw.jit
def table_kernel(table_ptr, c_ptr, K, SIZE: tl.constexpr, BK: tl.constexpr):
    """A block of a @ b, whose addresses stand in a table."""
    a_ptr = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    b_ptr = tl.load(table_ptr + 1).to(tl.pointer_type(tl.float32))
    rows, depth = tl.arange(0, SIZE), tl.arange(0, BK)
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + depth)[None, :])
        b = tl.load(b_ptr + (k + depth)[:, None] * SIZE + rows[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * SIZE + rows[None, :], acc)


def test_matrices_whose_addresses_are_loaded():
    a, b = operands(32, 32, 64, "float32")
    c = np.zeros((32, 32), np.float32)
    table = np.array([a.ctypes.data, b.ctypes.data])
    text = table_kernel[(1,)](table, c, 64, SIZE=32, BK=16).asm["llir"]
    np.testing.assert_array_equal(c, a @ b)
    assert ("i64 %depth" in text) == (not host_cpu().is_arm64)
    assert "gather" not in text
