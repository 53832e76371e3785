"""Row-wise kernels that hold a row in registers: softmax, norms, short and long rows."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def softmax(source, target, s, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(source + row * s + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(target + row * s + i, e / tl.sum(e, 0), mask=i < n)


@jit
def layer_norm(source, target, s, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(source + row * s + i, mask=i < n, other=0.0).to(tl.float32)
    d = tl.where(i < n, v - tl.sum(v, 0) / n, 0.0)
    tl.store(target + row * s + i, d * tl.rsqrt(tl.sum(d * d, 0) / n + 1e-5), mask=i < n)


@jit
def scaled_by_squares(source, target, n, B: tl.constexpr, WHERE: tl.constexpr):
    i = tl.arange(0, B)
    live = i < n
    row = tl.program_id(0) * n
    v = tl.load(source + row + i, mask=live, other=0.0)
    if WHERE:
        v = tl.where(live, v - 1.0, 0.0)
    tl.store(target + row + i, v * tl.sum(v * v, 0), mask=live)


@jit
def below_maximum(source, target, s, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(source + tl.program_id(0) * s + i)
    tl.store(target + tl.program_id(0) * s + i, v - tl.max(v, 0))


CASES = (
    *(
        case(
            f"{kernel.fn.__name__} {dtype} {size}, {warps} warps", kernel,
            f"*{dtype} *{dtype} i32/16 i32/16", B=size, num_warps=warps,
        )
        for kernel in (softmax, layer_norm)
        for dtype in ("fp32", "bf16")
        for size, warps in ((1024, 4), (4096, 4), (8192, 2), (16384, 4), (16384, 16), (65536, 16))
    ),
    *(
        case(
            f"squares{' with where' if where else ''} {size}", scaled_by_squares,
            "*fp32 *fp32 i32/16", B=size, WHERE=where, num_warps=4,
        )
        for size in (4096, 16384)
        for where in (False, True)
    ),
    case("row of 128, 1 warp", below_maximum, "*fp32 *fp32 i32/16", N=128, num_warps=1),
)  # fmt: skip
