"""all_gather(a) @ b, by matmuls of the shards that have arrived while others are copied.

Each rank holds rows of `a` and columns of `b`: it multiplies its own rows first, while the rows of
its peers are copied through their addresses, in another stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ranks import Side, fill, fp32, on_host, run_ranks, say

from tilewright.distributed import Group, Signals, peers, zeros
from tilewright.kernels import matmul


class GatheredMatmul:
    """The matmul for shards (rows, k) of one dtype; collective.

    shard: this rank's rows, to be written by the caller
    """

    def __init__(
        self, group: Group, rows: int, k: int, dtype: Any, device: object = "cpu",
        seconds: float = 10.0,
    ) -> None:  # fmt: skip
        self.group, self.rank, self.world, self.rows = group, group.rank, group.size, rows
        self.shard = zeros((rows, k), dtype, group, device)
        self.peers = peers(self.shard, group)
        self.signals = Signals.of(group, 2, seconds, device)
        self.side = Side(device)
        self.pulled = [zeros_like(self.shard) for _ in range(self.world - 1)]
        self._loaded: set[tuple[int, ...]] = set()

    def __call__(self, b: Any, out: Any) -> None:
        """out = the rows of all ranks, in the order of ranks, times b; (world * rows, columns).

        All ranks pass arrays of the same shapes."""
        self._load_kernels(b, out)
        # Before the first matmul, whose programs would leave this kernel no registers.
        self.signals.barrier()  # the shards of all ranks are written
        self.side.start()
        arrived = []
        with self.side.use():
            for step, rows in enumerate(self.pulled, 1):
                self.peers.pull((self.rank + step) % self.world, rows)
                arrived.append(self.side.mark())
            self.signals.barrier()  # all have read this rank's shard
        self._multiply(self.rank, self.shard, b, out)
        for step, rows in enumerate(self.pulled, 1):
            self.side.wait(arrived[step - 1])
            self._multiply((self.rank + step) % self.world, rows, b, out)
        self.side.join()

    def _load_kernels(self, b: Any, out: Any) -> None:
        """Launch the matmuls of a new shape on all ranks before a kernel waits for peers.

        Ranks that are threads share CUDA's locks: loading a kernel waits for kernels that run."""
        if tuple(b.shape) not in self._loaded:
            self.group.exchange("launched")  # all ranks have, so no earlier barrier waits for long
            for step, rows in enumerate([self.shard, *self.pulled]):
                self._multiply((self.rank + step) % self.world, rows, b, out)
            self.group.exchange("loaded")
            self._loaded.add(tuple(b.shape))

    def _multiply(self, source: int, rows: Any, b: Any, out: Any) -> None:
        matmul(rows, b, out=out[source * self.rows : (source + 1) * self.rows])


def zeros_like(x: Any) -> Any:
    """Zeros in ordinary memory, like an array of NumPy or a tensor."""
    return x * 0


def main(group: Group, device: str) -> None:
    """Multiply on all ranks, and compare with the matmul of the whole matrices."""
    shards = [np.random.default_rng(rank).normal(size=(96, 64)) for rank in range(group.size)]
    b = np.random.default_rng(99 + group.rank).normal(size=(64, 64))
    dtype = fp32(device)
    gathered = GatheredMatmul(group, 96, 64, dtype, device)
    fill(gathered.shard, shards[group.rank].astype(np.float32))
    right = fill(gathered.shard[:64] * 0, b.astype(np.float32))
    out = zeros((96 * group.size, 64), dtype, group, device)
    for _ in range(3):
        gathered(right, out)
    gathered.signals.check()
    wrong = np.abs(on_host(out) - np.concatenate(shards) @ b).max()
    say(f"rank {group.rank}: largest difference {wrong:.1e}")


if __name__ == "__main__":
    run_ranks(main)
