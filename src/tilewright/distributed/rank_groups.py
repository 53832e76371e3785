"""Groups of ranks, and their exchange of texts.

    FolderGroup     processes of one host (or of hosts with one file system) that share a folder
    ThreadGroup     threads of one process, for several GPUs or for the interpreter
    group_of        a process group of torch.distributed as a `Group`

An exchange is collective: every rank calls it, in the same order. It ends by a timeout.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tilewright.support import errors, import_late
from tilewright.support.data_class import dataclass

TIMEOUT_SECONDS = 60.0


@runtime_checkable
class Group(Protocol):
    """The ranks of a program, seen by one of them.

    exchange(text): returns the texts of all ranks, by rank. Raises MissingPeer after its timeout.
    """

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def exchange(self, text: str) -> list[str]: ...


def check_rank(rank: int, size: int) -> None:
    """Raises WrongRank for a rank outside its group, WrongWorldSize for an empty one."""
    if size < 1:
        raise errors.WrongWorldSize("the group", size, "a group needs one", 1)
    if not 0 <= rank < size:
        raise errors.WrongRank(rank, f"is outside its group, whose world size is {size}")


class FolderGroup:
    """A rank of a group of processes that share a folder, which is empty at first.

    timeout: seconds that an exchange waits for other ranks. Raises WrongRank, WrongWorldSize.
    """

    def __init__(
        self, folder: str | Path, rank: int, size: int, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        check_rank(rank, size)
        self.rank, self.size = rank, size
        self._folder, self._timeout = Path(folder), timeout
        self._count = 0
        self._folder.mkdir(parents=True, exist_ok=True)

    def exchange(self, text: str) -> list[str]:
        """The texts of all ranks. Raises MissingPeer, WrongRank, WrongWorldSize."""
        self._write(f"{self.size}\n{text}")
        deadline = time.monotonic() + self._timeout
        texts = [self._read(rank, deadline) for rank in range(self.size)]
        # Who takes part in exchange n has completed n - 1: nobody reads that one again.
        self._message(self.rank, self._count - 1).unlink(missing_ok=True)
        self._count += 1
        return texts

    def _message(self, rank: int, count: int) -> Path:
        return self._folder / f"{count}-{rank}"

    def _write(self, text: str) -> None:
        unnamed = self._folder / f"{self._count}-{self.rank}.{os.getpid()}-{threading.get_ident()}"
        unnamed.write_text(text, encoding="utf-8")
        try:
            # A link appears with its whole content, and fails where another one exists.
            os.link(unnamed, self._message(self.rank, self._count))
        except FileExistsError:
            raise errors.WrongRank(self.rank, "is that of another process as well") from None
        finally:
            unnamed.unlink()

    def _read(self, rank: int, deadline: float) -> str:
        pause = 1e-4
        while True:
            if (message := self._message(rank, self._count)).exists():
                found = message.read_text(encoding="utf-8")
                break
            if time.monotonic() > deadline:
                raise errors.MissingPeer(
                    self.rank, self._missing(), f"{self._timeout:g}", "an exchange"
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.01)
        size, _, text = found.partition("\n")
        if int(size) != self.size:
            raise errors.WrongWorldSize(f"rank {self.rank}", self.size, f"rank {rank}", int(size))
        return text

    def _missing(self) -> list[int]:
        return [r for r in range(self.size) if not self._message(r, self._count).exists()]


@dataclass(eq=False)
class _SharedTexts:
    """The state that the ranks of a `ThreadGroup` share."""

    barrier: threading.Barrier
    texts: list[str]
    arrived: list[int]


class ThreadGroup:
    """A rank of a group of threads of one process: `ThreadGroup.ranks(2)` makes both."""

    def __init__(self, rank: int, size: int, shared: _SharedTexts, timeout: float) -> None:
        self.rank, self.size = rank, size
        self._shared, self._timeout = shared, timeout

    @classmethod
    def ranks(cls, size: int, timeout: float = TIMEOUT_SECONDS) -> list[ThreadGroup]:
        """A group for each of `size` threads. timeout: seconds. Raises WrongWorldSize."""
        check_rank(0, size)
        shared = _SharedTexts(threading.Barrier(size), [""] * size, [0] * size)
        return [cls(rank, size, shared, timeout) for rank in range(size)]

    def exchange(self, text: str) -> list[str]:
        """The texts of all ranks. Raises MissingPeer, also in later exchanges."""
        shared = self._shared
        shared.texts[self.rank] = text
        shared.arrived[self.rank] += 1
        count = shared.arrived[self.rank]
        try:
            shared.barrier.wait(self._timeout)
            texts = list(shared.texts)
            shared.barrier.wait(self._timeout)  # before a rank writes its next text
        except threading.BrokenBarrierError:
            missing = [rank for rank, seen in enumerate(shared.arrived) if seen < count]
            raise errors.MissingPeer(
                self.rank, missing, f"{self._timeout:g}", "an exchange"
            ) from None
        return texts


class _TorchGroup:
    """A process group of torch.distributed."""

    def __init__(self, group: Any) -> None:
        self._distributed: Any = import_late("torch.distributed")
        self.process_group = self._distributed.group.WORLD if group is None else group
        self.rank: int = self._distributed.get_rank(self.process_group)
        self.size: int = self._distributed.get_world_size(self.process_group)
        if self.rank < 0:
            raise errors.WrongRank(self._distributed.get_rank(), "is not a member of this group")

    def exchange(self, text: str) -> list[str]:
        """The texts of all ranks; the group's backend has the timeout."""
        texts: list[str] = [""] * self.size
        self._distributed.all_gather_object(texts, text, group=self.process_group)
        return texts


def group_of(group: object = None) -> Group:
    """A `Group` for a process group of torch.distributed, None for its default one; a `Group`
    itself.

    Raises WrongRank if this process is not a member, NoGroup without an initialized torch.
    """
    if isinstance(group, Group) and hasattr(group, "exchange"):
        return group
    torch: Any = sys.modules.get("torch.distributed")
    if torch is None or not (torch.is_available() and torch.is_initialized()):
        raise errors.NoGroup
    return _TorchGroup(group)


def torch_group(group: Group) -> Any:
    """The process group of torch.distributed behind a `Group`; None for other groups."""
    return group.process_group if isinstance(group, _TorchGroup) else None
