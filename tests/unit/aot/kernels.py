"""Kernels that specs name."""

import tilewright.language as tl
from tilewright import jit


@jit
def scale(x, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@jit
def double(value):
    return value * 2


@jit
def unusual(x, stride, pair, none, function, ACC: tl.constexpr, SHAPE: tl.constexpr, **META):
    i = tl.arange(0, META["BLOCK"])
    value = function(tl.load(x + i * stride).to(ACC)) + pair[0]
    tl.store(pair[1] + i, value)


@jit
def add_one(d, M: tl.constexpr):
    tile = d.load([0, 0])
    d.store([0, 0], tile + 1)


@jit(do_not_specialize=["n"])
def plain(x, n):
    tl.store(x + n, 1.0)


@jit
def annotated(x, n: tl.int64):  # pyright: ignore[reportInvalidTypeForm]
    tl.store(x + n, 1.0)


@jit
def several(x, *rest):
    tl.store(x, rest[0] + rest[1])


@jit
def shifted(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < 127, other=0.0) + 1, mask=i < 127)
