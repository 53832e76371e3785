"""Element-wise kernels: masks, rows, strides, windows, tiles of three dimensions and tiny tiles."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def copy(source, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(target + i, tl.load(source + i, mask=i < n), mask=i < n)


@jit
def relu(source, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(target + i, tl.maximum(tl.load(source + i, mask=i < n), 0.0), mask=i < n)


@jit
def select_of_masked_load(source, target, n, B: tl.constexpr):
    """The select repeats what the load did with the same mask and the same other value."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.where(i < n, tl.load(source + i, mask=i < n, other=0.0), 0.0)
    tl.store(target + i, v + v, mask=i < n)


@jit
def embedding(index, table, target, d, B: tl.constexpr):
    t = tl.program_id(0)
    k = tl.load(index + t)
    for o in range(0, d, B):
        i = o + tl.arange(0, B)
        tl.store(target + t * d + i, tl.load(table + k * d + i, mask=i < d), mask=i < d)


@jit
def grid_stride(source, target, n, B: tl.constexpr):
    for t in range(tl.program_id(0), tl.cdiv(n, B), tl.num_programs(0)):
        i = t * B + tl.arange(0, B)
        tl.store(target + i, tl.load(source + i, mask=i < n) * 2, mask=i < n)


@jit
def in_place(x, s, n, B: tl.constexpr):
    row = tl.program_id(0)
    for o in range(0, n, B):
        i = o + tl.arange(0, B)
        v = tl.load(x + row * s + i, mask=i < n)
        tl.store(x + row * s + i, v * 0.5, mask=i < n)


@jit
def block_pointers(x, target, m, n, M: tl.constexpr, N: tl.constexpr):
    p = tl.make_block_ptr(x, (m, n), (n, 1), (tl.program_id(0) * M, 0), (M, N), (1, 0))
    q = tl.make_block_ptr(target, (m, n), (n, 1), (tl.program_id(0) * M, 0), (M, N), (1, 0))
    for _ in range(0, tl.cdiv(n, N)):
        tl.store(q, tl.load(p, boundary_check=(0, 1)) * 2, boundary_check=(0, 1))
        p = tl.advance(p, (0, N))
        q = tl.advance(q, (0, N))


@jit
def three_dimensions(
    source, target, a, b, c, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr
):  # fmt: skip
    i, j = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None]
    k = tl.arange(0, C)[None, None, :]
    o = tl.program_id(0) * a * b * c + i * b * c + j * c + k
    m = (i < a) & (j < b) & (k < c)
    tl.store(target + o, tl.load(source + o, mask=m, other=0.0) * 2, mask=m)


@jit
def scaled(source, target, n, B: tl.constexpr):
    """With tiles smaller than the threads, several threads hold each element."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(target + i, tl.load(source + i, mask=i < n) * 2.0, mask=i < n)


@jit
def gather(index, source, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    k = tl.load(index + i, mask=i < n, other=0)
    tl.store(target + i, tl.load(source + k, mask=i < n), mask=i < n)


@jit
def strided(source, target, n, s, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(target + i, tl.load(source + i * s, mask=i < n), mask=i < n)


@jit
def window(source, target, h, w, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    y, x = i // w, i % w
    best = tl.full([B], float("-inf"), tl.float32)
    for a in tl.static_range(3):
        for b in tl.static_range(3):
            p, q = y + a - 1, x + b - 1
            inside = (p >= 0) & (p < h) & (q >= 0) & (q < w)
            best = tl.maximum(best, tl.load(source + p * w + q, mask=inside, other=float("-inf")))
    tl.store(target + i, best, mask=i < h * w)


@jit
def rotary_halves(q, cos, sin, target, s, D: tl.constexpr, M: tl.constexpr):
    r = (tl.program_id(0) * M + tl.arange(0, M))[:, None]
    c = tl.arange(0, D // 2)[None, :]
    a, b = tl.load(q + r * s + c).to(tl.float32), tl.load(q + r * s + D // 2 + c).to(tl.float32)
    x, y = tl.load(cos + r * (D // 2) + c), tl.load(sin + r * (D // 2) + c)
    tl.store(target + r * s + c, a * x - b * y)
    tl.store(target + r * s + D // 2 + c, b * x + a * y)


_PAIR = "*fp32 *fp32 i32/16"
CASES = (
    case("copy 32, 1 warp", copy, _PAIR, B=32, num_warps=1),
    case("relu 1024", relu, _PAIR, B=1024),
    case("relu 4096", relu, _PAIR, B=4096),
    case("select of a masked load", select_of_masked_load, _PAIR, B=4096, num_warps=4),
    case("embedding row", embedding, "*i64 *fp32 *fp32 i32/16", B=1024),
    case("grid stride", grid_stride, _PAIR, B=1024),
    case("grid stride bf16 4096", grid_stride, "*bf16 *bf16 i32/16", B=4096),
    case("row in place", in_place, "*fp32 i32/16 i32/16", B=1024),
    case("block pointers 32x64", block_pointers, "*fp16 *fp16 i32/16 i32/16", M=32, N=64),
    case("three dimensions", three_dimensions, "*fp32 *fp32 i32 i32/16 i32/16", A=8, B=16, C=32),
    *(
        case(f"scaled {size}, {warps} warps", scaled, _PAIR, B=size, num_warps=warps)
        for size, warps in ((4, 4), (32, 4), (64, 4), (128, 4), (256, 8), (512, 8))
    ),
    case("gather by int64", gather, "*i64 *fp32 *fp32 i32/16", B=1024),
    case("strided fp32", strided, "*fp32 *fp32 i32/16 i32", B=1024),
    case("strided fp16", strided, "*fp16 *fp16 i32/16 i32", B=1024),
    case("strided fp32, any n", strided, "*fp32 *fp32 i32 i32", B=1024),
    case("3x3 window", window, "*fp32 *fp32 i32 i32", B=256),
    case("rotary halves", rotary_halves, "*bf16 *fp32 *fp32 *bf16 i32/16", D=128, M=16),
)
