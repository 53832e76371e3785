"""Layer norm, whose backward pass adds up rows of partial sums under spin locks.

After triton-lang/triton, `python/tutorials/05-layer-norm.py`: rows in pieces, locks by
`atomic_cas` and `atomic_xchg` with a counter beside them that says whether a buffer holds anything
yet, a barrier before the lock is given back, and a second kernel that adds up the buffers.
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


@triton.jit
def forward_kernel(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    mean = 0
    _sum = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, N, BLOCK_SIZE):
        at = start + tl.arange(0, BLOCK_SIZE)
        _sum += tl.load(X + at, mask=at < N, other=0.0).to(tl.float32)
    mean = tl.sum(_sum, axis=0) / N
    _squares = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, N, BLOCK_SIZE):
        at = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + at, mask=at < N, other=0.0).to(tl.float32)
        x = tl.where(at < N, x - mean, 0.0)
        _squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(_squares, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for start in range(0, N, BLOCK_SIZE):
        at = start + tl.arange(0, BLOCK_SIZE)
        inside = at < N
        w = tl.load(W + at, mask=inside)
        b = tl.load(B + at, mask=inside)
        x = tl.load(X + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(Y + at, (x - mean) * rstd * w + b, mask=inside)


@triton.jit
def backward_kernel(
    DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N,
    GROUPS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    group = row % GROUPS
    Lock += group
    Count = Lock + GROUPS
    DW = DW + group * N + cols
    DB = DB + group * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean = tl.load(Mean + row)
    rstd = tl.load(Rstd + row)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    weighted = tl.where(mask, w * dy, 0.0)
    along = tl.sum(normal * weighted, axis=0) / N
    level = tl.sum(weighted, axis=0) / N
    tl.store(DX + cols, (weighted - (normal * along + level)) * rstd, mask=mask)
    partial_dw = (dy * normal).to(w.dtype)
    partial_db = dy.to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        partial_dw += tl.load(DW, mask=mask)
        partial_db += tl.load(DB, mask=mask)
    tl.store(DW, partial_dw, mask=mask)
    tl.store(DB, partial_db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def buffers_kernel(DW, DB, FINAL_DW, FINAL_DB, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, M, BLOCK_M):
        rows = i + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offs = rows[:, None] * N + cols[None, :]
        dw += tl.load(DW + offs, mask=mask, other=0.0)
        db += tl.load(DB + offs, mask=mask, other=0.0)
    tl.store(FINAL_DW + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(FINAL_DB + cols, tl.sum(db, axis=0), mask=cols < N)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, b: Any, eps: float) -> Any:
        y = torch.empty_like(x)
        rows, columns = x.reshape(-1, x.shape[-1]).shape
        mean = torch.empty((rows,), dtype=torch.float32, device=x.device)
        rstd = torch.empty((rows,), dtype=torch.float32, device=x.device)
        flat = x.reshape(-1, columns)
        forward_kernel[(rows,)](
            flat, y, w, b, mean, rstd, flat.stride(0), columns, eps, BLOCK_SIZE=32, num_warps=2,
            num_ctas=1,
        )  # fmt: skip
        ctx.save_for_backward(x, w, b, mean, rstd)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, w, b, mean, rstd = ctx.saved_tensors
        columns, groups = w.shape[0], 3
        locks = torch.zeros(2 * groups, dtype=torch.int32, device=w.device)
        partial_dw = torch.zeros((groups, columns), dtype=x.dtype, device=w.device)
        partial_db = torch.zeros((groups, columns), dtype=x.dtype, device=w.device)
        dw, db, dx = torch.empty_like(w), torch.empty_like(b), torch.empty_like(dy)
        flat = x.reshape(-1, columns)
        backward_kernel[(flat.shape[0],)](
            dx, dy, partial_dw, partial_db, flat, w, mean, rstd, locks, flat.stride(0), columns,
            BLOCK_SIZE=triton.next_power_of_2(columns), GROUPS=groups, num_warps=4,
        )  # fmt: skip
        grid = lambda meta: (triton.cdiv(columns, meta["BLOCK_N"]),)
        buffers_kernel[grid](
            partial_dw, partial_db, dw, db, min(groups, flat.shape[0]), columns,
            BLOCK_M=16, BLOCK_N=32, num_ctas=1,
        )  # fmt: skip
        return dx, dw, db, None


@pytest.mark.parametrize(("rows", "columns"), [(2, 33), (11, 77)])
def test_gradients_are_those_of_layer_norm(device: str, rows: int, columns: int) -> None:
    leaves = [torch.randn(*shape, device=device) for shape in [(rows, columns)] + 2 * [(columns,)]]
    wide = [leaf.double().requires_grad_() for leaf in leaves]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    d = torch.randn(rows, columns, device=device)
    expected = torch.nn.functional.layer_norm(wide[0], (columns,), *wide[1:], 1e-5)
    found = LayerNorm.apply(*leaves, 1e-5)
    expected.backward(d.double())
    found.backward(d)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    for mine, true in zip(leaves, wide, strict=True):
        torch.testing.assert_close(mine.grad.double(), true.grad, rtol=1e-5, atol=1e-5)
