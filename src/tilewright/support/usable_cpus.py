"""The CPUs that this process may run on, and the number of threads to use."""

from __future__ import annotations

import math
import os
import sys
from functools import cache
from pathlib import Path, PurePosixPath
from typing import ClassVar

from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.operating_system import affinity, at_fork


def usable_cpus() -> tuple[int, ...]:
    """Numbers of the usable CPUs, at least one: containers and `taskset` may restrict a process."""
    return affinity() or tuple(range(os.cpu_count() or 1))


def thread_count() -> int:
    """Number of threads for a grid, limited by a container's share of CPU time.

    With a share of 2 of 64 CPUs, 64 threads would use up the share of each 100 ms in 3, and all
    wait for the next period. A worker process gets one thread, since its siblings use the other
    CPUs.
    """
    if _Process.is_worker():
        return 1
    return max(1, math.ceil(min(len(usable_cpus()), _cpu_share())))


class _Process:
    """Kind of this process."""

    forked: ClassVar[bool] = False

    @classmethod
    def is_worker(cls) -> bool:
        """Whether it was forked, or is a daemon of `multiprocessing`: a worker of its pools or of
        torch's data loaders, however it was started.
        """
        # not imported for this: without the import, this process is not one of its daemons
        multiprocessing = sys.modules.get("multiprocessing.process")
        daemon = multiprocessing is not None and multiprocessing.current_process().daemon
        return cls.forked or daemon

    @classmethod
    def note_fork(cls) -> None:
        cls.forked = True


at_fork(after_in_child=_Process.note_fork)


@cache
def _cpu_share() -> float:
    return cpu_share(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))


def cpu_share(groups: Path, root: Path) -> float:
    """CPUs that Linux's control groups grant, as CPU time per period; inf without a limit.

    groups: this process's groups, one per line, as in /proc/self/cgroup; root: their mount point
    """
    try:
        lines = [line.split(":", 2) for line in groups.read_text().splitlines()]
    except synchronous(OSError):
        return math.inf
    shares = [_least_share(root, line[2]) for line in lines if len(line) == 3 and not line[1]]
    shares += [_least_share(root / "cpu", line[2])
               for line in lines if len(line) == 3 and "cpu" in line[1].split(",")]  # fmt: skip
    return min(shares, default=math.inf)


def _least_share(mounted: Path, group: str) -> float:
    """The paths of a group and its ancestors; a container sees its own group as the root."""
    path = PurePosixPath(group.lstrip("/"))
    folders = [mounted, *(mounted / part for part in (path, *path.parents))]
    return min(map(_share, folders))


def _share(folder: Path) -> float:
    """Quota and period: version 2 of control groups has them in one file, version 1 in two."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = " ".join((folder / name).read_text() for name in names).split()
            share = float(quota) / float(period)
        except synchronous(OSError, ValueError, ZeroDivisionError):
            continue  # `max` is not a number either
        return share if share > 0 else math.inf
    return math.inf
