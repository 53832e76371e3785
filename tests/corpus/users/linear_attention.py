"""Linear attention by chunks, with and without gates, and the chunk scan of state-space models."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def linear_attention(q, k, v, out, t, s, T: tl.constexpr, D: tl.constexpr):
    i, d = tl.arange(0, T), tl.arange(0, D)
    h = tl.zeros([D, D], tl.float32)
    base = tl.program_id(0) * t * s
    for p in range(0, t, T):
        o = base + (p + i)[:, None] * s + d[None, :]
        a, b, c = tl.load(q + o), tl.load(k + o), tl.load(v + o)
        z = tl.where(i[:, None] >= i[None, :], tl.dot(a, tl.trans(b)), 0.0)
        y = tl.dot(z.to(c.dtype), c) + tl.dot(a, h.to(c.dtype))
        tl.store(out + o, y.to(out.dtype.element_ty))
        h += tl.dot(tl.trans(b), c)


@jit
def decayed_attention(q, k, v, g, out, t, s, T: tl.constexpr, D: tl.constexpr):
    """A decay for each step of a head, as in the state update of state-space models."""
    i, d = tl.arange(0, T), tl.arange(0, D)
    h = tl.zeros([D, D], tl.float32)
    base = tl.program_id(0) * t * s
    for p in range(0, t, T):
        o = base + (p + i)[:, None] * s + d[None, :]
        a, b, c = tl.load(q + o), tl.load(k + o), tl.load(v + o)
        w = tl.cumsum(tl.load(g + tl.program_id(0) * t + p + i), 0)
        last = tl.sum(tl.where(i == T - 1, w, 0.0), 0)
        z = tl.dot(a, tl.trans(b)) * tl.exp(w[:, None] - w[None, :])
        z = tl.where(i[:, None] >= i[None, :], z, 0.0)
        y = tl.dot(z.to(c.dtype), c) + tl.dot(a, h.to(c.dtype)) * tl.exp(w)[:, None]
        tl.store(out + o, y.to(out.dtype.element_ty))
        b = (b * tl.exp(last - w)[:, None]).to(c.dtype)
        h = h * tl.exp(last) + tl.dot(tl.trans(b), c)


@jit
def gated_chunks(q, k, v, g, out, t, s, T: tl.constexpr, D: tl.constexpr):
    """A gate for each element of keys."""
    i, d = tl.arange(0, T), tl.arange(0, D)
    h = tl.zeros([D, D], tl.float32)
    for p in range(0, t, T):
        o = (p + i)[:, None] * s + d[None, :]
        a, b, c = tl.load(q + o), tl.load(k + o), tl.load(v + o)
        w = tl.cumsum(tl.load(g + o).to(tl.float32), 0)
        last = tl.sum(tl.where(i[:, None] == T - 1, w, 0.0), 0)
        a = (a * tl.exp(w)).to(c.dtype)
        z = tl.dot(a, tl.trans((b * tl.exp(-w)).to(c.dtype)))
        z = tl.where(i[:, None] >= i[None, :], z, 0.0)
        tl.store(out + o, tl.dot(z.to(c.dtype), c) + tl.dot(a, h.to(c.dtype)))
        u = (b * tl.exp(last[None, :] - w)).to(c.dtype)
        h = h * tl.exp(last)[:, None] + tl.dot(tl.trans(u), c)


@jit
def chunk_scan(
    scores, x, decay, step, c, state, out, CHUNK, HEAD, STATE,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """out = (scores * exp(decay[i] - decay[k]) * step[k], causal) @ x + exp(decay) * c @ state."""
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    k, s = tl.arange(0, K), tl.arange(0, S)
    rows, columns = i[:, None] < CHUNK, j[None, :] < HEAD
    own = tl.load(decay + i, mask=i < CHUNK, other=0)
    before = tl.load(c + i[:, None] * STATE + s, mask=rows & (s < STATE)[None, :], other=0)
    at = state + j[None, :] * STATE + s[:, None]
    acc = tl.dot(before, tl.load(at, mask=columns & (s < STATE)[:, None], other=0))
    acc *= tl.exp(own)[:, None]
    for first in range(0, min((tl.program_id(0) + 1) * M, CHUNK), K):
        here = first + k
        w = tl.load(
            scores + i[:, None] * CHUNK + here, mask=rows & (here < CHUNK)[None, :], other=0
        )
        w *= tl.exp(own[:, None] - tl.load(decay + here, mask=here < CHUNK, other=0))
        w *= tl.load(step + here, mask=here < CHUNK, other=0)
        w = tl.where(i[:, None] >= here, w, 0).to(x.dtype.element_ty)
        y = tl.load(x + here[:, None] * HEAD + j, mask=(here < CHUNK)[:, None] & columns, other=0)
        acc = tl.dot(w, y, acc)
    tl.store(out + i[:, None] * HEAD + j[None, :], acc, mask=rows & columns)


CASES = (
    case("linear 64x128", linear_attention, "*bf16 *bf16 *bf16 *bf16 i32 i32/16", T=64, D=128,
         num_warps=4),
    case("decayed 64x64", decayed_attention, "*bf16 *bf16 *bf16 *fp32 *bf16 i32 i32/16", T=64,
         D=64, num_warps=4),
    *(
        case(f"gated {dtype} {m}x{n}", gated_chunks,
             f"*{dtype} *{dtype} *{dtype} *fp32 *{dtype} i32 i32/16", T=m, D=n, num_warps=4)
        for dtype, m, n in (("bf16", 64, 64), ("fp32", 32, 64))
    ),
    *(
        case(f"chunk scan {m}x{n}, {warps} warps", chunk_scan,
             "*fp16 *fp16 *fp32 *fp32 *fp16 *fp16 *fp32 i32/16 i32/16 i32/16",
             M=m, N=n, K=64, S=128, num_warps=warps, num_stages=stages)
        for m, n, warps, stages in ((128, 64, 4, 2), (128, 64, 8, 4))
    ),
)  # fmt: skip
