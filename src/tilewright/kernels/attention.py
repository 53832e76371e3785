"""Attention forward with an online softmax: keys and values stream past one block of queries."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty, is_on_cpu, strides
from tilewright.kernels.matmul_plan import HOPPER, current_gpu
from tilewright.runtime import cdiv, jit


@jit
def block_and_head(GROUP: tl.constexpr):
    """Which block of which head a program computes: of GROUP heads, one block after the other."""
    blocks, heads = tl.num_programs(0), tl.num_programs(1)
    number = tl.program_id(1) * blocks + tl.program_id(0)
    first = number // (blocks * GROUP) * GROUP
    size = min(heads - first, GROUP)
    number = number % (blocks * GROUP)
    return number // size, first + number % size


@jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, stride_h, stride_l, length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, CAUSAL: tl.constexpr,
    GROUP: tl.constexpr = tl.constexpr(1),  # noqa: B008
):  # fmt: skip
    """One block of queries of one head; q, k, v and out have the same strides.

    The grid is blocks x heads. Of each GROUP of heads, first all first blocks are computed; if
    causal, the last, which take longest. scale is positive. Running maximum and sum per row, as in
    Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), and Dao et al.,
    "FlashAttention" (2022).
    """
    block, head = block_and_head(GROUP)
    if CAUSAL:
        block = tl.num_programs(0) - 1 - block
    start = block * BLOCK_M
    head = head * stride_h
    rows = start + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, HEAD)
    q = tl.load(
        q_ptr + head + rows[:, None] * stride_l + inner[None, :],
        mask=rows[:, None] < length, other=0.0,
    )  # fmt: skip
    factor = scale * 1.4426950408889634
    top = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    end = min(start + BLOCK_M, length) if CAUSAL else length
    for j in range(0, end, BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        there = columns[:, None] < length
        offsets = head + columns[:, None] * stride_l + inner[None, :]
        k = tl.load(k_ptr + offsets, mask=there, other=0.0)
        scores = tl.dot(q, tl.trans(k))
        visible = columns[None, :] < length
        if CAUSAL:
            visible = visible & (columns[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        shrink = tl.exp2((top - higher) * factor)
        weights = tl.exp2(scores * factor - (higher * factor)[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + offsets, mask=there, other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        top = higher
    tl.store(
        out_ptr + head + rows[:, None] * stride_l + inner[None, :],
        (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=rows[:, None] < length,
    )  # fmt: skip


CPU_BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64}

_HOPPER_TILES = {64: (128, 64, 4, 3), 128: (128, 128, 8, 2), 256: (128, 64, 8, 2)}
"""Blocks of queries and keys, warps and stages for elements of 16 bits, by the size of a head:
products of 64 rows of a warpgroup, beside which the exponentials of other scores are computed."""

_CACHED_BYTES = 32 << 20
"""Of keys and values, which stay in the second-level cache of Hopper."""


def gpu_launch_options(head: int, item_bytes: int, capability: int = 0) -> dict[str, int]:
    """Blocks and launch options: the fastest on an H200, at a length of 4096, that do not spill.

    Elsewhere, up to heads of 128, they fit the 99 KB of shared memory that the smallest
    architectures have; fp32 with heads of 256 needs 139 KB, and spills.
    """
    if capability == HOPPER and item_bytes == 2 and head in _HOPPER_TILES:
        names = "BLOCK_M", "BLOCK_N", "num_warps", "num_stages"
        return dict(zip(names, _HOPPER_TILES[head], strict=True))
    wide = item_bytes > 2
    return {
        "BLOCK_M": 128 if head <= (32 if wide else 128) else 64,
        "BLOCK_N": 32 if wide or head > 128 else 64,
        "num_warps": 8 if not wide and head > 64 else 4,
        "num_stages": 3 if head <= 64 else 2,
    }


def _group(heads: int, length: int, row_bytes: int) -> int:
    """Heads whose keys and values are read again from the cache, a power of two."""
    fitting = min(_CACHED_BYTES // max(2 * length * row_bytes, 1), heads)
    return 1 << max(fitting, 1).bit_length() - 1


def attention(q: Array, k: Array, v: Array, causal: bool = False, scale: float = 0.0) -> Array:
    """softmax(q @ k^T * scale) @ v for contiguous arrays (heads, length, head size).

    scale: 1 / sqrt(head size) unless given; the head size is a power of two.
    """
    heads, length, size = (int(n) for n in q.shape)
    result, item = empty(q, (heads, length, size)), int(q.itemsize)
    if scale < 0:
        q, scale = -q, -scale
    options = CPU_BLOCKS
    if not is_on_cpu(q):
        options = gpu_launch_options(size, item, current_gpu().capability)
        options["GROUP"] = _group(heads, length, size * item) if causal else 1
    attention_kernel[(cdiv(length, options["BLOCK_M"]), heads)](
        q, k, v, result, *strides(q)[:2], length, scale or size**-0.5,
        **options, HEAD=size, CAUSAL=causal,
    )  # fmt: skip
    return result
