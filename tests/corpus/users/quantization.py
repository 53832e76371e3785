"""Quantization of rows and groups, and its inverse."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit
from tilewright.language.extra import libdevice


@jit
def quantize_row(source, target, scale, s, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.program_id(0)
    v = tl.load(source + row * s + i, mask=i < n, other=0.0).to(tl.float32)
    a = tl.maximum(tl.max(tl.abs(v), 0), 1e-10) / 127.0
    tl.store(target + row * s + i, libdevice.rint(v / a).to(tl.int8), mask=i < n)
    tl.store(scale + row, a)


@jit
def quantize_groups(source, target, scale, M: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)
    o = r[:, None] * B + tl.arange(0, B)[None, :]
    v = tl.load(source + o).to(tl.float32)
    a = tl.maximum(tl.max(tl.abs(v), 1), 1e-10) / 448.0
    tl.store(target + o, tl.clamp(v / a[:, None], -448.0, 448.0).to(tl.float8e4nv))
    tl.store(scale + r, a)


@jit
def dequantize_nibbles(source, scale, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(source + i)
    k = tl.load(scale + i // 16)
    low, high = ((v & 15).to(tl.float32) - 8) * k, ((v >> 4).to(tl.float32) - 8) * k
    o = tl.program_id(0) * 2 * B + tl.arange(0, 2 * B)
    tl.store(target + o, tl.interleave(low, high).to(tl.float16))


@jit
def dequantize_bytes(source, scale, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(source + i, mask=i < n).to(tl.float32)
    tl.store(target + i, v * tl.load(scale + i // 128, mask=i < n), mask=i < n)


CASES = (
    case(
        "row to int8", quantize_row, "*bf16 *i8 *fp32 i32/16 i32/16", B=4096, num_warps=8
    ),
    case("groups 16x128 to fp8", quantize_groups, "*bf16 *fp8e4nv *fp32", M=16, B=128),
    case("nibbles to fp16", dequantize_nibbles, "*u8 *fp32 *fp16 i32", B=1024),
    case("int8 to bf16", dequantize_bytes, "*i8 *fp32 *bf16 i32/16", B=1024),
)  # fmt: skip
