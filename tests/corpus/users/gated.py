"""Gated activations: of elements, and of rows that one program holds."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def gate(x, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(target + i, v / (1.0 + tl.exp(-v)), mask=i < n)


@jit
def gated_row(a, b, c, n, FORM: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    m = i < n
    x = tl.load(a + r * n + i, m, other=0).to(tl.float32)
    y = tl.load(b + r * n + i, m, other=0)
    if FORM == "sigmoid":
        s = x * tl.sigmoid(x)
    elif FORM == "quotient":
        s = x / (1.0 + tl.exp(-x))
    elif FORM == "reciprocal":
        s = x * (1.0 / (1.0 + tl.exp(-x)))
    elif FORM == "exp":
        s = x * tl.exp(-x)
    else:
        s = x
    tl.store(c + r * n + i, s.to(tl.bfloat16) * y, m)


CASES = (
    case("x / (1 + exp(-x)) fp32", gate, "*fp32 *fp32 i32/16", B=1024),
    case("x / (1 + exp(-x)) bf16", gate, "*bf16 *bf16 i32/16", B=1024),
    *(
        case(f"row of 16384, {form}, {warps} warps", gated_row, "*bf16 *bf16 *bf16 i32/16",
             FORM=form, B=16384, num_warps=warps)
        for form in ("sigmoid", "quotient", "reciprocal", "exp", "none")
        for warps in (8, 16, 32)
    ),
)  # fmt: skip
