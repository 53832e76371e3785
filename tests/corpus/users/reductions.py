"""Reductions along each axis, by loops over rows and columns, and argmax."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def reduced(
    source, target, s, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, F: tl.constexpr
):
    r = tl.program_id(0) * M + tl.arange(0, M)
    v = tl.load(source + r[:, None] * s + tl.arange(0, N)[None, :])
    k = F(v, AXIS)
    if AXIS == 1:
        tl.store(target + r, k)
    else:
        tl.store(target + tl.program_id(0) * N + tl.arange(0, N), k)


@jit
def argmax_of_row(source, target, s, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(source + tl.program_id(0) * s + i, mask=i < n, other=-float("inf"))
    tl.store(target + tl.program_id(0), tl.argmax(v, 0))


@jit
def sum_of_row(source, target, n, s, B: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([B], tl.float32)
    for k in range(0, n, B):
        i = k + tl.arange(0, B)
        acc += tl.load(source + row * s + i, mask=i < n, other=0.0)
    tl.store(target + row, tl.sum(acc, 0))


@jit
def weighted_rows(p, v, target, m, s, M: tl.constexpr, N: tl.constexpr, SCALE: tl.constexpr):
    b = tl.arange(0, N)
    acc = tl.zeros([N], tl.float32)
    for k in range(0, m, M):
        a = k + tl.arange(0, M)
        g = tl.load(p + a, mask=a < m, other=0.0)
        rows = tl.load(v + a[:, None] * s + b[None, :], mask=(a < m)[:, None], other=0.0)
        t = tl.sum(g[:, None] * rows, 0)
        acc = acc * 0.5 + t if SCALE else acc + t
    tl.store(target + b, acc)


_OUT = {"sum": "fp32", "max": "fp32", "argmax": "i32"}
CASES = (
    *(
        case(
            f"{name} {m}x{n} axis {axis}", reduced, f"*fp32 *{_OUT[name]} i32/16",
            M=m, N=n, AXIS=axis, F=getattr(tl, name),
        )
        for name, m, n in (
            ("sum", 8, 512), ("max", 16, 256), ("sum", 32, 64), ("argmax", 32, 64),
            ("argmax", 16, 128),
        )
        for axis in (0, 1)
    ),
    case("argmax of 1024", argmax_of_row, "*fp32 *i32 i32/16 i32", B=1024, num_warps=4),
    case("argmax of 8192", argmax_of_row, "*fp32 *i32 i32/16 i32", B=8192, num_warps=8),
    case("sum of a row", sum_of_row, "*fp32 *fp32 i32/16 i32/16", B=1024),
    *(
        case(
            f"weighted rows {m}x{n}, {warps} warps{', scaled' if scale else ''}", weighted_rows,
            "*fp32 *fp32 *fp32 i32 i32/16", M=m, N=n, SCALE=scale, num_warps=warps,
        )
        for m, n, warps in ((64, 64, 1), (32, 128, 4), (64, 64, 4))
        for scale in (False, True)
    ),
)  # fmt: skip
