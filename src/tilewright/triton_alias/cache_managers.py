"""`triton.runtime.cache`: folders of files by key, for programs that cache files.

A manager has the folder <knobs.cache.dir>/<key>. The rules are those of this package's cache:
folders are created for the user only, a folder that other users may write to is not used, and files
are written atomically. Kernels are cached without managers.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from tilewright.support import errors, import_late
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.disk_cache import cache_folder, write_file
from tilewright.triton_alias import knobs
from tilewright.triton_alias.argument_paths import path_key
from tilewright.triton_alias.torch_version import triton_key


def _group_file(filename: str) -> str:
    return f"__grp__{filename}"


class CacheManager(ABC):
    """Files by name, and groups of files by name, under one key.

    override: files that replace stages of kernels; dump: files to which stages are written.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key

    @abstractmethod
    def get_file(self, filename: str) -> str | None:
        """The path of a file; None if it is not there."""

    @abstractmethod
    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """Write a file, in the place of what is there; its path."""

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a group that are there, name -> path; None if there is no such group."""

    @abstractmethod
    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Note that files, name -> path, are a group; the path of the note."""


class FileCacheManager(CacheManager):
    """Files in a folder of the disk.

    Errors: InvalidOption for a key or name outside the folder; BadSetting if the folder cannot be
    used.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        folders = {"dump_dir": dump, "override_dir": override, "dir": True}
        self._root = Path(next(getattr(knobs.cache, name) for name, on in folders.items() if on))
        self._writes = dump or not override
        folder = self._folder() if self._writes else _inside(self._root, "key", key)
        self.cache_dir = str(folder)
        self.lock_path = str(folder / "lock") if self._writes else None

    def has_file(self, filename: str) -> bool:
        """Whether a file is there."""
        return self._place(filename).exists()

    def get_file(self, filename: str) -> str | None:
        """The path of a file; None if it is not there."""
        return str(self._place(filename)) if self.has_file(filename) else None

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """Write a file, in the place of what is there; its path. Errors: OSError."""
        if not self._writes:
            raise errors.InvalidOption("override", "False in a manager that writes files", True)
        place = self._place(filename)
        self._folder()  # it may have been removed
        write_file(place, data if isinstance(data, bytes) else str(data).encode())
        return str(place)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a group that are there, name -> path; None if there is no such group."""
        note = self.get_file(_group_file(filename))
        children = None if note is None else _children(note)
        if children is None:
            return None
        paths = cast("dict[str, str]", children)
        return {name: path for name, path in paths.items() if Path(path).exists()}

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Note that files, name -> path, are a group; the path of the note."""
        return self.put(json.dumps({"child_paths": group}), _group_file(filename))

    def _place(self, filename: str) -> Path:
        return _inside(Path(self.cache_dir), "filename", filename)

    def _folder(self) -> Path:
        """The folder of the key, which is made if need be."""
        _inside(self._root, "key", self.key)
        folder = cache_folder(self.key, self._root)
        if folder is None:
            expected = "a folder that you, and nobody else, may write to"
            raise errors.BadSetting("TRITON_CACHE_DIR", expected, str(self._root))
        return folder


def _inside(folder: Path, option: str, name: str) -> Path:
    if name in ("", "..") or Path(name).name != name:
        raise errors.InvalidOption(option, "a name without folders", name)
    return folder / name


def _children(note: str) -> Any:
    try:
        return json.loads(Path(note).read_text(encoding="utf-8")).get("child_paths")
    except synchronous(
        OSError, ValueError, AttributeError
    ):  # deleted, or written by another program
        return None


class RemoteCacheBackend:
    """A server of files by name, under one key."""

    def __init__(self, key: str) -> None:
        self.key = key

    @abstractmethod
    def get(self, filenames: Sequence[str]) -> Mapping[str, bytes]:
        """Those of the files that the server holds."""
        raise NotImplementedError

    @abstractmethod
    def put(self, filename: str, data: bytes) -> None:
        """Send a file."""
        raise NotImplementedError


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """Files on the Redis server of `knobs.redis`. Needs the package redis."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._key_format: str = knobs.redis.key_format
        host, port = knobs.redis.host, knobs.redis.port
        self._server: Any = import_late("redis").Redis(host=host, port=port)

    def _name(self, filename: str) -> str:
        return self._key_format.format(key=self.key, filename=filename)

    def get(self, filenames: Sequence[str]) -> Mapping[str, bytes]:
        """Those of the files that the server holds."""
        contents = self._server.mget([self._name(filename) for filename in filenames])
        found = zip(filenames, contents, strict=True)
        return {filename: content for filename, content in found if content is not None}

    def put(self, filename: str, data: bytes) -> None:
        """Send a file."""
        self._server.set(self._name(filename), data)


class RemoteCacheManager(CacheManager):
    """Files on a server, of the class `knobs.cache.remote_manager_class`, with copies on the disk.

    Dumps and overrides are only on the disk.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        backend: Callable[[str], RemoteCacheBackend] | None = knobs.cache.remote_manager_class
        if backend is None:
            expected = "a class derived from RemoteCacheBackend"
            raise errors.InvalidOption("TRITON_REMOTE_CACHE_BACKEND", expected, None)
        self._files = FileCacheManager(key, override, dump)
        self._server = None if override or dump else backend(key)

    def get_file(self, filename: str) -> str | None:
        """The path of a copy of a file; None if the server does not hold it."""
        if self._server is None:
            return self._files.get_file(filename)
        return self._copies([filename]).get(filename)

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """Send a file; the path of a copy."""
        content = data if isinstance(data, bytes) else str(data).encode()
        if self._server is not None:
            self._server.put(filename, content)
        return self._files.put(content, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a group that the server holds, name -> path of a copy."""
        if self._server is None:
            return self._files.get_group(filename)
        note = self.get_file(_group_file(filename))
        children = None if note is None else _children(note)
        return None if children is None else self._copies([*children])

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Note that files, by name, are a group; the path of a copy of the note."""
        if self._server is None:
            return self._files.put_group(filename, group)
        return self.put(json.dumps({"child_paths": sorted(group)}), _group_file(filename))

    def _copies(self, filenames: Sequence[str]) -> dict[str, str]:
        assert self._server is not None
        found = self._server.get(filenames)
        return {filename: self._files.put(data, filename) for filename, data in found.items()}


def get_cache_manager(key: str) -> CacheManager:
    """The manager of a key, a hexadecimal text; of `knobs.cache.manager_class` if that is set."""
    return _manager(key)


def get_override_manager(key: str) -> CacheManager:
    """The manager of files that replace stages of kernels."""
    return _manager(key, override=True)


def get_dump_manager(key: str) -> CacheManager:
    """The manager of files to which stages of kernels are written."""
    return _manager(key, dump=True)


def _manager(key: str, **purpose: bool) -> CacheManager:
    return (knobs.cache.manager_class or FileCacheManager)(path_key(key), **purpose)


def make_so_cache_key(
    version_hash: str,
    signature: Mapping[Any, str],
    constants: object,
    ids: object,
    **kwargs: object,
) -> str:
    """A key of a launcher in C by the names of types; all pointers are equal."""
    types = ["ptr" if name.startswith("*") else name for name in signature.values()]
    parts = (version_hash, types, constants, ids, *kwargs.values())
    return path_key(sha256(repr(parts).encode()).hexdigest())


def get_cache_key(src: Any, backend: Any, backend_options: Any, env_vars: Mapping[str, str]) -> str:
    """A text of all that decides a compiled kernel: compiler, source, target, options,
    environment."""
    environment = sorted(env_vars.items())
    parts = (triton_key(), src.hash(), backend.hash(), backend_options.hash(), environment)
    return "-".join(map(str, parts))
