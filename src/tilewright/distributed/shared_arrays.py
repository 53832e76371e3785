"""Arrays that other ranks can access, filled with zeros.

On a CPU an array is a file in memory (memfd): a peer opens it through `/proc/PID/fd`, and it goes
when the last process that maps it ends, however that ends. On GPUs it is symmetric memory of
torch, or memory of the device where the ranks are threads of one process.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from bisect import bisect_right
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.distributed.rank_groups import Group, torch_group
from tilewright.support import errors, import_late
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """A mapped file in memory. start: its address; fd: its descriptor in this process; memory:
    its mapping"""

    start: int
    size: int
    fd: int
    memory: weakref.ref[mmap.mmap]


_segments: list[Segment] = []
"""The shared segments of this process, by address."""


def segment_of(address: int) -> Segment | None:
    """The shared segment around an address."""
    index = bisect_right(_segments, address, key=lambda segment: segment.start) - 1
    if index < 0:
        return None
    found = _segments[index]
    return found if address < found.start + found.size else None


def zeros(shape: int | tuple[int, ...], dtype: Any, group: Group, device: object = "cpu") -> Any:
    """An array of zeros for `peers`; collective on GPUs.

    dtype: of NumPy, for an array, or of torch, for a tensor; device: as torch writes it; on a GPU
    the dtype is torch's. Raises UnmappedPeer where this system has no shared memory.
    """
    whole = (shape,) if isinstance(shape, int) else tuple(shape)
    if str(device).partition(":")[0] == "cpu":
        return _on_host(whole, dtype, group)
    torch: Any = import_late("torch")
    process_group = torch_group(group)
    if process_group is None:
        made = torch.zeros(whole, dtype=dtype, device=device)
    else:
        memory: Any = import_late("torch.distributed._symmetric_memory")
        made = memory.empty(*whole, dtype=dtype, device=device).zero_()
    # A peer may write as soon as it has the address.
    torch.cuda.synchronize(made.device)
    return made


def _on_host(shape: tuple[int, ...], dtype: Any, group: Group) -> Any:
    torch: Any = sys.modules.get("torch")
    is_torch = isinstance(dtype, getattr(torch, "dtype", ()))
    itemsize = dtype.itemsize if is_torch else np.dtype(dtype).itemsize
    memory = _new_segment(max(1, prod(shape) * itemsize), group)
    if is_torch:
        return torch.frombuffer(memory, dtype=dtype, count=prod(shape)).reshape(shape)
    return np.frombuffer(memory, dtype, prod(shape)).reshape(shape)


def _new_segment(size: int, group: Group) -> mmap.mmap:
    if sys.platform != "linux":
        problem = f"{sys.platform} has no memory files"
        raise errors.UnmappedPeer(group.rank, group.rank, problem, "run the ranks on Linux")
    fd = os.memfd_create("tilewright")
    os.ftruncate(fd, size)
    memory = mmap.mmap(fd, size)
    start = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    segment = Segment(start, size, fd, weakref.ref(memory))
    _segments.append(segment)
    _segments.sort(key=lambda segment: segment.start)
    weakref.finalize(memory, _forget, segment)
    return memory


def _forget(segment: Segment) -> None:
    _segments.remove(segment)
    os.close(segment.fd)


def mapped_segment(pid: int, fd: int, size: int) -> mmap.mmap:
    """The memory of another process of this host. Raises OSError."""
    with Path(f"/proc/{pid}/fd/{fd}").open("r+b") as file:
        return mmap.mmap(file.fileno(), size)
