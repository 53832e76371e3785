"""Products with matrices of which only some blocks are kept, forward and backward.

After stanford-futuredata/stk, `stk/backend/triton_kernels.py`: program ids that are looked up,
`swizzle2d` of both, a loop over sub-blocks between loaded bounds, indices loaded inside of it, one
tuned configuration, a dtype that the host passes, `mask=True`, arguments that nobody uses.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

with triton_alias():
    import triton
    import triton.language as tl


BLOCK = 32
TUNED = triton.autotune(
    configs=[
        triton.Config(
            {"BLOCK_M": BLOCK, "BLOCK_N": BLOCK, "BLOCK_K": 16, "BLOCK_SIZE": BLOCK},
            num_stages=4,
            num_warps=4,
        )
    ],
    key=["M", "N", "K"],
)


@TUNED
@triton.jit
def kept_kernel(
    A, B, C, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column, rows, columns,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, GROUP_M: tl.constexpr, ACC_TYPE: tl.constexpr,
):  # fmt: skip
    """Those blocks of A B that C keeps."""
    pid = tl.program_id(0)
    m = tl.load(rows + pid) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.load(columns + pid) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.max_contiguous(tl.multiple_of(m % M, BLOCK_M), BLOCK_M)
    n = tl.max_contiguous(tl.multiple_of(n % N, BLOCK_N), BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    A = A + (m[:, None] * a_row + k[None, :] * a_column)
    B = B + (k[:, None] * b_row + n[None, :] * b_column)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC_TYPE)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(A, mask=k[None, :] < K - step * BLOCK_K, other=0.0)
        b = tl.load(B, mask=k[:, None] < K - step * BLOCK_K, other=0.0)
        total += tl.dot(a, b)
        A += BLOCK_K * a_column
        B += BLOCK_K * b_row
    i, j = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    C = C + pid * BLOCK_SIZE * BLOCK_SIZE + (i[:, None] * c_row + j[None, :] * c_column)
    tl.store(C, total.to(C.dtype.element_ty), mask=True)


@TUNED
@triton.jit
def dense_kernel(
    A, B, C, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column,
    columns, offsets, places, TRANSPOSED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, GROUP_M: tl.constexpr, ACC_TYPE: tl.constexpr,
):  # fmt: skip
    """A B, where blocks of A are kept, and B is dense."""
    i, j = tl.program_id(0), tl.program_id(1)
    j, i = tl.swizzle2d(j, i, tl.num_programs(1), tl.num_programs(0), GROUP_M)
    first = tl.load(offsets + i)
    last = tl.load(offsets + i + 1)
    A += tl.arange(0, BLOCK_M)[:, None] * a_row + tl.arange(0, BLOCK_K)[None, :] * a_column
    n = j * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = n < N
    B += tl.arange(0, BLOCK_K)[:, None] * b_row + n[None, :] * b_column
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC_TYPE)
    parts = tl.cdiv(BLOCK_SIZE, BLOCK_K)
    for step in range(parts * (last - first)):
        part = step % parts
        block = first + step // parts
        if TRANSPOSED:
            a_ptr = A + tl.load(places + block) * BLOCK_SIZE * BLOCK_SIZE
        else:
            a_ptr = A + block * BLOCK_SIZE * BLOCK_SIZE
        b_ptr = B + tl.load(columns + block) * (BLOCK_SIZE * b_row)
        a = tl.load(a_ptr + part * BLOCK_K * a_column)
        b = tl.load(b_ptr + part * BLOCK_K * b_row, mask=inside[None, :], other=0.0)
        total += tl.dot(a, b)
    m = i * BLOCK_M + tl.arange(0, BLOCK_M)
    C = C + (m[:, None] * c_row + n[None, :] * c_column)
    tl.store(C, total.to(C.dtype.element_ty), mask=inside[None, :])


class Kept:
    """Which blocks of a matrix there are: a table of booleans, row by row and column by column."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.rows, self.columns = table.nonzero(as_tuple=True)
        self.offsets = self._offsets(table)
        # by columns: which row, and the place of the block among those by rows
        self.rows_by_column = table.T.nonzero(as_tuple=True)[1]
        self.offsets_by_column = self._offsets(table.T)
        order = torch.zeros(table.shape, dtype=torch.int64, device=table.device)
        order[table] = torch.arange(len(self.rows), device=table.device)
        self.places = order.T[table.T]

    @staticmethod
    def _offsets(table: Any) -> Any:
        ends = table.sum(1).cumsum(0)
        return torch.cat([torch.zeros_like(ends[:1]), ends])


def product(blocks: Any, kept: Kept, x: Any, transposed: bool) -> Any:
    rows, columns = (extent * BLOCK for extent in kept.table.shape)
    m, k = (columns, rows) if transposed else (rows, columns)
    out = torch.empty(m, x.shape[1], device=x.device, dtype=x.dtype)
    strides = blocks.stride()[1:][::-1] if transposed else blocks.stride()[1:]
    tables = (
        (kept.rows_by_column, kept.offsets_by_column)
        if transposed
        else (kept.columns, kept.offsets)
    )
    grid = lambda meta: (
        triton.cdiv(m, meta["BLOCK_M"]),
        triton.cdiv(x.shape[1], meta["BLOCK_N"]),
    )
    dense_kernel[grid](
        blocks, x, out, m, x.shape[1], k, *strides, *x.stride(), *out.stride(),
        *tables, kept.places, transposed, GROUP_M=2, ACC_TYPE=tl.float32,
    )  # fmt: skip
    return out


def kept_product(a: Any, b: Any, kept: Kept) -> Any:
    out = torch.empty(len(kept.rows), BLOCK, BLOCK, device=a.device, dtype=a.dtype)
    grid = lambda meta: (len(kept.rows),)
    kept_kernel[grid](
        a, b, out, a.shape[0], b.shape[1], a.shape[1], *a.stride(), *b.stride(),
        out.stride(1), out.stride(2), kept.rows, kept.columns, GROUP_M=2, ACC_TYPE=tl.float32,
    )  # fmt: skip
    return out


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, blocks: Any, x: Any, kept: Kept) -> Any:
        ctx.save_for_backward(blocks, x)
        ctx.kept = kept
        return product(blocks, kept, x, False)

    @staticmethod
    def backward(ctx: Any, d: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        blocks, x = ctx.saved_tensors
        return kept_product(d, x.T, ctx.kept), product(blocks, ctx.kept, d, True), None


def dense(blocks: Any, kept: Kept) -> Any:
    rows, columns = kept.table.shape
    full = torch.zeros(rows, columns, BLOCK, BLOCK, dtype=blocks.dtype, device=blocks.device)
    full = full.index_put((kept.rows, kept.columns), blocks)
    return full.transpose(1, 2).reshape(rows * BLOCK, columns * BLOCK)


def test_gradients_are_those_of_the_dense_product(device: str) -> None:
    table = torch.tensor([[1, 0, 1], [0, 0, 0]], dtype=torch.bool, device=device)
    kept = Kept(table)
    leaves = [
        torch.randn(2, BLOCK, BLOCK, device=device),
        torch.randn(3 * BLOCK, 37, device=device),
    ]
    wide = [leaf.double().requires_grad_() for leaf in leaves]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    d = torch.randn(2 * BLOCK, 37, device=device)
    expected = dense(wide[0], kept) @ wide[1]
    expected.backward(d.double())
    found = Product.apply(*leaves, kept)
    found.backward(d)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
    for mine, true in zip(leaves, wide, strict=True):
        torch.testing.assert_close(mine.grad.double(), true.grad, rtol=1e-5, atol=1e-4)
