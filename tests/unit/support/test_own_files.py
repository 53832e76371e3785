"""Files of the user in the folder of the cache, which nothing may delete."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.compiler import Entry, Store
from tilewright.support import settings
from tilewright.support.disk_cache import Documents, Eviction, clear, sealed
from tilewright.tools.cli import main

KEY = "0123456789abcdef" * 4
OTHER_KEY = KEY[::-1]
KINDS = ("kernels", "native", "grammar", "autotune", "crashes")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="no links")


def text(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")


def tree(path: Path) -> None:
    text(path / "src" / "kernel.py")


def entry_with_notes(path: Path) -> None:
    text(path / "notes.txt")
    (path / "kernel.json").write_bytes(sealed({"key": path.name}))


def copied_entry(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "kernel.json").write_bytes(sealed({"key": "another"}))


def copied_document(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sealed({"document": "another", "x": 1}))


def link_to(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def link(path: Path) -> None:
        target = path.parent.parent / "elsewhere" / path.name
        make(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    return link


USERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "source": ("mine.py", text),
    "json": ("mine.json", text),
    "hidden": (".mine-notes", text),
    "temporary": (f".1-{'a' * 12}", text),
    "tree": ("mine", tree),
    "tree by a hash": ("a" * 12, tree),
    "tree by a key": (OTHER_KEY, tree),
    "temporary tree": (f".2-{'a' * 12}", tree),
    "notes": (OTHER_KEY, entry_with_notes),
    "copied entry": ("backup", copied_entry),
    "copied document": ("backup.json", copied_document),
    "link": ("linked.json", link_to(text)),
    "link to a tree": (OTHER_KEY, link_to(tree)),
}


def write_own(root: Path) -> list[Path]:
    """What the package writes; entries with keys of any form."""
    for key in (KEY, "short"):
        Store(root, 0).write(key, Entry({"name": "k", "parameters": []}, {"obj": b"code"}))
    for kind in ("native", "grammar", "autotune"):
        for name in ("plain", "a <name>"):
            Documents(kind).write(name, {"x": 1})
    crash = root / "crashes" / KEY[:12]
    crash.mkdir(parents=True, mode=0o700)
    (crash / "kernel.py").write_text("# pipeline: ttir -> obj for cpu")
    return [path for kind in KINDS for path in (root / kind).iterdir()]


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_symlink() or path.is_file()}


def clear_all(root: Path) -> None:
    clear(root)


def evict(root: Path) -> None:
    then = time.time() - 100_000
    for path in root.rglob("*"):
        os.utime(path, (then, then), follow_symlinks=False)
    Eviction(root, 1).run()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    settings().cache.dir = tmp_path
    return tmp_path


@pytest.fixture(autouse=True)
def assigned_settings():
    with settings().cache.scope():
        yield


@pytest.mark.parametrize("delete", [clear_all, evict])
@pytest.mark.parametrize("users", USERS)
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_the_user_stay(
    root: Path, kind: str, users: str, delete: Callable[[Path], None]
) -> None:
    own = write_own(root)
    assert len(own) == 9
    before = files(root)
    name, make = USERS[users]
    make(root / kind / name)
    mine = files(root) - before
    assert mine
    delete(root)
    assert {path for path in mine if path.is_symlink() or path.is_file()} == mine
    assert [path for path in own if path.exists()] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_is_a_link_is_not_emptied(root: Path, kind: str) -> None:
    write_own(root)
    (root / kind).rename(root / "elsewhere")
    (root / kind).symlink_to(root / "elsewhere")
    linked = files(root / "elsewhere")
    clear_all(root)
    evict(root)
    assert files(root / "elsewhere") == linked


def test_the_command_leaves_files_of_the_user(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = [root / kind / "mine.py" for kind in KINDS] + [root / ".scanned"]
    for path in mine:
        text(path)
    for kind in KINDS:
        (root / kind).chmod(0o700)
    write_own(root)
    monkeypatch.chdir(root)
    settings().cache.reset("dir")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", ".")
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("deleted 2 kernels")
    assert files(root) == set(mine)


def test_a_large_file_of_the_user_does_not_count(root: Path) -> None:
    own = write_own(root)
    (root / "kernels" / "mine.bin").write_bytes(bytes(1 << 20))
    Eviction(root, 1 << 19).run()
    assert all(path.exists() for path in own)
