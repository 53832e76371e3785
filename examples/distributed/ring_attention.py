"""Attention over a sequence that is split among ranks: keys and values pass around the ring.

Each rank has the queries, keys and values of its part of the sequence. In step s it attends to the
keys of rank + s, while those of rank + s + 1 are copied, and merges the results by the
logarithms of their sums.
"""

# ruff: noqa: N803 -- constants of kernels

from __future__ import annotations

from typing import Any

import numpy as np
from ranks import Side, fill, fp32, on_host, run_ranks, say

import tilewright
import tilewright.language as tl
from tilewright.distributed import Group, Signals, peers, zeros
from tilewright.kernels import attention


@tilewright.jit
def merge_kernel(out, log_sums, part, part_log_sums, rows, HEAD: tl.constexpr, BLOCK: tl.constexpr):
    """Add attention to further keys to rows of attention, both normalized by their own sums."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = row[:, None] * HEAD + tl.arange(0, HEAD)[None, :]
    inside = row < rows
    ours, theirs = tl.load(log_sums + row, inside), tl.load(part_log_sums + row, inside)
    top = tl.maximum(ours, theirs)
    left, right = tl.exp(ours - top), tl.exp(theirs - top)
    total = left + right
    x, y = tl.load(out + at, inside[:, None]), tl.load(part + at, inside[:, None])
    merged = (x * left[:, None] + y * right[:, None]) / total[:, None]
    tl.store(out + at, merged, inside[:, None])
    tl.store(log_sums + row, top + tl.log(total), inside)


class RingAttention:
    """Attention for parts (heads, length, head size) of one dtype; collective.

    keys: (2, heads, length, head size), this rank's keys and values, to be written by the caller
    """

    def __init__(
        self, group: Group, heads: int, length: int, head: int, dtype: Any, device: object = "cpu",
        seconds: float = 10.0,
    ) -> None:  # fmt: skip
        self.group, self.rank, self.world = group, group.rank, group.size
        self.keys = zeros((2, heads, length, head), dtype, group, device)
        self.peers = peers(self.keys, group)
        self.signals = Signals.of(group, 2, seconds, device)
        self.side = Side(device)
        self.pulled = [self.keys * 0 for _ in range(2)]
        like = self.keys[0] if str(device) == "cpu" else self.keys[0].float()
        self.result, self.part = (_fp32(like, like.shape) for _ in range(2))
        self.log_sums, self.part_log_sums = (_fp32(like, like.shape[:2]) for _ in range(2))
        self._is_loaded = False

    def __call__(self, q: Any) -> Any:
        """Attention of this rank's queries (heads, length, head size) to all keys, in fp32."""
        side, arrived = self.side, []
        self._load_kernels(q)
        self.signals.barrier()  # the keys of all ranks are written
        side.start()
        self._pull(1, arrived)
        self._attend_own(q)
        for step in range(1, self.world):
            side.wait(arrived[step - 1])
            if step + 1 < self.world:
                side.start()  # the buffer's reader of step - 1 has ended
                self._pull(step + 1, arrived)
            self._attend_part(q, self.pulled[step % 2])
        with side.use():
            self.signals.barrier()  # all have read this rank's keys
        side.join()
        return self.result

    def _load_kernels(self, q: Any) -> None:
        """Launch each kernel once on all ranks before one waits for peers.

        Ranks that are threads share CUDA's locks: loading a kernel waits for kernels that run."""
        if not self._is_loaded:
            self.group.exchange("launched")  # all ranks have, so no earlier barrier waits for long
            self._attend_own(q)
            self._attend_part(q, self.pulled[0])
            self.group.exchange("loaded")
            self._is_loaded = True

    def _attend_own(self, q: Any) -> None:
        attention(q, self.keys[0], self.keys[1], lse=self.log_sums, out=self.result)

    def _attend_part(self, q: Any, part: Any) -> None:
        attention(q, part[0], part[1], lse=self.part_log_sums, out=self.part)
        self._merge()

    def _pull(self, step: int, arrived: list[Any]) -> None:
        if self.world > 1:
            with self.side.use():
                self.peers.pull((self.rank + step) % self.world, self.pulled[step % 2])
                arrived.append(self.side.mark())

    def _merge(self) -> None:
        heads, length, head = self.result.shape
        rows = heads * length
        merge_kernel[(tilewright.cdiv(rows, 32),)](
            self.result, self.log_sums, self.part, self.part_log_sums, rows, HEAD=head, BLOCK=32
        )


def _fp32(like: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(like, np.ndarray):
        return np.zeros(shape, np.float32)
    return like.new_zeros(shape, dtype=__import__("torch").float32)


def main(group: Group, device: str) -> None:
    """Attend on all ranks, and compare with attention to all keys in fp64."""
    sizes = heads, length, head = 2, 40, 32
    parts = [np.random.default_rng(rank).normal(size=(3, *sizes)) for rank in range(group.size)]
    ring = RingAttention(group, *sizes, fp32(device), device)
    fill(ring.keys, parts[group.rank][1:].astype(np.float32))
    q = fill(ring.keys[0] * 0, parts[group.rank][0].astype(np.float32))
    ring(q)
    out = ring(q)
    ring.signals.check()
    keys, values = (np.concatenate([part[i] for part in parts], 1) for i in (1, 2))
    scores = parts[group.rank][0] @ keys.transpose(0, 2, 1) / head**0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    exact = weights / weights.sum(-1, keepdims=True) @ values
    say(f"rank {group.rank}: largest difference {np.abs(on_host(out) - exact).max():.1e}")


if __name__ == "__main__":
    run_ranks(main)
