"""Loops whose products depend on each other and that are not attention, as users write them.

All sizes are multiples of the blocks. `triton_twins.twin` makes Triton's kernels of the same text.
"""

# ruff: noqa: N803 -- names of the tutorials

import tilewright.language as tl
from tilewright import jit


@jit
def layers_kernel(
    x_ptr, w_ptr, v_ptr, out_ptr, n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """silu(x @ w.T) @ v, n hidden units in turn; x: (rows, WIDTH), w, v: (n, WIDTH)."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, WIDTH)
    mine = rows[:, None] * WIDTH + inner[None, :]
    x = tl.load(x_ptr + mine)
    acc = tl.zeros((BLOCK_M, WIDTH), dtype=tl.float32)
    for j in range(0, n, BLOCK_N):
        offsets = (j + tl.arange(0, BLOCK_N))[:, None] * WIDTH + inner[None, :]
        w = tl.load(w_ptr + offsets)
        hidden = tl.dot(x, tl.trans(w))
        hidden = hidden / (1.0 + tl.exp(-hidden))
        v = tl.load(v_ptr + offsets)
        acc = tl.dot(hidden.to(v.dtype), v, acc)
    tl.store(out_ptr + mine, acc.to(out_ptr.dtype.element_ty))


@jit
def regression_kernel(
    x_ptr, w_ptr, v_ptr, out_ptr, n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Means of v's rows with the weights exp(-distance**2) of x's rows from w's."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, WIDTH)
    mine = rows[:, None] * WIDTH + inner[None, :]
    x = tl.load(x_ptr + mine)
    norm = tl.sum(x.to(tl.float32) * x.to(tl.float32), axis=1)
    acc = tl.zeros((BLOCK_M, WIDTH), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for j in range(0, n, BLOCK_N):
        offsets = (j + tl.arange(0, BLOCK_N))[:, None] * WIDTH + inner[None, :]
        w = tl.load(w_ptr + offsets)
        lengths = tl.sum(w.to(tl.float32) * w.to(tl.float32), axis=1)
        weights = tl.exp(2.0 * tl.dot(x, tl.trans(w)) - norm[:, None] - lengths[None, :])
        v = tl.load(v_ptr + offsets)
        acc = tl.dot(weights.to(v.dtype), v, acc)
        total += tl.sum(weights, axis=1)
    tl.store(out_ptr + mine, (acc / total[:, None]).to(out_ptr.dtype.element_ty))


@jit
def log_sum_kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """log(sum(exp(x @ w.T))) of each row; w: int8, with a scale for each of its n rows."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, WIDTH)
    x = tl.load(x_ptr + rows[:, None] * WIDTH + inner[None, :])
    top = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for j in range(0, n, BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        w = tl.load(w_ptr + columns[:, None] * WIDTH + inner[None, :])
        scores = tl.dot(x, tl.trans(w.to(x.dtype))) * tl.load(scale_ptr + columns)[None, :]
        higher = tl.maximum(top, tl.max(scores, axis=1))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(scores - higher[:, None]), axis=1)
        top = higher
    tl.store(out_ptr + rows, top + tl.log(total))


@jit
def linear_attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, length, decay,
    BLOCK_M: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Causal attention without softmax: a program has a sequence, in chunks of BLOCK_M rows.

    What is before a chunk is in a state of WIDTH x WIDTH, multiplied by decay from chunk to chunk.
    """
    inner = tl.arange(0, WIDTH)
    state = tl.zeros((WIDTH, WIDTH), dtype=tl.float32)
    first = tl.program_id(0) * length
    local = tl.arange(0, BLOCK_M)
    for i in range(0, length, BLOCK_M):
        offsets = (first + i + local)[:, None] * WIDTH + inner[None, :]
        q, k, v = tl.load(q_ptr + offsets), tl.load(k_ptr + offsets), tl.load(v_ptr + offsets)
        scores = tl.where(local[:, None] >= local[None, :], tl.dot(q, tl.trans(k)), 0.0)
        out = tl.dot(scores.to(v.dtype), v) + tl.dot(q, state.to(q.dtype))
        tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty))
        state = tl.dot(tl.trans(k), v, state * decay)
