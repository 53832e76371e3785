"""Loops whose second product multiplies what was computed of the first one, without attention."""

# ruff: noqa: N803 -- names of the tutorials

import tilewright.language as tl
from tilewright import jit


@jit
def gated_layers(
    x_ptr, w_ptr, v_ptr, out_ptr, hidden, BN: tl.constexpr, STAGES: tl.constexpr,
    BM: tl.constexpr = tl.constexpr(64),  # noqa: B008
):  # fmt: skip
    """relu(x @ w.T) @ v, blocks of the hidden layer in turn; x: BM x 32 for each program, w, v:
    hidden x 32."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner, columns = tl.arange(0, 32), tl.arange(0, BN)
    x = tl.load(x_ptr + rows[:, None] * 32 + inner[None, :])
    acc = tl.zeros((BM, 32), dtype=tl.float32)
    for start in tl.range(0, hidden, BN, num_stages=STAGES):
        offsets = (start + columns[:, None]) * 32 + inner[None, :]
        there = (start + columns[:, None]) < hidden
        w = tl.load(w_ptr + offsets, mask=there, other=0.0)
        gate = tl.maximum(tl.dot(x, tl.trans(w)), 0.0)
        v = tl.load(v_ptr + offsets, mask=there, other=0.0)
        acc = tl.dot(gate.to(tl.float16), v, acc)
    tl.store(out_ptr + rows[:, None] * 32 + inner[None, :], acc)


@jit
def added_products(x_ptr, y_ptr, out_ptr, rows, BM: tl.constexpr, STAGES: tl.constexpr):
    """out += (x @ y.T).T @ x, a program for 128 rows of x; x, y, out: rows of 64 numbers."""
    mine, inner = tl.program_id(0) * 128 + tl.arange(0, 128), tl.arange(0, 64)
    x = tl.load(x_ptr + mine[:, None] * 64 + inner[None, :])
    for start in tl.range(0, rows, BM, num_stages=STAGES):
        others = start + tl.arange(0, BM)
        offsets, there = others[:, None] * 64 + inner[None, :], others[:, None] < rows
        y = tl.load(y_ptr + offsets, mask=there, other=0.0)
        scores = tl.dot(x, tl.trans(y)).to(tl.float16)
        part = tl.dot(tl.trans(scores), x)
        tl.atomic_add(out_ptr + offsets, part, mask=there, sem="relaxed")


@jit
def kernel_regression(x_ptr, y_ptr, v_ptr, out_ptr, n, BN: tl.constexpr, STAGES: tl.constexpr):
    """Sums of values weighted by exp(-distance**2), each block's scaled by 0.5 for each later one.

    x: 64 points, y: n points, of which the last block may lack some; v: n values; of 32 numbers
    """
    rows, inner, columns = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, BN)
    x = tl.load(x_ptr + rows[:, None] * 32 + inner[None, :])
    norm = tl.sum(x.to(tl.float32) * x.to(tl.float32), axis=1)
    acc = tl.zeros((64, 32), dtype=tl.float32)
    total = tl.zeros((64,), dtype=tl.float32)
    for start in tl.range(0, n, BN, num_stages=STAGES):
        there = start + columns < n
        offsets = (start + columns[:, None]) * 32 + inner[None, :]
        y = tl.load(y_ptr + offsets, mask=there[:, None], other=0.0)
        # Of y and of v, each from its own load: the products read them in shared memory.
        lengths = tl.sum(y.to(tl.float32) * y.to(tl.float32), axis=1)
        squared = norm[:, None] + lengths[None, :] - 2.0 * tl.dot(x, tl.trans(y))
        weights = tl.where(start + columns[None, :] < n, tl.exp(-squared), 0.0)
        v = tl.load(v_ptr + offsets, mask=there[:, None], other=0.0)
        acc = tl.dot(weights.to(tl.float16), v, acc * 0.5)
        total = total * 0.5 + tl.sum(weights, axis=1)
    tl.store(out_ptr + rows[:, None] * 32 + inner[None, :], acc / total[:, None])
