"""Start of the examples' ranks, and their second streams.

torchrun --nproc-per-node 2 examples/distributed/all_reduce.py     # a GPU for each rank
python examples/distributed/all_reduce.py 4                        # 4 processes on this CPU
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from tilewright.distributed import FolderGroup, Group, group_of

Main = Callable[[Group, str], None]


def run_ranks(main: Main) -> None:
    """Run main(group, device) on the ranks of torchrun, or else on processes of this CPU."""
    if "LOCAL_RANK" in os.environ:
        _run_torch_rank(main)
        return
    world = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as folder:
        spawn = multiprocessing.get_context("spawn")
        ranks = [
            spawn.Process(target=_run_process, args=(main, folder, rank, world))
            for rank in range(world)
        ]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    if any(rank.exitcode for rank in ranks):
        sys.exit(1)


def _run_process(main: Main, folder: str, rank: int, world: int) -> None:
    main(FolderGroup(folder, rank, world), "cpu")


def _run_torch_rank(main: Main) -> None:
    import torch

    rank = int(os.environ["LOCAL_RANK"])
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
    main(group_of(), f"cuda:{rank}" if on_gpu else "cpu")
    torch.distributed.destroy_process_group()


def fp32(device: str) -> Any:
    """The dtype of NumPy for a CPU, of torch for a GPU."""
    return np.float32 if device == "cpu" else __import__("torch").float32


def fill(array: Any, numbers: Any) -> Any:
    """Store numbers of NumPy in an array of NumPy, or a tensor."""
    if hasattr(array, "copy_"):
        import torch

        return array.copy_(torch.from_numpy(numbers))
    array[...] = numbers
    return array


def say(line: str) -> None:
    """Print a line at once: those of several processes do not mix."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def on_host(array: Any) -> Any:
    """An array or a tensor as an array of NumPy."""
    return array.float().cpu().numpy() if hasattr(array, "cpu") else array


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
