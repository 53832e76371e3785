"""Matmuls with more in the loop: a second dot, scales, casts, norms, packed weights."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def gated_matmul(
    a_ptr, b_ptr, g_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """silu(a @ g) * (a @ b)."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        o = (k + rk)[:, None] * sb + rn[None, :]
        up = tl.dot(a, tl.load(b_ptr + o), up)
        gate = tl.dot(a, tl.load(g_ptr + o), gate)
    c = gate * tl.sigmoid(gate) * up
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], c.to(tl.float16))


@jit
def two_accumulators(
    a_ptr, b_ptr, c_ptr, d_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Even and odd blocks of K are accumulated apart."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    even = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    odd = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, 2 * BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
        even = tl.dot(a, b, even)
        a = tl.load(a_ptr + rm[:, None] * sa + (k + BLOCK_K + rk)[None, :])
        b = tl.load(b_ptr + (k + BLOCK_K + rk)[:, None] * sb + rn[None, :])
        odd = tl.dot(a, b, odd)
    o = rm[:, None] * sc + rn[None, :]
    tl.store(c_ptr + o, (even + odd).to(tl.float16))
    tl.store(d_ptr + o, (even - odd).to(tl.float16))


@jit
def low_rank_matmul(
    a_ptr, b_ptr, down_ptr, up_ptr, c_ptr, K, sa, sb, sd, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, RANK: tl.constexpr,
):  # fmt: skip
    """a @ b + (a @ down) @ up."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk, rr = tl.arange(0, BLOCK_K), tl.arange(0, RANK)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    low = tl.zeros((BLOCK_M, RANK), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
        down = tl.load(down_ptr + (k + rk)[:, None] * sd + rr[None, :])
        acc = tl.dot(a, b, acc)
        low = tl.dot(a, down, low)
    up = tl.load(up_ptr + rr[:, None] * sb + rn[None, :])
    acc = tl.dot(low.to(tl.float16), up, acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def two_layers(
    x_ptr, w_ptr, v_ptr, out_ptr, hidden, sx, sw, sv, so,
    BLOCK_M: tl.constexpr, BLOCK_H: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """gelu(x @ w) @ v, by blocks of the hidden dimension."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rd, rh = tl.arange(0, D), tl.arange(0, BLOCK_H)
    x = tl.load(x_ptr + rm[:, None] * sx + rd[None, :])
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for h in range(0, hidden, BLOCK_H):
        y = tl.dot(x, tl.load(w_ptr + rd[:, None] * sw + (h + rh)[None, :]))
        y = 0.5 * y * (1.0 + tl.erf(y * 0.7071067811865476))
        acc = tl.dot(y.to(tl.float16), tl.load(v_ptr + (h + rh)[:, None] * sv + rd[None, :]), acc)
    tl.store(out_ptr + rm[:, None] * so + rd[None, :], acc.to(tl.float16))


@jit
def block_scaled_matmul(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, K, sa, sb, sc, s_as, s_bs,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """fp8 with a scale for each row of A and each block of columns of B, and each block of K."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K // BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k * BLOCK_K + rk)[None, :])
        b = tl.load(b_ptr + rn[None, :] * sb + (k * BLOCK_K + rk)[:, None])
        scale_a = tl.load(a_scale_ptr + rm * s_as + k)
        scale_b = tl.load(b_scale_ptr + (rn // GROUP) * s_bs + k)
        acc += tl.dot(a, b) * scale_a[:, None] * scale_b[None, :]
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.bfloat16))


@jit
def int4_matmul(
    a_ptr, b_ptr, scale_ptr, c_ptr, K, sa, sb, sc, ss,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Eight weights of neighbours along K in each int32."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        packed = tl.load(b_ptr + ((k + rk) // 8)[:, None] * sb + rn[None, :])
        w = (packed >> ((rk % 8) * 4)[:, None]) & 15
        scale = tl.load(scale_ptr + (k // GROUP) * ss + rn)
        acc = tl.dot(a, ((w - 8).to(tl.float16) * scale[None, :]), acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def joined_int4_matmul(
    a_ptr, b_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Two weights of neighbours along K in each byte, unpacked by `tl.join`."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk, rh = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_K // 2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        packed = tl.load(b_ptr + rn[:, None] * sb + (k // 2 + rh)[None, :])
        low = ((packed << 4).to(tl.int8) >> 4).to(tl.float16)
        high = (packed >> 4).to(tl.float16)
        w = tl.join(low, high).reshape(BLOCK_N, BLOCK_K)
        acc = tl.dot(a, tl.trans(w), acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def scaled_rows_matmul(
    a_ptr, b_ptr, s_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """(a * s) @ b with a scale for each element of K."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
        acc = tl.dot(a * tl.load(s_ptr + k + rk)[None, :], b, acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def casting_matmul(
    a_ptr, b_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A of fp32, cast to fp16 in the loop."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
        acc = tl.dot(a.to(tl.float16), b, acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def normalized_matmul(
    a_ptr, b_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """rms_norm(a) @ b: the squares of each row are summed beside the dots."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    squares = tl.zeros((BLOCK_M,), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
        acc = tl.dot(a, b, acc)
        wide = a.to(tl.float32)
        squares += tl.sum(wide * wide, 1)
    acc *= tl.rsqrt(squares / K + 1e-6)[:, None]
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


_BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
_STRIDES = "i32/16 i32/16 i32/16"
_LOOPED = f"*fp16 *fp16 *fp16 i32/16 {_STRIDES}"
CASES = (
    case("gated", gated_matmul, f"*fp16 {_LOOPED}", **_BLOCKS),
    case("two accumulators", two_accumulators, f"*fp16 {_LOOPED}", **_BLOCKS),
    case("low rank", low_rank_matmul, f"*fp16 *fp16 {_LOOPED} i32/16", **_BLOCKS, RANK=16),
    case("matmul, gelu, matmul", two_layers, f"*fp16 {_LOOPED} i32/16", BLOCK_M=128, BLOCK_H=64,
         D=128, num_warps=8, num_stages=3),
    case("fp8, block scales", block_scaled_matmul,
         f"*fp8e4nv *fp8e4nv *fp32 *fp32 *bf16 i32/16 {_STRIDES} i32/16 i32/16",
         **_BLOCKS | {"BLOCK_K": 128}, GROUP=128),
    *(
        case(f"int4 in int32, {m} rows", int4_matmul,
             f"*fp16 *i32 *fp16 *fp16 i32/16 {_STRIDES} i32/16",
             **_BLOCKS | {"BLOCK_M": m, "num_warps": warps}, GROUP=128)
        for m, warps in ((128, 8), (16, 4))
    ),
    case("int4 by join", joined_int4_matmul, f"*fp16 *i8 *fp16 i32/16 {_STRIDES}", **_BLOCKS),
    case("scaled A", scaled_rows_matmul, f"*fp16 {_LOOPED}", **_BLOCKS),
    case("A cast to fp16", casting_matmul, _LOOPED.replace("*fp16", "*fp32", 1), **_BLOCKS),
    case("rms norm", normalized_matmul, _LOOPED, **_BLOCKS),
)  # fmt: skip
