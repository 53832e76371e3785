"""Files that the cache keeps: trusted folders, whole files, checksums, size."""

import errno
import json
import os
import random
import shutil
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fail_points import killed_at, reached_points
from tests.forking import needs_fork
from tests.unit.support.damage import TO_A_FILE, random_damage
from tilewright.support import TilewrightWarning, settings
from tilewright.support.disk_cache import (
    STAMP,
    Documents,
    Eviction,
    OpenFolder,
    cache_folder,
    eviction,
    folder_trust,
    replace_folder,
    sealed,
    unsealed,
    wrote,
)
from tilewright.support.disk_cache.fail_points import FailPoints
from tilewright.support.disk_cache.whole_files import synchronized_folder, write_file

CORRUPTIONS = int(os.environ.get("TILEWRIGHT_CORRUPTIONS", "200"))

needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners of files")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder for the cache, not made yet."""
    with settings().cache.scope(dir=tmp_path / "above" / "cache"):
        yield tmp_path / "above" / "cache"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def assert_refused(match: str) -> None:
    """One warning that says why, and none the second time."""
    with pytest.warns(TilewrightWarning, match=match) as told:
        assert cache_folder("kernels") is None
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache_folder("kernels") is None
        assert Documents("autotune").read("a") is None
        Documents("autotune").write("a", {"x": 1})


# --- trust ----------------------------------------------------------------------------------------


@needs_owners
def test_folders_and_files_are_the_users_alone(root: Path) -> None:
    Documents("autotune").write("a", {"x": 1})
    replace_folder(root / "autotune" / "b", {"file": b"text"})
    for folder in (root.parent, root, root / "autotune", root / "autotune" / "b"):
        assert mode_of(folder) == 0o700
    for file in (root / "autotune" / "a.json", root / "autotune" / "b" / "file", root / STAMP):
        assert mode_of(file) == 0o600


@needs_owners
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
@pytest.mark.parametrize("which", ["", "kernels"])
def test_a_folder_that_others_may_write_to_is_refused(root: Path, which: str, mode: int) -> None:
    (root / which).mkdir(parents=True)
    (root / which).chmod(mode)
    assert_refused(f"other users may write to it .mode {mode:o}.*chmod go-w")


@needs_owners
@pytest.mark.parametrize("which", ["", "kernels"])
def test_a_folder_of_another_user_is_refused(
    root: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / which).mkdir(parents=True)
    if which and os.geteuid() == 0:
        os.chown(root / which, 12345, -1)
    else:
        me = os.geteuid()
        monkeypatch.setattr(folder_trust.os, "geteuid", lambda: me + 1)
        if me == 0:
            os.chown(root, 12345, -1)
    assert_refused("it belongs to another user")


@needs_owners
@pytest.mark.skipif("os.geteuid() != 0", reason="only root gives files away")
def test_root_refuses_a_folder_of_a_user(root: Path) -> None:
    root.mkdir(parents=True)
    os.chown(root, 12345, -1)
    assert_refused("it belongs to another user .12345.")


def test_the_folder_may_be_a_link_but_what_is_in_it_may_not(root: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    root.parent.mkdir()
    root.symlink_to(real)
    assert cache_folder("autotune") == root / "autotune"
    (real / "elsewhere").mkdir(mode=0o700)
    (real / "kernels").symlink_to(real / "elsewhere")
    assert_refused("it is not a folder")


@needs_owners
@pytest.mark.skipif("os.geteuid() != 0", reason="only root gives links away")
@pytest.mark.parametrize("where", ["root", "above", "target"])
def test_a_link_of_another_user_is_not_followed(root: Path, tmp_path: Path, where: str) -> None:
    real = tmp_path / "real" / "cache"
    real.mkdir(parents=True, mode=0o700)
    link = {"root": root, "above": root.parent, "target": tmp_path / "link"}[where]
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(real.parent if where == "above" else real)
    os.lchown(link, 12345, -1)
    if where == "target":
        root.parent.mkdir()
        root.symlink_to(link)
    assert_refused(f"{link} is a link of another user")
    os.lchown(link, 0, -1)
    assert cache_folder("kernels") == root / "kernels"


def test_a_folder_whose_owner_or_mode_changes_is_judged_again(root: Path) -> None:
    assert cache_folder("kernels") is not None
    root.chmod(0o777)
    assert_refused("other users may write to it")
    root.chmod(0o700)
    assert cache_folder("kernels") == root / "kernels"


def test_a_folder_that_cannot_be_made_is_told_once(root: Path) -> None:
    root.parent.write_text("a file")
    assert_refused("set TILEWRIGHT_CACHE_DIR")


def test_a_folder_that_is_deleted_meanwhile_is_made_again(root: Path) -> None:
    kept = Documents("autotune")
    kept.write("a", {"x": 1})
    (root / "autotune" / "a.json").unlink()
    (root / "autotune").rmdir()
    kept.write("a", {"x": 2})
    assert kept.read("a") == {"x": 2}


# --- names and kinds of files ---------------------------------------------------------------------


def make_link(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to(path.with_name("other"))


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_writable(path: Path) -> None:
    path.chmod(0o622)


@needs_owners
@pytest.mark.parametrize("make", [make_link, make_folder, make_pipe, make_writable])
def test_only_plain_files_of_the_user_are_read(root: Path, make: Callable[[Path], None]) -> None:
    kept = Documents("autotune")
    kept.write("a", {"x": 1})
    make(root / "autotune" / "a.json")
    with pytest.warns(TilewrightWarning, match="is damaged"):
        assert kept.read("a") is None
    assert not (root / "autotune" / "a.json").exists()
    kept.write("a", {"x": 2})
    assert kept.read("a") == {"x": 2}


@needs_owners
def test_a_link_instead_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    replace_folder(tmp_path / "a", {"file": b"text"})
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="b"):
        OpenFolder(tmp_path / "b")


@needs_owners
def test_a_folder_inside_that_others_may_write_to_is_not_read(tmp_path: Path) -> None:
    replace_folder(tmp_path / "a", {"file": b"text"})
    (tmp_path / "a").chmod(0o777)
    with pytest.raises(ValueError, match="other users may write"):
        OpenFolder(tmp_path / "a")


NAMES = ["../../x", ".._.._x", "/etc/x", ".x", "a/b", "a_b", "<lambda>", "x" * 900, "x" * 901]


def test_no_name_leads_out_of_the_folder_or_to_another(root: Path) -> None:
    kept = Documents("autotune")
    for name in NAMES:
        kept.write(name, {"name": name})
    assert [kept.read(name) for name in NAMES] == [{"name": name} for name in NAMES]
    files = list((root / "autotune").iterdir())
    assert len(files) == len(NAMES)
    assert all(file.suffix == ".json" and not file.name.startswith(".") for file in files)


def test_a_read_is_bounded(tmp_path: Path) -> None:
    replace_folder(tmp_path / "a", {"file": b"12345678"})
    with OpenFolder(tmp_path / "a") as folder:
        assert folder.read("file", 8) == b"12345678"
        with pytest.raises(ValueError, match="has grown"):
            folder.read("file", 7)


def test_too_many_open_files_are_no_damage(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Documents("autotune")
    kept.write("a", {"x": 1})

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(os, "open", refuse)
        assert kept.read("a") is None
    assert kept.read("a") == {"x": 1}


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EIO])
def test_a_document_that_may_not_be_read_is_no_damage(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    kept = Documents("autotune")
    kept.write("a", {"x": 1})
    opened = os.open

    def refuse(path: str | Path, *rest: Any, **named: Any) -> int:
        if str(path).endswith(".json"):
            raise OSError(number, os.strerror(number))
        return opened(path, *rest, **named)

    with monkeypatch.context() as patch, pytest.warns(TilewrightWarning) as told:
        patch.setattr(os, "open", refuse)
        assert kept.read("a") is None
    (warning,) = told
    assert "a.json cannot be read" in str(warning.message)
    assert "damaged" not in str(warning.message)
    assert kept.read("a") == {"x": 1}


def test_a_document_under_the_name_of_another_is_dropped(root: Path) -> None:
    kept = Documents("autotune")
    kept.write("a", {"x": 1})
    kept.write("b", {"y": 2})
    shutil.copy(root / "autotune" / "a.json", root / "autotune" / "b.json")
    with pytest.warns(TilewrightWarning, match=r"b\.json is damaged .it is another document."):
        assert kept.read("b") is None
    kept.write("b", {"y": 2})
    assert [kept.read("a"), kept.read("b")] == [{"x": 1}, {"y": 2}]


@needs_owners
@pytest.mark.parametrize("damage", [name for name in TO_A_FILE if name != "missing"])
def test_a_damaged_document_is_dropped_with_one_warning(root: Path, damage: str) -> None:
    kept = Documents("autotune")
    kept.write("a", {"x": [1.5, None], "y": "text"})
    TO_A_FILE[damage](root / "autotune" / "a.json")
    with pytest.warns(TilewrightWarning, match="is damaged") as told:
        assert kept.read("a") is None
    assert len(told) == 1
    assert kept.read("a") is None
    kept.write("a", {"x": 2})
    assert kept.read("a") == {"x": 2}


def test_random_damage_never_changes_a_document(root: Path) -> None:
    chance = random.Random(23)
    kept = Documents("autotune")
    members = {"timings": {f"BLOCK: {n}": [chance.random() for _ in range(3)] for n in range(4)}}
    kept.write("a", members)
    file = root / "autotune" / "a.json"
    good = file.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilewrightWarning)
        for _ in range(CORRUPTIONS):
            random_damage(chance)(file)
            expected = members if file.read_bytes() == good else None
            assert kept.read("a") == expected
            file.write_bytes(good)


# --- checksums ------------------------------------------------------------------------------------


MEMBERS = {"x": [1, 2.5, None], "text": "ü", "deep": {"y": True}}


def test_sealed_text_is_json_and_comes_back() -> None:
    text = sealed(MEMBERS)
    assert unsealed(text) == MEMBERS
    assert {**json.loads(text), "sha256": 0} == {**MEMBERS, "sha256": 0}


def test_every_changed_byte_is_noticed() -> None:
    text = sealed(MEMBERS)
    for at in range(len(text)):
        for change in (1, 32, 255):
            changed = bytearray(text)
            changed[at] ^= change
            with pytest.raises(ValueError, match="checksum|head"):
                unsealed(bytes(changed))


def test_every_cut_is_noticed() -> None:
    text = sealed(MEMBERS)
    for end in range(len(text)):
        with pytest.raises(ValueError, match="checksum|head"):
            unsealed(text[:end])
    with pytest.raises(ValueError, match="checksum"):
        unsealed(text + b" ")


# --- writing --------------------------------------------------------------------------------------


def write_one(folder: Path) -> None:
    write_file(folder / "one", b"new" * 1000)


def write_several(folder: Path) -> None:
    replace_folder(folder / "several", {"a": b"new" * 1000, "b": b"text"})


WRITERS = {"file": write_one, "folder": write_several}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_has_one_file_waits_for_the_disk(
    tmp_path: Path, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file before the renaming, the folder above after it; folders of files have checksums."""
    steps: list[str] = []
    sync = os.fsync

    def noted(handle: int) -> None:
        sync(handle)
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")

    monkeypatch.setattr(os, "fsync", noted)
    FailPoints.hook = lambda point: steps.append(point) if "renamed" in point else None
    try:
        WRITERS[writer](tmp_path)
    finally:
        FailPoints.hook = None
    expected = {"file": ["file", "file: renamed", "folder"], "folder": ["folder: renamed"]}
    assert steps == expected[writer]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_failure_leaves_nothing_behind(tmp_path: Path, writer: str) -> None:
    points = reached_points(lambda: WRITERS[writer](tmp_path))
    assert len(points) >= 6
    for nth in range(len(points)):
        folder = tmp_path / str(nth)
        folder.mkdir()
        count = iter(range(nth))

        def fail(point: str, count: Iterator[int] = count) -> None:
            if next(count, None) is None:
                FailPoints.hook = None
                raise OSError(errno.ENOSPC, "No space left on device")

        FailPoints.hook = fail
        with pytest.raises(OSError, match="No space"):
            WRITERS[writer](folder)
        names = {path.name for path in folder.iterdir()}
        assert not {name for name in names if name.startswith(".")}, points[nth]


@needs_fork
@pytest.mark.parametrize("writer", WRITERS)
def test_a_kill_in_any_step_leaves_the_old_or_the_new(tmp_path: Path, writer: str) -> None:
    points = reached_points(lambda: WRITERS[writer](tmp_path))
    for nth, point in enumerate(points):
        folder = tmp_path / str(nth)
        folder.mkdir()
        (folder / "one").write_bytes(b"old")
        assert killed_at(nth, lambda folder=folder: WRITERS[writer](folder)), point
        visible = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
        if "several" in visible:
            files = {path.name: path.read_bytes() for path in (folder / "several").iterdir()}
            assert files == {"a": b"new" * 1000, "b": b"text"}, point
        assert visible - {"several"} == {"one"}
        assert (folder / "one").read_bytes() in (b"old", b"new" * 1000), point


@needs_fork
def test_a_kill_while_something_is_removed(root: Path) -> None:
    kept = [keep(root / "kernels" / name, age) for age, name in enumerate("abc")]
    assert killed_at(0, Eviction(root, 1500).run)  # it has another name, and is not deleted yet
    assert left(kept) == ["a", "b"]
    (temporary,) = (root / "kernels").glob(".*")
    os.utime(temporary, (1e9, 1e9))
    Eviction(root, 1500).run()
    assert left(kept) == ["a"]
    assert [path.name for path in (root / "kernels").iterdir()] == ["a"]


def test_what_another_process_has_put_there_first_is_kept(tmp_path: Path) -> None:
    replace_folder(tmp_path / "a", {"file": b"first"})
    replace_folder(tmp_path / "a", {"file": b"second"})
    assert (tmp_path / "a" / "file").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("nowhere")])
def test_what_is_no_folder_is_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "a")
    replace_folder(tmp_path / "a", {"file": b"text"})
    assert (tmp_path / "a" / "file").read_bytes() == b"text"


def test_folders_that_cannot_be_synchronized_are_left_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    def refuse(handle: int) -> None:
        attempts.append(handle)
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    synchronized_folder(tmp_path)
    assert len(attempts) == 1


# --- size -----------------------------------------------------------------------------------------


def keep(path: Path, age: float, size: int = 1000) -> Path:
    """What this package would have written there, used `age` seconds ago."""
    kind, name = path.parent.name, path.name
    file, head = {
        "kernels": (path / "kernel.json", sealed({"key": name})),
        "crashes": (path / "kernel.tile", b"// pipeline: ttir -> obj"),
        "dumps": (path / "kernel.ttir", b""),
    }.get(kind, (path, sealed({"document": path.stem})))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(head.ljust(size))
    used = time.time() - age
    os.utime(path, (used, used))
    return path


def left(paths: list[Path]) -> list[str]:
    return [path.name for path in paths if path.exists()]


def test_all_kinds_share_the_size_and_the_oldest_goes_first(root: Path) -> None:
    kept = [
        keep(root / "autotune" / "tuned.json", 500),
        keep(root / "grammar" / "tables.json", 400),
        keep(root / "crashes" / ("0" * 12), 300),
        keep(root / "kernels" / "kernel", 200),
        keep(root / "kernels" / "new", 0),
    ]
    Eviction(root, 5000).run()
    assert left(kept) == ["tuned.json", "tables.json", "0" * 12, "kernel", "new"]
    Eviction(root, 4000).run()
    assert left(kept) == ["0" * 12, "kernel", "new"]
    Eviction(root, 2000).run()
    assert left(kept) == ["new"]


def test_dumps_in_the_folder_count_and_other_files_are_not_touched(root: Path) -> None:
    dump = keep(root / "dumps" / f"kernel-{'0' * 12}", 500)
    mine = [keep(root / "dumps" / "mine", 900), keep(root / "notes.txt", 900)]
    new = keep(root / "kernels" / "new", 0)
    Eviction(root, 1500).run()
    assert left([dump, *mine, new]) == [dump.name, "mine", "notes.txt", "new"]
    with settings().compilation.scope(dump_dir=root / "dumps"):
        Eviction(root, 1500).run()
    assert left([dump, *mine, new]) == ["mine", "notes.txt", "new"]


def test_a_clock_that_was_set_back_does_no_harm(root: Path) -> None:
    """Entries used before that lie in the future; what is used now is newer than they are."""
    before = [keep(root / "kernels" / f"before{n}", -90_000 + n) for n in range(3)]
    now = [keep(root / "kernels" / f"now{n}", 5 - n) for n in range(2)]
    (root / STAMP).touch()
    later = time.time() + 90_000
    os.utime(root / STAMP, (later, later))
    wrote(root, 3000)  # the stamp, which lies in the future, holds nothing up
    assert left(before + now) == ["now0", "now1"]
    assert (root / STAMP).stat().st_mtime <= time.time()


def test_what_killed_processes_left_is_deleted_after_an_hour(root: Path) -> None:
    kinds = ("kernels", "autotune", "grammar")
    old = [keep(root / kind / f".123-{'0' * 12}", 4000) for kind in kinds]
    future = [keep(root / kind / f".124-{'0' * 12}", -4000) for kind in kinds]
    fresh = [keep(root / kind / f".125-{'0' * 12}", 60) for kind in kinds]
    Eviction(root, 0).run()
    assert left(old + future) == []
    assert left(fresh) == [f".125-{'0' * 12}"] * 3


def test_one_look_an_hour(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # what other tests wrote may make one of these writes the 256th
    monkeypatch.setattr(eviction._Writes, "count", 0)
    keep(root / "kernels" / "a", 100)
    wrote(root, 500)
    assert not (root / "kernels" / "a").exists()
    keep(root / "kernels" / "a", 100)
    wrote(root, 500)
    assert (root / "kernels" / "a").exists()
    os.utime(root / STAMP, (1e9, 1e9))
    wrote(root, 500)
    assert not (root / "kernels" / "a").exists()


def test_reading_a_document_makes_it_new(root: Path) -> None:
    kept = Documents("autotune")
    kept.write("a", {"x": 1})
    file = root / "autotune" / "a.json"
    os.utime(file, (1e9, 1e9))
    kept.read("a")
    assert file.stat().st_mtime > time.time() - 100
