"""Storages for tests: a dictionary, and one that is slow, fails or shows new objects late."""

from __future__ import annotations

import errno
import random
import threading
import time
from collections.abc import Callable


class DictStorage:
    """Objects in memory. before: called with the name of each operation and object"""

    def __init__(self, before: Callable[[str, str], object] = lambda kind, name: None) -> None:
        self.objects: dict[str, bytes] = {}
        self.groups: dict[str, dict[str, bytes]] = {}
        self.before = before
        self._lock = threading.Lock()

    def get(self, name: str) -> bytes | None:
        self.before("get", name)
        return self.objects.get(name)

    def put(self, name: str, content: bytes) -> None:
        self.before("put", name)
        self.objects[name] = content

    def create(self, name: str, content: bytes) -> bool:
        self.before("create", name)
        with self._lock:
            return self.objects.setdefault(name, content) is content

    def members(self, group: str) -> dict[str, bytes]:
        self.before("members", group)
        return dict(self.groups.get(group, {}))

    def put_member(self, group: str, member: str, content: bytes) -> None:
        self.before("put", f"{group}/{member}")
        self.groups.setdefault(group, {})[member] = content


def sleeping(seconds: float) -> Callable[[str, str], None]:
    """An operation that takes some seconds."""

    def before(kind: str, name: str) -> None:
        time.sleep(seconds)

    return before


def failing(kind: str, name: str) -> None:
    """An operation that fails."""
    raise ConnectionRefusedError(111, "connection refused")


def faulty(chance: random.Random, rate: float = 0.05) -> Callable[[str], None]:
    """A hook of fail points that raises what network file systems do, at some of them."""

    def hook(point: str) -> None:
        if not point.startswith("remote: ") or chance.random() > rate:
            return
        if point == "remote: open":  # a file of another machine that is not visible yet
            raise FileNotFoundError(errno.ENOENT, "late")
        raise OSError(chance.choice((errno.EBUSY, errno.ESTALE, errno.EIO)), point)

    return hook
