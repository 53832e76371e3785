"""Stored gradients of scores, from which the gradient of queries is one matmul.

Recomputing them costs that gradient two matmuls and the exponentials; storing them costs 2 bytes
each to write and to read. They are stored for as many heads at a time as fit `MOST_BYTES`, if that
much memory is available. Figures: docs/adr/0066-tuning-of-ready-made-kernels.md.
"""

# ruff: noqa: N803 -- constants of kernels

from __future__ import annotations

from typing import Any

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty, is_on_cpu
from tilewright.kernels.attention_arrays import Sizes, row_strides
from tilewright.kernels.attention_blocks import (
    batch_and_head,
    block_and_head,
    keys_seen,
    load_rows,
    store_rows,
)
from tilewright.kernels.attention_plan import Tile, common_group, grid_of
from tilewright.kernels.matmul_plan import HOPPER, current_gpu
from tilewright.runtime import cdiv, jit
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

MOST_BYTES = 1 << 30
"""Most bytes of gradients of scores that are stored at a time."""

_HEAD = 128
"""Head size for which they are stored; with smaller heads they are too large for the work saved."""

_LEAST_PROGRAMS = 1024
"""Least programs of a causal launch for some of the heads: with fewer, the longest would run alone
at its end, each time."""

SCORE_GRADIENT_TILES: dict[bool, Tile] = {False: (256, 64, 8, 4), True: (128, 64, 8, 4)}
"""Tiles of the matmul with the stored gradients, by whether attention is causal: fastest of
five."""


@dataclass(frozen=True, slots=True)
class ScoreGradients:
    """The stored gradients: for heads of keys, each with `shared` heads of queries; parts: the
    first head of each part, and its number of heads; keys, queries: padded to whole blocks."""

    heads: int
    parts: tuple[tuple[int, int], ...]
    shared: int
    keys: int
    queries: int
    tile: Tile

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the array that holds them, queries innermost."""
        return self.heads * self.shared, self.keys, self.queries

    @property
    def steps(self) -> tuple[int, int]:
        """The strides of heads of queries and of keys, in elements."""
        return self.keys * self.queries, self.queries


def allocate_gradients(
    like: Array, sizes: Sizes, key_block: int, hides_later: bool
) -> tuple[ScoreGradients, Array] | None:
    """Allocate an array for them, of the library and element type of `like`; None where they are
    recomputed. key_block: of the kernel that computes them; hides_later: causal."""
    if is_on_cpu(like) or current_gpu().capability != HOPPER or int(like.itemsize) != 2:
        return None
    if not sizes.head == sizes.value == _HEAD or sizes.shared > 1:
        return None
    kept = partition_heads(sizes, key_block, SCORE_GRADIENT_TILES[hides_later], MOST_BYTES // 2)
    if kept and len(kept.parts) > 1 and hides_later:
        kept = kept if kept.heads * kept.keys // key_block >= _LEAST_PROGRAMS else None
    try:
        return kept and (kept, empty(like, kept.shape))
    except synchronous(Exception) as error:
        if type(error).__name__ != "OutOfMemoryError":  # torch's, and CuPy's
            raise
        return None


def partition_heads(sizes: Sizes, key_block: int, tile: Tile, most: int) -> ScoreGradients | None:
    """Partition the heads into parts of at most `most` elements; None if one head has more, or
    none."""
    keys = cdiv(sizes.k_length, key_block) * key_block
    queries = cdiv(sizes.q_length, tile[0]) * tile[0]
    of_head = sizes.shared * keys * queries
    heads = sizes.batch * sizes.heads // sizes.shared
    if not heads or not 0 < of_head <= most:
        return None
    count = cdiv(heads, cdiv(heads, most // of_head))
    parts = tuple((first, min(count, heads - first)) for first in range(0, heads, count))
    return ScoreGradients(count, parts, sizes.shared, keys, queries, tile)


@jit
def in_runs(changes):
    """Gradients of scores with columns in the order of `rows_of_runs`: of 32, a thread holds eight
    adjacent ones, which it stores at once."""
    N: tl.constexpr = changes.shape[0]
    M: tl.constexpr = changes.shape[1]
    if M < 32:
        return changes
    return changes.reshape(N, M // 32, 4, 4, 2).permute(0, 1, 3, 2, 4).reshape(N, M)


@jit
def stored_gradients(changes_ptr, of_change, of_key, pair, start, SHARED: tl.constexpr):
    """The address of the stored gradients of a pair of batch and head of keys, from a key on; pairs
    count from the first stored one. None if none are stored. changes_ptr: of all, or None;
    of_change, of_key: strides of heads of queries and of keys."""
    if changes_ptr is None:
        return None
    return changes_ptr + pair.to(tl.int64) * SHARED * of_change + start.to(tl.int64) * of_key


@jit
def store_gradients(kept, changes, rows, shared, of_change, of_key):
    """Store the gradients of a block of keys and queries; kept: the address, or None; shared: head
    number."""
    if kept is not None:
        key = tl.arange(0, changes.shape[0])[:, None]
        where = kept + shared * of_change + key * of_key + rows[None, :]
        # the mask proves that the blocks of iterations are disjoint
        tl.store(where, in_runs(changes), mask=rows[None, :] < of_key)
    return changes


@jit
def rows_of_runs(BLOCK: tl.constexpr):
    """The rows of a block in the order of the columns of `in_runs`."""
    place = tl.arange(0, BLOCK)
    if BLOCK < 32:
        return place
    return place // 32 * 32 + place % 8 // 2 * 8 + place // 8 % 4 * 2 + place % 2


@jit
def queries_product_kernel(
    changes_ptr, k_ptr, dq_ptr, of_head, of_key, first, k_batch, k_head, k_row,
    dq_batch, dq_head, dq_row, heads, q_length, k_length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, SHARED: tl.constexpr,
    LEFT: tl.constexpr, RIGHT: tl.constexpr, AT_END: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The gradient of one block of queries of one head: gradients of scores times keys.

    first: the first stored pair of batch and head; of_head, of_key: strides of pairs and of keys.
    Blocks are whole, as those of `ScoreGradients`.
    """
    block, pair = block_and_head(GROUP, True)
    start, place = block * BLOCK_M, tl.arange(0, BLOCK_M)
    changes = changes_ptr + pair.to(tl.int64) * of_head + start
    batch, head = batch_and_head(pair + first, heads)
    k_base = k_ptr + batch * k_batch + head // SHARED * k_head
    dq = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    shift = k_length - q_length if AT_END else 0
    begin, end = keys_seen(start + shift, BLOCK_M, k_length, BLOCK_N, LEFT, RIGHT)
    for j in range(begin, end, BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        k = load_rows(k_base, columns, k_row, k_length, HEAD)
        change = tl.load(changes + columns[:, None] * of_key + place[None, :])
        dq = tl.dot(tl.trans(change), k, dq)
    dq_base = dq_ptr + batch * dq_batch + head * dq_head
    store_rows(dq_base, start + rows_of_runs(BLOCK_M), dq_row, q_length, dq * scale)


def multiply_gradients(
    kept: ScoreGradients, changes: Array, k: Array, dq: Array, part: tuple[int, int], sizes: Sizes,
    scale: float, group: int, constants: dict[str, Any],
) -> None:  # fmt: skip
    """The gradients of the queries that share a part's heads of keys; group: for `grid_of`."""
    m, n, warps, stages = kept.tile
    first, pairs = part[0], part[1] * kept.shared
    grid, group = grid_of(cdiv(sizes.q_length, m), pairs, common_group(group, pairs))
    words = {name: constants[name] for name in ("HEAD", "SHARED", "LEFT", "RIGHT", "AT_END")}
    queries_product_kernel[grid](
        changes, k, dq, *kept.steps, first * kept.shared, *row_strides(k), *row_strides(dq),
        sizes.heads, sizes.q_length, sizes.k_length, scale, BLOCK_M=m, BLOCK_N=n, GROUP=group,
        num_warps=warps, num_stages=stages, **words,
    )  # fmt: skip
