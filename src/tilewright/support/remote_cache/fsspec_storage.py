"""Objects on the file systems of fsspec: S3, GCS, Azure, SFTP, memory. Needs the extra `remote`."""

from __future__ import annotations

from typing import Any

from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.fork_locks import package_late
from tilewright.support.remote_cache.signed_objects import LARGEST


class FsspecStorage:
    """Objects below a URL."""

    def __init__(self, url: str) -> None:
        core: Any = package_late("fsspec.core", "pip install 'tilewright[remote]'")
        files, root = core.url_to_fs(url, use_listings_cache=False)
        self._files: Any = files
        self._root = str(root).rstrip("/")

    def get(self, name: str) -> bytes | None:
        """The content, or None."""
        try:
            content: bytes = self._files.cat_file(self._path(name), start=0, end=LARGEST + 1)
        except FileNotFoundError:
            return None
        if len(content) > LARGEST:
            raise ValueError(f"{name} is too large")
        return content

    def put(self, name: str, content: bytes) -> None:
        """Write an object, which replaces an older one of that name."""
        path = self._path(name)
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._files.pipe_file(path, content)

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one of that name; whether it was written.

        Object stores decide it at once (a conditional write). On other file systems two clients may
        both succeed, so that both compile.
        """
        path = self._path(name)
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        try:
            self._files.pipe_file(path, content, mode="create")
        except synchronous(Exception):
            # file systems report a refused condition by different errors
            if self._files.exists(path):
                return False
            raise
        return True

    def members(self, group: str) -> dict[str, bytes]:
        """The objects that `put_member` has written to a group."""
        try:
            paths: list[str] = self._files.ls(self._path(group), detail=False)
        except FileNotFoundError:
            return {}
        contents: dict[str, bytes] = self._files.cat(paths, on_error="omit") if paths else {}
        return {path.rpartition("/")[2]: content for path, content in contents.items()}

    def put_member(self, group: str, member: str, content: bytes) -> None:
        """Write an object of a group."""
        self.put(f"{group}/{member}", content)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
