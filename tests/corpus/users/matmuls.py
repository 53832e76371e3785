"""Matmuls of two matrices in the forms of tutorials: tiles, masks, strides and loops over K."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright import jit


@jit
def indexed_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Addresses from the index of the loop, as `k + rk`; rows that wrap around."""
    rm = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    rn = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
        acc += tl.dot(a, b)
    cm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (cm < M)[:, None] & (cn < N)[None, :]
    tl.store(c_ptr + cm[:, None] * sc + cn[None, :], acc.to(tl.float16), mask=mask)


@jit
def masked_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """B is loaded first; masks guard rows, columns and K."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        left = rk < K - k
        b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :],
                    mask=left[:, None] & (rn < N)[None, :], other=0.0)  # fmt: skip
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :],
                    mask=(rm < M)[:, None] & left[None, :], other=0.0)  # fmt: skip
        acc = tl.dot(a, b, acc)
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16), mask=mask)


@jit
def batched_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, batch_a, batch_b, batch_c, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    a_ptr += batch * batch_a
    b_ptr += batch * batch_b
    c_ptr += batch * batch_c
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * sa + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rm < M)[:, None] & (rk < K - k)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(rk < K - k)[:, None] & (rn < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * sb
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16), mask=mask)


@jit
def peeled_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Whole blocks of K without masks, then the last block with one."""
    rm = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    rn = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * sa + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    whole = K // BLOCK_K
    for _ in range(whole):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * sb
    left = rk < K - whole * BLOCK_K
    a = tl.load(a_ptrs, mask=left[None, :], other=0.0)
    acc = tl.dot(a, tl.load(b_ptrs, mask=left[:, None], other=0.0), acc)
    cm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (cm < M)[:, None] & (cn < N)[None, :]
    tl.store(c_ptr + cm[:, None] * sc + cn[None, :], acc.to(tl.float16), mask=mask)


@jit
def transposing_matmul(
    a_ptr, b_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A is stored by columns and B by rows of N; both are transposed by `tl.trans`."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + (k + rk)[:, None] * sa + rm[None, :])
        b = tl.load(b_ptr + rn[:, None] * sb + (k + rk)[None, :])
        acc = tl.dot(tl.trans(a), tl.trans(b), acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def split_k_matmul(
    a_ptr, b_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * sa + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, tl.cdiv(K, BLOCK_K * SPLITS)):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K * SPLITS
        b_ptrs += BLOCK_K * SPLITS * sb
    tl.atomic_add(c_ptr + rm[:, None] * sc + rn[None, :], acc, sem="relaxed")


@jit
def downward_matmul(
    a_ptr, b_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """K counts down."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(K - BLOCK_K, -1, -BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def prefetching_matmul(
    a_ptr, b_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Each iteration loads the tiles of the next one."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * sa + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * sb + rn[None, :]
    a, b = tl.load(a_ptrs), tl.load(b_ptrs)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(BLOCK_K, K, BLOCK_K):
        next_a = tl.load(a_ptrs + k)
        next_b = tl.load(b_ptrs + k * sb)
        acc = tl.dot(a, b, acc)
        a = next_a
        b = next_b
    acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def while_matmul(
    a_ptr, b_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * sa + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    k = K
    while k > 0:
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * sb
        k -= BLOCK_K
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@jit
def skipping_matmul(
    a_ptr, b_ptr, live_ptr, c_ptr, K, sa, sb, sc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A branch around the loads and the dot."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        if tl.load(live_ptr + k // BLOCK_K) != 0:
            a = tl.load(a_ptr + rm[:, None] * sa + (k + rk)[None, :])
            b = tl.load(b_ptr + (k + rk)[:, None] * sb + rn[None, :])
            acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


def _tutorial(label: str, m: int, n: int, k: int, warps: int, types: str, stages: int = 3):
    words = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8, "EVEN_K": False}
    return case(f"tutorial {label} {m}x{n}x{k}, {warps} warps", tutorial_matmul, types,
                **words, num_warps=warps, num_stages=stages)  # fmt: skip


_ROWS = "i32/16 i32=1"
_SIZES = "i32/16 i32/16 i32/16"
_HALF = f"*fp16 *fp16 *fp16 {_SIZES} {_ROWS} {_ROWS} {_ROWS}"
_THREE = "*fp16 *fp16 *fp16"
_BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
_LOOPED = f"{_THREE} i32/16 i32/16 i32/16 i32/16"
_BOUNDED = f"{_THREE} {_SIZES} i32/16 i32/16 i32/16"
CASES = (
    _tutorial("fp16", 128, 256, 64, 8, _HALF),
    _tutorial("fp16", 128, 128, 64, 4, _HALF),
    _tutorial("fp16", 128, 256, 64, 4, _HALF),
    _tutorial("fp16", 32, 128, 64, 4, _HALF),
    _tutorial("fp16", 16, 128, 64, 4, _HALF),
    _tutorial("fp16 b columns", 128, 256, 64, 8,
              f"{_THREE} {_SIZES} {_ROWS} i32=1 i32/16 {_ROWS}"),
    _tutorial("fp8", 128, 256, 128, 8,
              f"*fp8e4nv *fp8e4nv *fp16 {_SIZES} {_ROWS} i32=1 i32/16 {_ROWS}"),
    _tutorial("tf32", 128, 128, 32, 8, f"*fp32 *fp32 *fp32 {_SIZES} {_ROWS} {_ROWS} {_ROWS}"),
    _tutorial("fp16 odd K", 128, 128, 64, 8,
              f"{_THREE} i32/16 i32/16 i32 i32 i32=1 {_ROWS} {_ROWS}"),
    _tutorial("fp16 any strides", 128, 128, 64, 8, f"{_THREE} {_SIZES} {'i32 ' * 6}"),
    _tutorial("fp16 any sizes", 128, 128, 64, 8,
              f"{_THREE} i32 i32 i32 {'i32 i32=1 ' * 3}"),
    case("indices", indexed_matmul, _BOUNDED, **_BLOCKS),
    case("masks, B first", masked_matmul, _BOUNDED, **_BLOCKS),
    case("batched", batched_matmul, f"{_BOUNDED} i32/16 i32/16 i32/16", **_BLOCKS),
    case("peeled", peeled_matmul, _BOUNDED, **_BLOCKS),
    case("tl.trans", transposing_matmul, _LOOPED, **_BLOCKS),
    case("split K", split_k_matmul, f"*fp16 *fp16 *fp32 {_LOOPED.removeprefix(_THREE)}",
         **_BLOCKS, SPLITS=4),
    case("K downwards", downward_matmul, _LOOPED, **_BLOCKS),
    case("manual prefetch", prefetching_matmul, _LOOPED, **_BLOCKS),
    case("while", while_matmul, _LOOPED, **_BLOCKS),
    case("branch in the loop", skipping_matmul, _LOOPED.replace("*fp16 i32", "*i32 *fp16 i32"),
         **_BLOCKS),
)  # fmt: skip
