"""Scans of tiles, and recurrences whose steps are the iterations of a loop."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def cumsum(source, target, s, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(source + tl.program_id(0) * N * s + i * s) * 2.0
    tl.store(target + tl.program_id(0) * N + i, tl.cumsum(v, 0))


@jit
def cumsum_of_tile(
    source, target, s, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):  # fmt: skip
    o = tl.arange(0, M)[:, None] * s + tl.arange(0, N)[None, :]
    tl.store(target + o, tl.cumsum(tl.load(source + o), AXIS, reverse=REVERSE))


@jit
def running_sum(source, target, t, B: tl.constexpr):
    total = 0.0
    for k in range(0, t, B):
        i = k + tl.arange(0, B)
        v = tl.load(source + i, mask=i < t, other=0.0)
        tl.store(target + i, tl.cumsum(v, 0) + total, mask=i < t)
        total += tl.sum(v, 0)


@jit
def recurrence(x, g, target, t, d, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    h = tl.zeros([B], tl.float32)
    for k in range(t):
        h = h * tl.load(g + k * d + i).to(tl.float32) + tl.load(x + k * d + i).to(tl.float32)
        tl.store(target + k * d + i, h)


@jit
def rolling_convolution(x, w, target, s, t, B: tl.constexpr):
    c = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.zeros([B], tl.float32)
    b = tl.zeros([B], tl.float32)
    w0, w1, w2 = tl.load(w + c * 3), tl.load(w + c * 3 + 1), tl.load(w + c * 3 + 2)
    for k in range(t):
        v = tl.load(x + k * s + c).to(tl.float32)
        tl.store(target + k * s + c, a * w0 + b * w1 + v * w2)
        a = b
        b = v


CASES = (
    *(
        case(f"{name} {n}", cumsum, f"*fp32 *fp32 {stride}", N=n, num_warps=warps)
        for n, warps in ((512, 4), (4096, 4), (1024, 1))
        for name, stride in (("stride 1", "i32=1"), ("strided", "i32/16"))
    ),
    *(
        case(
            f"{m}x{n} axis {axis}{' reversed' if reverse else ''}", cumsum_of_tile,
            "*fp32 *fp32 i32/16", M=m, N=n, AXIS=axis, REVERSE=reverse, num_warps=warps,
        )
        for m, n, warps in ((64, 64, 4), (16, 32, 2))
        for axis in (0, 1)
        for reverse in (False, True)
    ),
    *(
        case(f"running sum {size}, {warps} warps", running_sum, "*fp32 *fp32 i32/16",
             B=size, num_warps=warps)
        for size, warps in ((16, 2), (16, 1), (32, 4))
    ),
    case("recurrence fp32 128", recurrence, "*fp32 *fp32 *fp32 i32 i32/16", B=128),
    case("recurrence bf16 256", recurrence, "*bf16 *bf16 *bf16 i32 i32/16", B=256),
    case("recurrence 32, 1 warp", recurrence, "*fp32 *fp32 *fp32 i32 i32/16", B=32, num_warps=1),
    case("rolling convolution", rolling_convolution, "*bf16 *fp32 *bf16 i32/16 i32", B=128),
)  # fmt: skip
