"""Atomic additions and maxima, of neighbours and of rows by an index."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def update(source, target, n, B: tl.constexpr, SEM: tl.constexpr, MAX: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(source + i, mask=i < n)
    if MAX:
        tl.atomic_max(target + i, v, mask=i < n, sem=SEM)
    else:
        tl.atomic_add(target + i, v, mask=i < n, sem=SEM)


@jit
def add_rows(index, source, target, n, d, M: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)
    k = tl.load(index + r, mask=r < n, other=0)
    c = tl.arange(0, B)
    v = tl.load(source + r[:, None] * d + c[None, :], mask=(r < n)[:, None], other=0.0)
    tl.atomic_add(target + k[:, None] * d + c[None, :], v, mask=(r < n)[:, None])


CASES = (
    *(
        case(f"add {dtype} {sem}", update, f"*{dtype} *{dtype} i32/16", B=1024, SEM=sem, MAX=False)
        for dtype in ("fp32", "fp16", "bf16")
        for sem in ("acq_rel", "relaxed")
    ),
    *(
        case(f"max {dtype}", update, f"*{dtype} *{dtype} i32/16", B=1024, SEM="acq_rel", MAX=True)
        for dtype in ("i32", "fp32")
    ),
    *(
        case(f"rows by int64 {dtype}", add_rows, f"*i64 *{dtype} *{dtype} i32 i32/16", M=16, B=128)
        for dtype in ("fp32", "bf16")
    ),
)
