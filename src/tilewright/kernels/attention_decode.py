"""Decoding: attention of one query per sequence, over keys that may be paged.

The keys of a sequence are split among programs, whose results a second kernel combines, as in Dao
et al., "Flash-Decoding for long-context inference" (2023); pages are those of Kwon et al.,
"PagedAttention" (2023).
"""

# ruff: noqa: N803 -- constants of kernels

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty, is_on_cpu, strides
from tilewright.kernels.attention_blocks import LOG2_E, batch_and_head, load_rows
from tilewright.kernels.matmul_plan import current_gpu
from tilewright.runtime import cdiv, jit, next_power_of_2


@jit
def rows_of_keys(base, pages, sequence, start, length, of_page, row, BLOCK: tl.constexpr,
                 PAGE: tl.constexpr, SIZE: tl.constexpr):  # fmt: skip
    """A block of keys or values of a sequence; pages: None, or a pointer to its page numbers."""
    columns = start + tl.arange(0, BLOCK)
    if pages is None:
        return load_rows(base + sequence * of_page, columns, row, length, SIZE)
    if PAGE % BLOCK == 0:
        first = tl.load(pages + start // PAGE).to(tl.int64) * of_page - start // PAGE * PAGE * row
        return load_rows(base + first, columns, row, length, SIZE)
    there = columns < length
    page = tl.load(pages + columns // PAGE, mask=there, other=0)
    where = page.to(tl.int64) * of_page + columns % PAGE * row
    inner = tl.arange(0, SIZE)
    return tl.load(base + where[:, None] + inner[None, :], mask=there[:, None], other=0.0)


@jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, part_ptr, lse_ptr, lengths_ptr, pages_ptr,
    q_batch, q_head, k_page, k_head, k_row, v_page, v_head, v_row, pages_batch,
    heads, keys, scale,
    BLOCK_N: tl.constexpr, ROWS: tl.constexpr, SHARED: tl.constexpr, HEAD: tl.constexpr,
    VALUE: tl.constexpr, PAGE: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Attend with the queries that share a head of keys over one part of the keys of a sequence.

    The grid has one dimension, since the others allow fewer programs: parts first, then heads.
    keys: in a part, a multiple of BLOCK_N; ROWS: SHARED, padded to the rows of an MMA.
    """
    split, pair = tl.program_id(0) % SPLITS, tl.program_id(0) // SPLITS
    batch, of_k = batch_and_head(pair, heads // SHARED)
    length = tl.load(lengths_ptr + batch)
    member = tl.arange(0, ROWS)
    q_base = q_ptr + batch * q_batch + of_k * SHARED * q_head
    q = load_rows(q_base, member, q_head, SHARED, HEAD)
    k_base, v_base = k_ptr + of_k * k_head, v_ptr + of_k * v_head
    pages = pages_ptr + batch * pages_batch if pages_ptr is not None else None
    factor = scale * LOG2_E
    top, total = tl.full((ROWS,), -float("inf"), tl.float32), tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, VALUE), tl.float32)
    for j in range(split * keys, min(length, split * keys + keys), BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        k = rows_of_keys(k_base, pages, batch, j, length, k_page, k_row, BLOCK_N, PAGE, HEAD)
        scores = tl.where((columns < length)[None, :], tl.dot(q, tl.trans(k)), -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        shrink, weights = (
            tl.exp2((top - higher) * factor),
            tl.exp2((scores - higher[:, None]) * factor),
        )
        total = total * shrink + tl.sum(weights, axis=1)
        v = rows_of_keys(v_base, pages, batch, j, length, v_page, v_row, BLOCK_N, PAGE, VALUE)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        top = higher
    head = batch * heads + of_k * SHARED + member
    place, inside = head * SPLITS + split, member < SHARED
    outer = tl.arange(0, VALUE)
    acc /= tl.where(total == 0, 1.0, total)[:, None]
    tl.store(part_ptr + place[:, None] * VALUE + outer[None, :],
             acc.to(part_ptr.dtype.element_ty), mask=inside[:, None])  # fmt: skip
    if SPLITS > 1:
        lse = tl.where(total == 0, -float("inf"), top * factor + tl.log2(total))
        tl.store(lse_ptr + place, lse, mask=inside)


@jit
def join_kernel(part_ptr, lse_ptr, out_ptr, VALUE: tl.constexpr, SPLITS: tl.constexpr,
                PADDED: tl.constexpr):  # fmt: skip
    """Combine the parts of one head of a query, weighted by their sums of exponentials."""
    head, split, outer = tl.program_id(0), tl.arange(0, PADDED), tl.arange(0, VALUE)
    there = split < SPLITS
    lse = tl.load(lse_ptr + head * SPLITS + split, mask=there, other=-float("inf"))
    top = tl.max(lse, axis=0)
    share = tl.where(lse == -float("inf"), 0.0, tl.exp2(lse - top))
    total = tl.sum(share, axis=0)
    place = head * SPLITS + split
    part = tl.load(part_ptr + place[:, None] * VALUE + outer[None, :], mask=there[:, None], other=0)
    result = tl.sum(part * share[:, None], axis=0) / tl.where(total == 0, 1.0, total)
    tl.store(out_ptr + head * VALUE + outer, result.to(out_ptr.dtype.element_ty))


PROGRAMS = 8
"""Programs per multiprocessor, which determine the loads in flight."""

MOST_SPLITS = 64


def attention_decode(
    q: Array, k: Array, v: Array, lengths: Array, pages: Array | None = None, scale: float = 0.0
) -> Array:
    """softmax(q @ k^T * scale) @ v of one query q[i] for each sequence i, as an array like q.

    q: (batch, heads, size). k, v: (batch, heads of keys, rows, size), of which sequence i has
    `lengths[i]`; or, with `pages` (batch, most pages of a sequence) of int32, (pages, rows of a
    page, heads of keys, size). scale: 1 / sqrt(size) unless given, positive. The result of a
    sequence without keys is zeros. Raises ValueError: mismatched numbers of heads.
    """
    batch, heads, size = (int(n) for n in q.shape)
    value, of_keys = int(v.shape[-1]), int(k.shape[2 if pages is not None else 1])
    if of_keys == 0 or heads % of_keys or int(k.shape[-1]) != size:
        raise ValueError(f"mismatched shapes: queries {tuple(q.shape)}, keys {tuple(k.shape)}")
    page = int(k.shape[1]) if pages is not None else 0
    longest = page * int(pages.shape[1]) if pages is not None else int(k.shape[2])
    block = 64
    splits = 1 if is_on_cpu(q) else _splits(batch * of_keys, longest, block)
    keys = cdiv(cdiv(longest, splits), block) * block
    splits = max(1, cdiv(longest, keys)) if keys else 1
    result = empty(q, (batch, heads, value))
    part, lse = result, None
    if splits > 1:
        part = empty(q, (batch, heads, splits, value), "float32")
        lse = empty(q, (batch, heads, splits), "float32")
    steps = [_page_head_row(x, pages is not None) for x in (k, v)]
    decode_kernel[(splits * of_keys * batch,)](
        q, k, v, part, lse, lengths, pages, *strides(q)[:2], *steps[0], *steps[1],
        0 if pages is None else strides(pages)[0], heads, keys, scale or size**-0.5,
        BLOCK_N=block, ROWS=max(16, next_power_of_2(heads // of_keys)), SHARED=heads // of_keys,
        HEAD=size, VALUE=value, PAGE=page, SPLITS=splits, num_warps=4, num_stages=3,
    )  # fmt: skip
    if splits > 1:
        join_kernel[(batch * heads,)](
            part, lse, result, VALUE=value, SPLITS=splits, PADDED=next_power_of_2(splits)
        )
    return result


def _splits(programs: int, longest: int, block: int) -> int:
    """The number of parts of the keys that fills the GPU."""
    wanted = cdiv(PROGRAMS * current_gpu().multiprocessors, max(programs, 1))
    return max(1, min(wanted, MOST_SPLITS, longest // (4 * block)))


def _page_head_row(array: Array, paged: bool) -> tuple[int, int, int]:
    """The strides of pages or batches, of heads and of rows."""
    first, second, third, _ = strides(array)
    return (first, third, second) if paged else (first, second, third)
