"""Device functions of the attention kernels: assignment of blocks, masks, the softmax step."""

# ruff: noqa: N803 -- constants of kernels

from __future__ import annotations

import tilewright.language as tl
from tilewright.runtime import jit

LOG2_E = tl.constexpr(1.4426950408889634)


@jit
def block_and_head(GROUP: tl.constexpr, LAST_FIRST: tl.constexpr):
    """The block and the pair of batch and head of a program.

    The grid is blocks x pairs, or GROUP pairs x blocks x groups, or, for a GROUP of 0, pairs x
    blocks. LAST_FIRST: in reverse order of blocks."""
    if GROUP == 1:
        block, blocks, pair = tl.program_id(0), tl.num_programs(0), tl.program_id(1)
    elif GROUP == 0:
        block, blocks, pair = tl.program_id(1), tl.num_programs(1), tl.program_id(0)
    else:
        block, blocks = tl.program_id(1), tl.num_programs(1)
        pair = tl.program_id(2) * GROUP + tl.program_id(0)
    if LAST_FIRST:
        block = blocks - 1 - block
        tl.assume(block >= 0)
    return block, pair


@jit
def batch_and_head(pair, heads):
    """Batch and head of a pair, in 64 bits, so that offsets of large arrays do not wrap."""
    return (pair // heads).to(tl.int64), (pair % heads).to(tl.int64)


@jit
def sequence(starts, batch, length):
    """The first row and the length of a sequence: 0 and `length`, or those in `starts`, which holds
    the first rows of all sequences and the end of the last."""
    if starts is None:
        return 0, length
    first = tl.load(starts + batch)
    return first, tl.load(starts + batch + 1) - first


@jit
def first_value(first, starts, batch, ROUND: tl.constexpr):
    """The first row of the values of a sequence whose first row is `first`: in copies by rounds,
    each packed sequence begins a new round. starts: as for `sequence`."""
    if starts is None or ROUND == 1:
        return first
    return first // ROUND * ROUND + batch * ROUND


@jit
def values_read(first, length, most, starts, batch, ROUND: tl.constexpr):
    """`first_value`, and the number of readable values from there on; most: of the longest
    sequence, padded to whole rounds."""
    if ROUND > 1:
        length = most if starts is None else tl.cdiv(length, ROUND) * ROUND
    return first_value(first, starts, batch, ROUND), length


@jit
def load_rows(base, rows, step, length, SIZE: tl.constexpr, inner_step=1):
    """A tile of rows of SIZE elements, zeros from `length` on; step: from row to row; inner_step:
    from element to element."""
    inner = tl.arange(0, SIZE) * inner_step
    where = base + rows[:, None] * step + inner[None, :]
    return tl.load(where, mask=rows[:, None] < length, other=0.0)


@jit
def store_rows(base, rows, step, length, tile):
    """Store a tile to the rows that `load_rows` loads."""
    inner = tl.arange(0, tile.shape[1])
    where = base + rows[:, None] * step + inner[None, :]
    tl.store(where, tile.to(base.dtype.element_ty), mask=rows[:, None] < length)


@jit
def keys_seen(place, count, length, BLOCK: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """The range of key blocks that any of `count` queries from a position on sees."""
    begin, end = 0, length
    if RIGHT >= 0:
        end = min(end, place + count + RIGHT)
    if LEFT >= 0:
        begin = max(0, place - LEFT) // BLOCK * BLOCK
    return begin, end


@jit
def queries_seeing(place, count, length, BLOCK: tl.constexpr, LEFT: tl.constexpr,
                   RIGHT: tl.constexpr):  # fmt: skip
    """The range of query blocks that see any of `count` keys from a position on."""
    begin, end = 0, length
    if RIGHT >= 0:
        begin = max(0, place - RIGHT) // BLOCK * BLOCK
    if LEFT >= 0:
        end = min(end, tl.cdiv(place + count + LEFT, BLOCK) * BLOCK)
    return begin, end


@jit
def is_visible(places, columns, length, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """The mask of scores: columns before `length`, at most LEFT before and RIGHT after the position
    of their row; -1: without limit."""
    seen = columns < length
    if RIGHT >= 0:
        seen = seen & (columns <= places + RIGHT)
    if LEFT >= 0:
        seen = seen & (columns >= places - LEFT)
    return seen


@jit
def softmax_step(scores, top, total, factor, lift=0.0):
    """The weights of a block of keys, the factor of the rows' earlier accumulators, and the rows'
    maxima and totals including this block; top, total: without it; lift: of `lift_of`.

    As in Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018)."""
    higher = tl.maximum(top, tl.max(scores, axis=1))
    base = tl.where(higher == -float("inf"), 0.0, higher * factor)
    weights = tl.exp2(scores * factor - (base - lift)[:, None])
    shrink = tl.exp2(top * factor - base)
    return weights, shrink, higher, added_rows(total, shrink, weights)


@jit
def added_rows(total, shrink, weights):
    """Rows' rescaled totals plus the sums of a block's weights; total: (rows,) or (rows, parts).

    In an accumulator of tensor cores, pairs of a row's columns alternate among 4 lanes: each lane
    adds up its part, so that shuffles are needed only after the last block."""
    if len(total.shape) == 1:
        return total * shrink + tl.sum(weights, axis=1)
    M: tl.constexpr = weights.shape[0]
    N: tl.constexpr = weights.shape[1]
    PARTS: tl.constexpr = total.shape[1]
    pairs = weights.reshape(M, N // (2 * PARTS), PARTS, 2)
    return total * shrink[:, None] + tl.sum(tl.sum(pairs, axis=3), axis=1)


@jit
def log_of_sum(top, total, factor, lift=0.0):
    """The natural logarithms of rows' sums of exponentials, from the results of `softmax_step`."""
    return tl.where(total == 0, -float("inf"), (top * factor + tl.log2(total) - lift) / LOG2_E)


@jit
def exponent_of(lse):
    """The base-2 logarithms of rows' sums; 0 where a row sees no key, so that its weights are
    zeros."""
    return tl.where(lse == -float("inf"), 0.0, lse * LOG2_E)


@jit
def lift_of(dtype: tl.constexpr):
    """The binary logarithm of the factor by which weights up to 1 are scaled before rounding: fp8
    loses bits below 2**-6. All sums of weights are scaled alike."""
    return 8.0 if dtype.is_fp8() else 0.0


@jit
def in_rounds(weights):
    """Weights whose columns are in the order of `transposed_values`.

    Of 16 columns of an accumulator a thread holds 2 pairs, of an 8-bit operand 4 adjacent columns:
    in this order they agree, so that no weight moves to another thread.
    """
    M: tl.constexpr = weights.shape[0]
    N: tl.constexpr = weights.shape[1]
    return weights.reshape(M, N // 16, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(M, N)


@jit
def scales_of(scale, scales, pair):
    """The factors of the scores and of the results for a pair of batch and head of keys; scale: of
    scores; scales: of queries, keys and values, or None."""
    if scales is None:
        return scale, 1.0
    of_q, of_k, of_v = scales
    return scale * _scale_of(of_q, pair) * _scale_of(of_k, pair), _scale_of(of_v, pair)


@jit
def _scale_of(scale, pair):
    """A number, or that of a pair where `scale` points to them."""
    if tl.to_tensor(scale).dtype.is_ptr():
        scale = tl.load(scale + pair)
    return scale


@jit
def dropout_mask(seed, pair, rows, columns, DROPOUT: tl.constexpr):
    """The mask of weights that dropout keeps: by Philox, equal in all passes. seed: an int, or a
    pointer to one; pair: of batch and head."""
    if tl.to_tensor(seed).dtype.is_ptr():
        seed = tl.load(seed)
    zeros = tl.zeros_like(rows + columns)
    words, _, _, _ = tl.philox(seed, zeros + columns, zeros + rows, zeros + pair, zeros)
    return tl.uint_to_uniform_float(words) >= DROPOUT


@jit
def unchanged_scores(scores, batch, head, places, columns, args):
    """The score function that changes nothing."""
    return scores


@jit
def soft_cap(scores, batch, head, places, columns, args):
    """A score function that bends scores into (-cap, cap); args: (cap,)."""
    return args[0] * tl.tanh(scores / args[0])


@jit
def soft_cap_slope(scores, batch, head, places, columns, args):
    """The derivative of `soft_cap`."""
    bent = tl.tanh(scores / args[0])
    return 1 - bent * bent


@jit
def linear_bias(scores, batch, head, places, columns, args):
    """The score function of Press et al., "Train short, test long" (ALiBi, 2022): a bias
    proportional to the distance; args: (slopes by head,)."""
    return scores - tl.load(args[0] + head) * tl.abs(places - columns).to(tl.float32)


@jit
def add_mask(scores, batch, head, places, columns, args):
    """The score function of a mask: numbers are added, booleans select scores. args: (mask,
    elements from batch to batch, head to head, query to query, key to key, queries, keys)."""
    mask, of_batch, of_head, of_query, of_key, queries, keys = args
    where = mask + batch * of_batch + head * of_head + places * of_query + columns * of_key
    inside = (places < queries) & (columns < keys)
    if mask.dtype.element_ty == tl.int1:
        return tl.where(tl.load(where, mask=inside, other=False), scores, -float("inf"))
    return scores + tl.load(where, mask=inside, other=0.0)
