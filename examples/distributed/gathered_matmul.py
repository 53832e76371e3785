"""all_gather(a) @ b, by products of the shards that have arrived while others are copied.

Each rank holds rows of `a` and columns of `b`: it multiplies its own rows first, while a copy
engine pulls the rows of its peers through their addresses, in another stream.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tilewright.distributed import Group, Signals, peers, zeros
from tilewright.kernels import matmul


class GatheredMatmul:
    """The product for shards (rows, k) of one dtype; collective.

    shard: this rank's rows, to be written by the caller
    """

    def __init__(
        self, group: Group, rows: int, k: int, dtype: Any, device: object = "cpu",
        seconds: float = 10.0,
    ) -> None:  # fmt: skip
        self.rank, self.world, self.rows = group.rank, group.size, rows
        self.shard = zeros((rows, k), dtype, group, device)
        self.peers = peers(self.shard, group)
        self.signals = Signals.of(group, 2, seconds, device)
        self.side = Side(device)
        self.pulled = [zeros_like(self.shard) for _ in range(self.world - 1)]

    def __call__(self, b: Any, out: Any) -> None:
        """out = the rows of all ranks, in the order of ranks, times b; (world * rows, columns)."""
        self.side.start()
        arrived = []
        with self.side.use():
            self.signals.barrier()  # the shards of all ranks are written
            for step, rows in enumerate(self.pulled, 1):
                self.peers.pull((self.rank + step) % self.world, rows)
                arrived.append(self.side.mark())
            self.signals.barrier()  # all have read this rank's shard
        self._multiply(self.rank, self.shard, b, out)
        for step, rows in enumerate(self.pulled, 1):
            self.side.wait(arrived[step - 1])
            self._multiply((self.rank + step) % self.world, rows, b, out)
        self.side.join()

    def _multiply(self, source: int, rows: Any, b: Any, out: Any) -> None:
        matmul(rows, b, out=out[source * self.rows : (source + 1) * self.rows])


def zeros_like(x: Any) -> Any:
    """Zeros in ordinary memory, like an array of NumPy or a tensor."""
    return x * 0


class Side:
    """A second stream of a GPU; on a CPU nothing, where all runs in order."""

    def __init__(self, device: object) -> None:
        self._stream: Any = None
        if str(device) != "cpu":
            import torch

            self._cuda = torch.cuda
            self._stream = torch.cuda.Stream(device)

    def start(self) -> None:
        """Later work there comes after the current stream's so far."""
        if self._stream is not None:
            self._stream.wait_stream(self._cuda.current_stream())

    def use(self) -> Any:
        """A block whose launches and copies go there."""
        return nullcontext() if self._stream is None else self._cuda.stream(self._stream)

    def mark(self) -> Any:
        """An event after its work so far."""
        return None if self._stream is None else self._stream.record_event()

    def wait(self, event: Any) -> None:
        """Later work in the current stream comes after an event."""
        if event is not None:
            self._cuda.current_stream().wait_event(event)

    def join(self) -> None:
        """Later work in the current stream comes after its work so far."""
        if self._stream is not None:
            self._cuda.current_stream().wait_stream(self._stream)
