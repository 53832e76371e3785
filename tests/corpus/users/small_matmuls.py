"""Small matmuls, and chains of a few dots on tiles that are loaded once."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def matmul(
    a, b, c, M, N, K, s, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros([BM, BN], tl.float32)
    for i in range(0, K, BK):
        inside = i + k < K
        x = tl.load(a + m[:, None] * s + (i + k)[None, :],
                    mask=(m < M)[:, None] & inside[None, :], other=0.0)  # fmt: skip
        y = tl.load(b + (i + k)[:, None] * s + n[None, :],
                    mask=inside[:, None] & (n < N)[None, :], other=0.0)  # fmt: skip
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * s + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@jit
def one_dot(a, b, c, s, M: tl.constexpr, D: tl.constexpr):
    i = tl.arange(0, M)
    d = tl.arange(0, D)
    o = i[:, None] * s + d[None, :]
    tl.store(c + o, tl.dot(tl.load(a + i[:, None] * s + i[None, :]), tl.load(b + o)))


@jit
def chained(q, k, v, target, s, M: tl.constexpr, D: tl.constexpr):
    i = tl.arange(0, M)
    d = tl.arange(0, D)
    o = i[:, None] * s + d[None, :]
    a, b, c = tl.load(q + o), tl.load(k + o), tl.load(v + o)
    z = tl.where(i[:, None] >= i[None, :], tl.dot(a, tl.trans(b)) * 0.125, 0.0)
    tl.store(target + o, tl.dot(z.to(c.dtype), c))


@jit
def backward(q, k, g, dq, dk, s, M: tl.constexpr, D: tl.constexpr):
    i = tl.arange(0, M)
    d = tl.arange(0, D)
    o = i[:, None] * s + d[None, :]
    a = tl.load(q + o)
    b = tl.load(k + o)
    w = tl.load(g + i)
    z = tl.dot(a, tl.trans(b)) * tl.exp(w[:, None] - w[None, :])
    z = tl.where(i[:, None] >= i[None, :], z, 0.0).to(a.dtype)
    tl.store(dq + o, tl.dot(z, b))
    tl.store(dk + o, tl.dot(tl.trans(z), a))


@jit
def low_rank_gates(q, k, v, g, out, s, T: tl.constexpr, D: tl.constexpr, R: tl.constexpr):
    i, d, r = tl.arange(0, T), tl.arange(0, D), tl.arange(0, R)
    o = i[:, None] * s + d[None, :]
    a, b, c = tl.load(q + o), tl.load(k + o), tl.load(v + o)
    e = tl.exp(tl.load(g + i[:, None] * R + r[None, :]))
    z = tl.dot(a, tl.trans(b)) * tl.dot(e.to(a.dtype), tl.trans((1 / e).to(a.dtype)))
    z = tl.where(i[:, None] >= i[None, :], z, 0.0)
    tl.store(out + o, tl.dot(z.to(a.dtype), c))


def _loop(dtype: str, m: int, n: int, k: int, warps: int, sizes: str, stride: str, label: str):
    types = f"*{dtype} *{dtype} *{dtype} {sizes} {sizes} {sizes} {stride}"
    words = {"BM": m, "BN": n, "BK": k, "num_warps": warps, "num_stages": 3}
    return case(f"{dtype} {m}x{n}x{k}{label}", matmul, types, **words)


_TILES = (
    ("fp32", 32, 32, 32, 4), ("fp32", 64, 64, 32, 4), ("fp16", 16, 16, 16, 1),
    ("fp16", 16, 64, 64, 4), ("fp16", 32, 32, 32, 4),
)  # fmt: skip
_ANY_SIZES = ((16, 64, 64, 4), (32, 32, 32, 4), (16, 16, 16, 1), (64, 64, 64, 4))
_TYPES = {
    one_dot: "*T *T *fp32", chained: "*T *T *T *fp32", backward: "*T *T *fp32 *fp32 *fp32",
}  # fmt: skip
CASES = (
    *(_loop(*tile, "i32/16", "i32/16", "") for tile in _TILES),
    *(_loop("fp16", *tile, "i32", "i32/16", " any sizes") for tile in _ANY_SIZES),
    _loop("fp16", 64, 64, 64, 4, "i32", "i32", " any strides"),
    _loop("fp16", 128, 128, 32, 4, "i32", "i32", " any strides"),
    *(
        case(f"{kernel.fn.__name__} {dtype} {m}x{n}", kernel,
             f"{types.replace('T', dtype)} i32/16", M=m, D=n, num_warps=4)
        for kernel, types in _TYPES.items()
        for dtype in ("fp32", "fp16")
        for m, n in ((64, 64), (64, 128))
    ),
    *(
        case(f"gates of rank {rank} {dtype}", low_rank_gates,
             f"*{dtype} *{dtype} *{dtype} *fp32 *{dtype} i32/16", T=64, D=64, R=rank, num_warps=4)
        for dtype in ("fp16", "fp32")
        for rank in (16, 32)
    ),
)  # fmt: skip
