"""All-reduce over peer pointers: one-shot and two-shot, in one kernel launch each.

One-shot: each rank stores its elements into a buffer on every rank, signals, waits for the signals
of the others, and adds what has arrived. Two-shot: each rank adds one part of the elements, and
stores the sum on every rank; it moves less with more than two ranks.

Programs work in rounds of a few kilobytes. Buffers alternate between two halves: a rank that writes
a half again has received the signal of the round in between, which its peer sent after it had read
this half. Each program has buffers of its own, so that grids of any size may follow each other.
"""

# ruff: noqa: N803 -- constants of kernels

from __future__ import annotations

from typing import Any

import numpy as np
from ranks import fill, fp32, on_host, run_ranks, say

import tilewright
import tilewright.language as tl
from tilewright.distributed import (
    Group,
    Signals,
    barrier,
    keep_epoch,
    last_epoch,
    peers,
    zeros,
)  # fmt: skip

ROUND_BYTES = 16384
"""Bytes of a buffer that a program fills per round and rank."""


@tilewright.jit
def total_of(
    mine, received, RANK: tl.constexpr, WORLD: tl.constexpr,
    BLOCK: tl.constexpr, ROUND: tl.constexpr,
):  # fmt: skip
    """The sum of a block of this rank and those received, in fp32, in the order of ranks."""
    total = tl.zeros((BLOCK,), tl.float32)
    for source in tl.static_range(WORLD):
        if source == RANK:
            total += mine.to(tl.float32)
        else:
            total += tl.load(received + source * ROUND + tl.arange(0, BLOCK)).to(tl.float32)
    return total


@tilewright.jit
def one_shot_kernel(
    x, out, n, buffers, pad, signals, timeout_ns,
    RANK: tl.constexpr, WORLD: tl.constexpr, LANES: tl.constexpr,
    BLOCK: tl.constexpr, ROUND: tl.constexpr,
):  # fmt: skip
    """out = the sum of x over all ranks, added in the order of ranks; n elements."""
    slot, i = tl.program_id(0), tl.arange(0, BLOCK)
    element = tl.pointer_type(x.dtype.element_ty)
    epoch = last_epoch(pad, slot)
    for start in range(slot * BLOCK, n, tl.num_programs(0) * BLOCK):
        epoch += 1
        at = (slot * 4 + epoch % 2) * WORLD * ROUND
        mine = tl.load(x + start + i, start + i < n, other=0)
        for peer in tl.static_range(1, WORLD):
            theirs = tl.load(buffers + (RANK + peer) % WORLD).to(element)
            tl.store(tl.multiple_of(theirs, 16) + at + RANK * ROUND + i, mine)
        barrier(pad, signals, slot, RANK, epoch, timeout_ns, WORLD, LANES)
        received = tl.multiple_of(tl.load(buffers + RANK).to(element), 16) + at
        total = total_of(mine, received, RANK, WORLD, BLOCK, ROUND)
        tl.store(out + start + i, total.to(out.dtype.element_ty), start + i < n)
    keep_epoch(pad, slot, epoch)


@tilewright.jit
def two_shot_kernel(
    x, out, n, buffers, pad, signals, timeout_ns,
    RANK: tl.constexpr, WORLD: tl.constexpr, LANES: tl.constexpr,
    BLOCK: tl.constexpr, ROUND: tl.constexpr,
):  # fmt: skip
    """The same; rank r adds block r of each WORLD * BLOCK elements, and stores it on all ranks."""
    slot, i = tl.program_id(0), tl.arange(0, BLOCK)
    element = tl.pointer_type(x.dtype.element_ty)
    at = (slot * 4 + 2) * WORLD * ROUND
    epoch = last_epoch(pad, slot)
    for start in range(slot * WORLD * BLOCK, n, tl.num_programs(0) * WORLD * BLOCK):
        for peer in tl.static_range(1, WORLD):
            to = (RANK + peer) % WORLD
            j = start + to * BLOCK + i
            theirs = tl.multiple_of(tl.load(buffers + to).to(element), 16) + at
            tl.store(theirs + RANK * ROUND + i, tl.load(x + j, j < n, other=0))
        barrier(pad, signals, slot, RANK, epoch + 1, timeout_ns, WORLD, LANES)
        received = tl.multiple_of(tl.load(buffers + RANK).to(element), 16) + at
        k = start + RANK * BLOCK + i
        mine = tl.load(x + k, k < n, other=0)
        total = total_of(mine, received, RANK, WORLD, BLOCK, ROUND)
        result = total.to(x.dtype.element_ty)
        for peer in tl.static_range(1, WORLD):
            theirs = tl.load(buffers + (RANK + peer) % WORLD).to(element)
            tl.store(tl.multiple_of(theirs, 16) + at + (WORLD + RANK) * ROUND + i, result)
        tl.store(out + k, result, k < n)
        epoch += 2
        barrier(pad, signals, slot, RANK, epoch, timeout_ns, WORLD, LANES)
        for peer in tl.static_range(1, WORLD):
            source = (RANK + peer) % WORLD
            j = start + source * BLOCK + i
            tl.store(out + j, tl.load(received + (WORLD + source) * ROUND + i), j < n)
    keep_epoch(pad, slot, epoch)


class AllReduce:
    """Buffers and signals of a group; collective. programs: the largest grid."""

    def __init__(
        self, group: Group, dtype: Any, device: object = "cpu", programs: int = 64,
        seconds: float = 10.0,
    ) -> None:  # fmt: skip
        self.programs = programs
        self.world, self.rank = group.size, group.rank
        self.signals = Signals.of(group, programs, seconds, device)
        size = getattr(dtype, "itemsize", None)  # of torch's dtypes, not of NumPy's classes
        self.itemsize = size if isinstance(size, int) else np.dtype(dtype).itemsize
        words = programs * 4 * group.size * ROUND_BYTES // self.itemsize
        self.buffers = peers(zeros(words, dtype, group, device), group)

    def __call__(self, x: Any, out: Any, how: str = "one-shot", **options: Any) -> None:
        """out = the sum of x over all ranks. how: "one-shot" or "two-shot"."""
        kernel = one_shot_kernel if how == "one-shot" else two_shot_kernel
        n = x.numel() if hasattr(x, "numel") else x.size
        most = ROUND_BYTES // self.itemsize
        per_round = 1 if how == "one-shot" else self.world
        block = most if n > most // 4 * per_round * self.programs else most // 4
        grid = min(self.programs, tilewright.cdiv(n, block * per_round))
        kernel[(max(1, grid),)](
            x, out, n, self.buffers.table, self.signals.pad,
            self.signals.table, self.signals.timeout_ns,
            RANK=self.rank, WORLD=self.world,
            LANES=tilewright.next_power_of_2(self.world), BLOCK=block,
            ROUND=most, **options,
        )  # fmt: skip


def main(group: Group, device: str) -> None:
    """Add up on all ranks in several sizes, and compare with NumPy."""
    dtype = fp32(device)
    reduce = AllReduce(group, dtype, device, programs=8)
    largest = 0.0
    for n in (5, 1000, 4096, 100_001):
        parts = [np.random.default_rng(rank).normal(size=n) for rank in range(group.size)]
        x = fill(zeros(n, dtype, group, device), parts[group.rank].astype(np.float32))
        for how in ("one-shot", "two-shot"):
            out = x * 0
            reduce(x, out, how)
            reduce.signals.check()
            wrong = np.abs(on_host(out) - sum(parts)).max()
            largest = float(np.maximum(largest, wrong))  # keeps NaN, as max() does not
    say(f"rank {group.rank}: largest difference {largest:.1e}")


if __name__ == "__main__":
    run_ranks(main)
