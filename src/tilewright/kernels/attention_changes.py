"""Gradients of scores, kept for the gradient of queries, which then is one product of them.

Computed anew, they cost that gradient two products and the exponentials again; kept, 2 bytes each
to write and to read. They are kept of as many heads at a time as `MOST_BYTES` holds, where there is
so much memory.
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
"""Of gradients of scores that are kept at a time. With 2 GiB, which is all of 4096 keys and 16,384
tokens, gradients are 1 to 2 % faster on an H200, with half a GiB 2 % slower."""

_HEAD = 128
"""Size of rows for which they are kept: gradients take 0.83 to 0.9 of the time then, those of heads
of 64, of which twice as many scores are as much work, 1.05 (H200, 4096 keys)."""

_LEAST_PROGRAMS = 1024
"""Of a launch for some of the heads whose later keys are hidden: the longest of fewer would run
alone at its end, each time."""

CHANGE_TILES: dict[bool, Tile] = {False: (256, 64, 8, 4), True: (128, 64, 8, 4)}
"""Of products of them, by whether later keys are hidden: the fastest of five on an H200."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Those that are kept at a time: of heads of keys, each for `shared` heads of queries; parts:
    the first head of each time, and how many; keys, queries: padded to whole blocks."""

    heads: int
    parts: tuple[tuple[int, int], ...]
    shared: int
    keys: int
    queries: int
    tile: Tile

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the array that holds them, queries innermost."""
        return self.heads * self.shared, self.keys, self.queries

    @property
    def steps(self) -> tuple[int, int]:
        """Elements from head of queries to head, and from key to key."""
        return self.keys * self.queries, self.queries


def kept_changes(
    like: Array, sizes: Sizes, key_block: int, hides_later: bool
) -> tuple[Changes, Array] | None:
    """With an array for them, of the library and element type of `like`; None where they are
    computed anew. key_block: of the kernel that computes them; hides_later: later keys."""
    if is_on_cpu(like) or current_gpu().capability != HOPPER or int(like.itemsize) != 2:
        return None
    if not sizes.head == sizes.value == _HEAD or sizes.shared > 1:
        return None
    kept = plan_changes(sizes, key_block, CHANGE_TILES[hides_later], MOST_BYTES // 2)
    if kept and len(kept.parts) > 1 and hides_later:
        kept = kept if kept.heads * kept.keys // key_block >= _LEAST_PROGRAMS else None
    try:
        return kept and (kept, empty(like, kept.shape))
    except synchronous(Exception) as error:
        if type(error).__name__ != "OutOfMemoryError":  # torch's, and CuPy's
            raise
        return None


def plan_changes(sizes: Sizes, key_block: int, tile: Tile, most: int) -> Changes | None:
    """Those of as many heads at a time as have `most` elements; None if one has more, or none."""
    keys = cdiv(sizes.k_length, key_block) * key_block
    queries = cdiv(sizes.q_length, tile[0]) * tile[0]
    of_head = sizes.shared * keys * queries
    heads = sizes.batch * sizes.heads // sizes.shared
    if not heads or not 0 < of_head <= most:
        return None
    count = cdiv(heads, cdiv(heads, most // of_head))
    parts = tuple((first, min(count, heads - first)) for first in range(0, heads, count))
    return Changes(count, parts, sizes.shared, keys, queries, tile)


@jit
def in_runs(changes):
    """Gradients of scores whose columns are in the order of `rows_of_runs`: of 32 a thread has
    eight side by side, which it stores at once."""
    N: tl.constexpr = changes.shape[0]
    M: tl.constexpr = changes.shape[1]
    if M < 32:
        return changes
    return changes.reshape(N, M // 32, 4, 4, 2).permute(0, 1, 3, 2, 4).reshape(N, M)


@jit
def kept_from(changes_ptr, of_change, of_key, pair, start, SHARED: tl.constexpr):
    """Where those of a pair of batch and head of keys are kept, from a key on, counted from the
    first pair that is kept; None if they are not. changes_ptr: of all, or None; of_change, of_key:
    elements from head of queries to head, and from key to key."""
    if changes_ptr is None:
        return None
    return changes_ptr + pair.to(tl.int64) * SHARED * of_change + start.to(tl.int64) * of_key


@jit
def keep_changes(kept, changes, rows, shared, of_change, of_key):
    """Those of a block of keys and queries, stored; kept: of `kept_from`; shared: which head."""
    if kept is not None:
        key = tl.arange(0, changes.shape[0])[:, None]
        where = kept + shared * of_change + key * of_key + rows[None, :]
        # the mask says that blocks of an iteration are apart
        tl.store(where, in_runs(changes), mask=rows[None, :] < of_key)
    return changes


@jit
def rows_of_runs(BLOCK: tl.constexpr):
    """Which rows of a block the columns are that `in_runs` has."""
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
    """The gradient of one block of queries of one head: a product of gradients of scores and keys.

    first: pair of batch and head that is kept first; of_head, of_key: elements from pair to pair
    and from key to key. Blocks are whole, as those of `Changes`.
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


def multiply_changes(
    kept: Changes, changes: Array, k: Array, dq: Array, part: tuple[int, int], sizes: Sizes,
    scale: float, group: int, constants: dict[str, Any],
) -> None:  # fmt: skip
    """The gradients of the queries that share a part's heads of keys; group: asked of `grid_of`."""
    m, n, warps, stages = kept.tile
    first, pairs = part[0], part[1] * kept.shared
    grid, group = grid_of(cdiv(sizes.q_length, m), pairs, common_group(group, pairs))
    words = {name: constants[name] for name in ("HEAD", "SHARED", "LEFT", "RIGHT", "AT_END")}
    queries_product_kernel[grid](
        changes, k, dq, *kept.steps, first * kept.shared, *row_strides(k), *row_strides(dq),
        sizes.heads, sizes.q_length, sizes.k_length, scale, BLOCK_M=m, BLOCK_N=n, GROUP=group,
        num_warps=warps, num_stages=stages, **words,
    )  # fmt: skip
