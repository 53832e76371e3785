"""Places for objects by name: a folder, the file systems of fsspec, a Redis server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from tilewright.support.fork_locks import attribute_late

_HERE = "tilewright.support.remote_cache"


class Storage(Protocol):
    """Objects by name, such as `kernels/3f2a`. All methods may raise any exception."""

    def get(self, name: str) -> bytes | None:
        """The content, or None."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Write an object, which replaces an older one of that name."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one of that name; whether it was written."""
        ...

    def members(self, group: str) -> dict[str, bytes]:
        """The objects that `put_member` has written to a group."""
        ...

    def put_member(self, group: str, member: str, content: bytes) -> None:
        """Write an object of a group."""
        ...


def open_storage(url: str) -> Storage:
    """The storage at a URL: `file:///folder`, `redis://host:port/number`, `rediss://`, and what
    fsspec opens, such as `s3://bucket/prefix`.

    Errors: ImportError without the packages that it needs; those of the storage.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return attribute_late(f"{_HERE}.folder_storage:FolderStorage")(Path(unquote(parts.path)))
    if parts.scheme in ("redis", "rediss", "unix"):
        return attribute_late(f"{_HERE}.redis_storage:RedisStorage")(url)
    return attribute_late(f"{_HERE}.fsspec_storage:FsspecStorage")(url)


def shown_url(url: str) -> str:
    """A URL for messages, without user, password and query."""
    return re.sub(r"\?.*", "", re.sub(r"//[^/@]*@", "//", url))
