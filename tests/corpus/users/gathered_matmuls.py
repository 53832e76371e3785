"""Matmuls whose tiles come from tables or windows, and persistent programs."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def expert_matmul(
    a_ptr, b_ptr, c_ptr, tokens_ptr, experts_ptr, tokens, N, K, top, sa, sbe, sbk, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Tokens sorted by expert: rows of A by a table, a weight matrix for each block of tokens."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    token = tl.load(tokens_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M))
    live = token < tokens
    expert = tl.load(experts_ptr + pid_m)
    rn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (token // top)[:, None] * sa + rk[None, :]
    b_ptrs = b_ptr + expert * sbe + rk[:, None] * sbk + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=live[:, None] & (rk[None, :] < K - k * BLOCK_K), other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * sbk
    cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = live[:, None] & (cn < N)[None, :]
    tl.store(c_ptr + token[:, None] * sc + cn[None, :], acc.to(tl.float16), mask=mask)


@jit
def block_sparse_matmul(
    a_ptr, b_ptr, c_ptr, starts_ptr, blocks_ptr, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The blocks of K that a row of blocks has, by a table."""
    pid = tl.program_id(0)
    rm = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for i in range(tl.load(starts_ptr + pid), tl.load(starts_ptr + pid + 1)):
        k = tl.load(blocks_ptr + i) * BLOCK_K
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def nested_convolution(
    x_ptr, w_ptr, y_ptr, H, W, C, sh, sw, sr, sc, so, R: tl.constexpr, S: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A 2D convolution, channels last: loops over the window and the channels."""
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    y, x = pixel // W, pixel % W
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for r in range(R):
        for s in range(S):
            h, w = y + r - R // 2, x + s - S // 2
            inside = (h >= 0) & (h < H) & (w >= 0) & (w < W)
            for c in range(0, C, BLOCK_K):
                a = tl.load(x_ptr + (h * sh + w * sw)[:, None] + (c + rk)[None, :],
                            mask=inside[:, None], other=0.0)  # fmt: skip
                b = tl.load(w_ptr + (r * S + s) * sr + (c + rk)[:, None] * sc + rn[None, :])
                acc = tl.dot(a, b, acc)
    tl.store(y_ptr + pixel[:, None] * so + rn[None, :], acc.to(tl.float16),
             mask=(pixel < H * W)[:, None])  # fmt: skip


@jit
def flat_convolution(
    x_ptr, w_ptr, y_ptr, H, W, C, sh, sw, sk, so, R: tl.constexpr, S: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The same with one loop over window and channels."""
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    y, x = pixel // W, pixel % W
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    per_channel = tl.cdiv(C, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for i in range(0, R * S * per_channel):
        c = i % per_channel * BLOCK_K
        rs = i // per_channel
        h, w = y + rs // S - R // 2, x + rs % S - S // 2
        inside = (h >= 0) & (h < H) & (w >= 0) & (w < W)
        a = tl.load(x_ptr + (h * sh + w * sw)[:, None] + (c + rk)[None, :],
                    mask=inside[:, None], other=0.0)  # fmt: skip
        b = tl.load(w_ptr + (rs * C + c + rk)[:, None] * sk + rn[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(y_ptr + pixel[:, None] * so + rn[None, :], acc.to(tl.float16),
             mask=(pixel < H * W)[:, None])  # fmt: skip


@jit
def persistent_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Each program takes every n-th tile, in groups of rows."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    per_group = GROUP_M * tiles_n
    rk = tl.arange(0, BLOCK_K)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        first = tile // per_group * GROUP_M
        height = min(tiles_m - first, GROUP_M)
        rm = (first + tile % per_group % height) * BLOCK_M + tl.arange(0, BLOCK_M)
        rn = (tile % per_group // height) * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            left = rk < K - k
            a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :],
                        mask=(rm < M)[:, None] & left[None, :], other=0.0)  # fmt: skip
            b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :],
                        mask=left[:, None] & (rn < N)[None, :], other=0.0)  # fmt: skip
            acc = tl.dot(a, b, acc)
        mask = (rm < M)[:, None] & (rn < N)[None, :]
        tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16), mask=mask)


@jit
def wrapping_persistent_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile's row is a remainder, and rows wrap around."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles = tiles_m * tl.cdiv(N, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    for t in range(tl.program_id(0), tiles, tl.num_programs(0)):
        pid_m, pid_n = t % tiles_m, t // tiles_m
        rm = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
        rn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
            b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
            acc = tl.dot(a, b, acc)
        cm, cn = pid_m * BLOCK_M + tl.arange(0, BLOCK_M), pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = (cm < M)[:, None] & (cn < N)[None, :]
        tl.store(c_ptr + cm[:, None] * sc + cn[None, :], acc.to(tl.float16), mask=mask)


@jit
def while_persistent_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles = tiles_m * tl.cdiv(N, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    t = tl.program_id(0)
    while t < tiles:
        rm = t % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
        rn = t // tiles_m * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
            b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))
        t += tl.num_programs(0)


@jit
def stream_k_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, steps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Each program takes `steps` blocks of K, which may belong to several tiles."""
    tiles_n, per_tile = tl.cdiv(N, BLOCK_N), tl.cdiv(K, BLOCK_K)
    rk = tl.arange(0, BLOCK_K)
    step = tl.program_id(0) * steps
    end = step + steps
    while step < end:
        tile, first = step // per_tile, step % per_tile
        last = min(per_tile, first + end - step)
        rm = (tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)) % M
        rn = (tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(first, last):
            a = tl.load(a_ptr + rm[:, None] * sa + (k * BLOCK_K + rk)[None, :])
            b = tl.load(b_ptr + (k * BLOCK_K + rk)[:, None] * sb + rn[None, :])
            acc = tl.dot(a, b, acc)
        tl.atomic_add(c_ptr + rm[:, None] * sc + rn[None, :], acc, sem="relaxed")
        step += last - first


_BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
_STRIDES = "i32/16 i32/16 i32/16"
_BOUNDED = f"*fp16 *fp16 *fp16 {_STRIDES} {_STRIDES}"
_WINDOW = {"R": 3, "S": 3}
CASES = (
    *(
        case(f"experts {m}x{n}", expert_matmul,
             f"*fp16 *fp16 *fp16 *i32 *i32 i32 i32/16 i32/16 i32 {_STRIDES} i32/16",
             **_BLOCKS | {"BLOCK_M": m, "BLOCK_N": n})
        for m, n in ((128, 128), (64, 256))
    ),
    case("block sparse", block_sparse_matmul, f"*fp16 *fp16 *fp16 *i32 *i32 {_STRIDES}", **_BLOCKS),
    case("convolution, nested", nested_convolution,
         f"*fp16 *fp16 *fp16 i32 i32 i32/16 {_STRIDES} i32/16 i32/16", **_BLOCKS, **_WINDOW),
    case("convolution, flat", flat_convolution,
         f"*fp16 *fp16 *fp16 i32 i32 i32/16 {_STRIDES} i32/16", **_BLOCKS, **_WINDOW),
    case("persistent, grouped", persistent_matmul, _BOUNDED, **_BLOCKS, GROUP_M=8),
    case("persistent, wraps", wrapping_persistent_matmul, _BOUNDED, **_BLOCKS),
    case("persistent by while", while_persistent_matmul, _BOUNDED, **_BLOCKS),
    case("stream-K", stream_k_matmul,
         f"{_BOUNDED.replace('*fp16 i32', '*fp32 i32')} i32", **_BLOCKS),
)  # fmt: skip
