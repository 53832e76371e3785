"""`triton.runtime.cache`: files of programs by key, in folders that only the user may write to."""

from __future__ import annotations

import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tilewright
import tilewright.language as tl
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource
from tilewright.support import TilewrightWarning, errors
from tilewright.triton_alias import knobs
from tilewright.triton_alias.backend_classes import make_backend
from tilewright.triton_alias.cache_managers import (
    FileCacheManager,
    RedisRemoteCacheBackend,
    RemoteCacheBackend,
    RemoteCacheManager,
    get_cache_key,
    get_cache_manager,
    get_dump_manager,
    get_override_manager,
    make_so_cache_key,
)

KEY = "ab" * 32
FOLDER = "VOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOV2XK5LVOVQ"
"""KEY in base 32."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "dump"))
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(tmp_path / "override"))
    return tmp_path


def test_a_file_is_found_by_key_and_name(root: Path) -> None:
    manager = get_cache_manager(KEY)
    assert manager.get_file("kernel.so") is None
    path = manager.put(b"\x00\x01", "kernel.so")
    assert Path(path) == root / "cache" / FOLDER / "kernel.so"
    assert Path(path).read_bytes() == b"\x00\x01"
    again = get_cache_manager(KEY)
    assert isinstance(again, FileCacheManager)
    assert again.has_file("kernel.so") and again.get_file("kernel.so") == path
    assert get_cache_manager("cd" * 32).get_file("kernel.so") is None


@pytest.mark.parametrize(("data", "text"), [("a text", "a text"), (7, "7"), (b"bytes", "bytes")])
def test_what_is_put_replaces_what_was_there(root: Path, data: Any, text: str) -> None:
    manager = get_cache_manager(KEY)
    manager.put("before", "name.json", binary=False)
    path = manager.put(data, "name.json", binary=False)
    assert Path(path).read_text() == text
    assert [file.name for file in Path(path).parent.iterdir()] == ["name.json"]


def test_a_group_names_the_files_that_are_there(root: Path) -> None:
    manager = get_cache_manager(KEY)
    assert manager.get_group("kernel.json") is None
    files = {name: manager.put(name, name) for name in ("kernel.ptx", "kernel.cubin")}
    manager.put_group("kernel.json", files)
    assert get_cache_manager(KEY).get_group("kernel.json") == files
    Path(files["kernel.ptx"]).unlink()
    assert manager.get_group("kernel.json") == {"kernel.cubin": files["kernel.cubin"]}


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"child_paths": null}'])
def test_what_is_no_group_is_none(root: Path, content: str) -> None:
    manager = get_cache_manager(KEY)
    manager.put(content, "__grp__kernel.json")
    assert manager.get_group("kernel.json") is None


def test_folders_are_the_user_s_alone(root: Path) -> None:
    path = get_cache_manager(KEY).put("text", "name")
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (*Path(path).parents[:2], Path(path))]
    assert modes == [0o700, 0o700, 0o600]


def test_a_folder_that_others_may_write_to_is_not_used(root: Path) -> None:
    (root / "cache").mkdir()
    (root / "cache").chmod(0o777)
    with (
        pytest.warns(TilewrightWarning, match="other users may write to it"),
        pytest.raises(errors.BadSetting, match="TRITON_CACHE_DIR must be a folder that you"),
    ):
        get_cache_manager(KEY)


def test_a_folder_that_was_removed_is_made_again(root: Path) -> None:
    manager = get_cache_manager(KEY)
    (root / "cache" / FOLDER).rmdir()
    assert Path(manager.put("text", "name")).read_text() == "text"


@pytest.mark.parametrize("name", ["", "..", "../other", "/etc/name", "a/b"])
def test_a_name_stays_in_its_folder(root: Path, name: str) -> None:
    with pytest.raises(errors.InvalidOption, match="'filename' must be a name without folders"):
        get_cache_manager(KEY).put("text", name)
    with pytest.raises(errors.InvalidOption, match="'key' must be a name without folders"):
        FileCacheManager(name)


def test_dumps_and_overrides_have_folders_of_their_own(root: Path) -> None:
    dumped = get_dump_manager(KEY).put("ir", "kernel.ttir")
    assert Path(dumped) == root / "dump" / FOLDER / "kernel.ttir"
    overrides = get_override_manager(KEY)
    assert overrides.get_file("kernel.ttir") is None
    assert not (root / "override").exists()
    (root / "override" / FOLDER).mkdir(parents=True)
    (root / "override" / FOLDER / "kernel.ttir").write_text("mine")
    assert Path(overrides.get_file("kernel.ttir") or "").read_text() == "mine"
    with pytest.raises(errors.InvalidOption, match="'override' must be False"):
        overrides.put("text", "name")


class Server(RemoteCacheBackend):
    """Files of all keys."""

    files: dict[str, dict[str, bytes]] = {}

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.held = self.files.setdefault(key, {})

    def get(self, filenames: Sequence[str]) -> Mapping[str, bytes]:
        return {name: self.held[name] for name in filenames if name in self.held}

    def put(self, filename: str, data: bytes) -> None:
        self.held[filename] = data


@pytest.fixture
def remote(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Server, "files", {})
    monkeypatch.setenv(
        "TRITON_CACHE_MANAGER", f"{RemoteCacheManager.__module__}:RemoteCacheManager"
    )
    monkeypatch.setattr(knobs, "cache", knobs.cache.copy())
    knobs.cache.remote_manager_class = Server
    return root


def test_files_of_a_server_are_copied_to_the_disk(remote: Path) -> None:
    manager = get_cache_manager(KEY)
    assert isinstance(manager, RemoteCacheManager)
    manager.put("text", "name")
    assert Server.files == {FOLDER: {"name": b"text"}}
    (remote / "cache" / FOLDER / "name").unlink()
    assert Path(get_cache_manager(KEY).get_file("name") or "").read_text() == "text"
    assert manager.get_file("other") is None


def test_groups_of_a_server_are_copied_too(remote: Path) -> None:
    manager = get_cache_manager(KEY)
    manager.put_group("all", {name: manager.put(name, name) for name in ("a", "b")})
    for file in (remote / "cache" / FOLDER).iterdir():
        file.unlink()
    group = get_cache_manager(KEY).get_group("all")
    assert {name: Path(path).read_text() for name, path in (group or {}).items()} == {
        "a": "a",
        "b": "b",
    }
    assert manager.get_group("none") is None


def test_dumps_stay_on_the_disk(remote: Path) -> None:
    dumps = get_dump_manager(KEY)
    path = dumps.put("ir", "kernel.ttir")
    dumps.put_group("all", {"kernel.ttir": path})
    assert dumps.get_file("kernel.ttir") == path and dumps.get_group("all") == {"kernel.ttir": path}
    assert Server.files == {}


def test_a_remote_manager_needs_a_server(root: Path) -> None:
    with pytest.raises(errors.InvalidOption, match="TRITON_REMOTE_CACHE_BACKEND"):
        RemoteCacheManager("key")


def test_redis_is_asked_by_the_names_that_knobs_give(monkeypatch: pytest.MonkeyPatch) -> None:
    redis: Any = ModuleType("redis")

    class Redis:
        def __init__(self, host: str, port: int) -> None:
            self.place, self.held = (host, port), dict[str, bytes]()

        def set(self, name: str, data: bytes) -> None:
            self.held[name] = data

        def mget(self, names: list[str]) -> list[bytes | None]:
            return [self.held.get(name) for name in names]

    redis.Redis = Redis
    monkeypatch.setitem(sys.modules, "redis", redis)
    monkeypatch.setenv("TRITON_REDIS_PORT", "77")
    server: Any = RedisRemoteCacheBackend("KEY")
    server.put("name", b"data")
    assert server._server.place == ("localhost", 77)
    assert server._server.held == {"triton:KEY:name": b"data"}
    assert server.get(["name", "other"]) == {"name": b"data"}


@tilewright.jit
def kernel(x, n: tl.constexpr):
    tl.store(x, n)


def test_keys_differ_where_what_they_are_of_does() -> None:
    types = {0: "*fp32", 1: "i32"}
    launcher = make_so_cache_key("1", types, {}, ())
    assert launcher == make_so_cache_key("1", {0: "*fp16", 1: "i32"}, {}, ())
    others = [
        make_so_cache_key("1", {0: "i32", 1: "i32"}, {}, ()),
        make_so_cache_key("2", types, {}, ()),
        make_so_cache_key("1", types, {}, (), debug=True),
    ]
    assert len({launcher, *others}) == 4
    backend = make_backend(GPUTarget("cpu", "x86-64", 1))

    def key(value: int, warps: int, **environment: str) -> str:
        source = ASTSource(kernel, {"x": "*i32", "n": "constexpr"}, {"n": value})
        options = backend.parse_options({"num_warps": warps})
        return get_cache_key(source, backend, options, environment)

    assert key(1, 4) == key(1, 4)
    assert len({key(1, 4), key(2, 4), key(1, 4, A="1")}) == 3
