"""Conversions: between widths, to integers, from packed bytes, and constants with a name."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit
from tilewright.language.extra import libdevice


@jit
def convert(source, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(
        target + i, tl.maximum(tl.load(source + i, mask=i < n).to(tl.float32), 0.0), mask=i < n
    )


@jit
def to_integer(source, target, n, B: tl.constexpr, HOW: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(source + i, mask=i < n, other=0.0)
    if HOW == "cast":
        r = v.to(target.dtype.element_ty)
    elif HOW == "llrint":
        r = libdevice.llrint(v).to(tl.int8)
    elif HOW == "rint":
        r = libdevice.rint(v).to(tl.int8)
    else:
        r = libdevice.float2int_rn(v).to(tl.int8)
    tl.store(target + i, r, mask=i < n)


@jit
def there_and_back(source, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(source + i, mask=i < n)
    tl.store(target + i, v.to(tl.uint8).to(tl.float32), mask=i < n)


@jit
def named_constants(source, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a = 1.7343046
    b = -3.4686093
    v = tl.load(source + i, mask=i < n)
    tl.store(target + i, (a * v * v + b * v).to(tl.float32), mask=i < n)


@jit
def literals(source, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(source + i, mask=i < n)
    tl.store(target + i, (1.7343046 * v * v - 3.4686093 * v).to(tl.float32), mask=i < n)


CASES = (
    *(
        case(f"{a} to {b} {size}", convert, f"*{a} *{b} i32/16", B=size)
        for a, b, size in (
            ("fp32", "bf16", 1024), ("fp32", "bf16", 4096), ("fp32", "fp8e4nv", 1024),
            ("bf16", "fp32", 1024), ("fp16", "fp8e4nv", 1024), ("bf16", "bf16", 1024),
        )
    ),
    *(
        case(f"{how} to {dtype}", to_integer, f"*fp32 *{dtype} i32/16", B=1024, HOW=how)
        for how, dtype in (
            ("cast", "i8"), ("cast", "i64"), ("llrint", "i8"), ("rint", "i8"),
            ("float2int_rn", "i8"),
        )
    ),
    case("fp32 to uint8 to fp32", there_and_back, "*fp32 *fp32 i32/16", B=1024),
    *(
        case(f"{kernel.fn.__name__} {dtype}", kernel, f"*{dtype} *fp32 i32/16", B=1024)
        for kernel in (named_constants, literals)
        for dtype in ("fp16", "bf16")
    ),
)  # fmt: skip
