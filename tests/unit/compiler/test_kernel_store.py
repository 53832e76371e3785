"""The disk cache: whole entries or none, damage, sharing, size, folders that cannot be written."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilewright
from tests.unit.compiler.kernels import ADD, add
from tests.unit.support.damage import TO_A_FILE, TO_AN_INDEX, Damage, random_damage
from tilewright.backends import backend_named
from tilewright.compiler import (
    ASTSource,
    CompiledKernel,
    Entry,
    Store,
    compile,
    kernel_store,
    package_version,
)
from tilewright.compiler.kernel_store import INDEX
from tilewright.support import StageText, TilewrightWarning, recording, settings
from tilewright.support.disk_cache import STAMP, Eviction, OpenFolder
from tilewright.support.event_stream import ListRecorder

CPU = backend_named("cpu").target()
"""Named, since a new process on a machine with a GPU compiles for that."""

ENTRY = Entry({"name": "k", "stored": [0]}, {"ttir": "func", "obj": b"\x00\xff"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path, 1 << 20)


def names(store: Store) -> set[str]:
    """Folders of the cache."""
    return {path.name for path in store.folder.iterdir() if path.is_dir()}


def test_an_entry_comes_back(store: Store) -> None:
    assert store.read("a") is None
    store.write("a", ENTRY)
    assert store.read("a") == ENTRY
    assert names(store) == {"a"}


FILES = ("kernel.json", "kernel.obj", "kernel.ttir")
DIRECTED = [
    *((file, name, damage) for file in FILES for name, damage in TO_A_FILE.items()),
    *((INDEX, name, damage) for name, damage in TO_AN_INDEX.items()),
]
needs_posix = pytest.mark.skipif(os.name == "nt", reason="no modes, links and pipes")


@needs_posix
@pytest.mark.parametrize(
    ("file", "damage"),
    [pytest.param(file, damage, id=f"{file}: {name}") for file, name, damage in DIRECTED],
)
def test_a_damaged_entry_is_dropped_with_a_warning(store: Store, file: str, damage: Damage) -> None:
    store.write("a", ENTRY)
    damage(store.folder / "a" / file)
    with pytest.warns(TilewrightWarning, match="is damaged") as told:
        assert store.read("a") is None
    assert len(told) == 1
    assert not (store.folder / "a").exists()
    store.write("a", ENTRY)
    assert store.read("a") == ENTRY
    assert names(store) == {"a"}


CORRUPTIONS = int(os.environ.get("TILEWRIGHT_CORRUPTIONS", "200"))


def test_random_damage_never_changes_what_is_read(store: Store) -> None:
    """The entry is as it was written, or dropped. TILEWRIGHT_CORRUPTIONS is how often."""
    chance = random.Random(21)
    entry = Entry({"name": "k" * 40}, {"ttir": "func " * 20, "obj": chance.randbytes(200)})
    store.write("a", entry)
    good = {file: (store.folder / "a" / file).read_bytes() for file in FILES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilewrightWarning)
        for number in range(CORRUPTIONS):
            path = store.folder / "a" / FILES[number % len(FILES)]
            random_damage(chance)(path)
            expected = entry if path.read_bytes() == good[path.name] else None
            assert store.read("a") == expected
            path.parent.mkdir(mode=0o700, exist_ok=True)
            for name, content in good.items():
                (path.parent / name).write_bytes(content)


@needs_posix
@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("nowhere")])
def test_what_is_no_folder_is_dropped_and_replaced(store: Store, make) -> None:
    store.write("b", ENTRY)
    make(store.folder / "a")
    with pytest.warns(TilewrightWarning, match="is damaged"):
        assert store.read("a") is None
    make(store.folder / "a")
    store.write("a", ENTRY)
    assert store.read("a") == ENTRY


@needs_posix
def test_a_link_to_an_entry_is_not_followed(store: Store) -> None:
    store.write("b", ENTRY)
    (store.folder / "a").symlink_to("b")
    with pytest.warns(TilewrightWarning, match="is damaged"):
        assert store.read("a") is None
    assert store.read("b") == ENTRY


def test_an_entry_under_the_name_of_another_is_dropped(store: Store) -> None:
    store.write("a", ENTRY)
    shutil.copytree(store.folder / "a", store.folder / "b")
    with pytest.warns(TilewrightWarning, match="another kernel's"):
        assert store.read("b") is None
    assert store.read("a") == ENTRY


def test_an_entry_that_may_not_be_read_is_no_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write("a", ENTRY)

    def refuse(folder: OpenFolder, name: str, most: int = 0) -> bytes:
        raise PermissionError(13, "Permission denied", name)

    with monkeypatch.context() as patch, pytest.warns(TilewrightWarning) as told:
        patch.setattr(OpenFolder, "read", refuse)
        assert store.read("a") is None
    (warning,) = told
    assert "cannot be read" in str(warning.message)
    assert "damaged" not in str(warning.message)
    assert store.read("a") == ENTRY


def test_writing_goes_on_after_a_full_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.warns(TilewrightWarning, match="No space"):
        patch.setattr(kernel_store, "replace_folder", refuse)
        assert store.write("a", ENTRY) is False
    assert store.write("a", ENTRY)
    assert store.read("a") == ENTRY


def test_artifacts_have_plain_names(store: Store) -> None:
    with pytest.raises(ValueError, match="no artifact"):
        store.write("a", Entry({}, {"../obj": b""}))


def test_an_entry_that_is_replaced_while_it_is_read_is_no_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write("a", ENTRY)
    read = OpenFolder.read
    times = [2]

    def interrupted(folder: OpenFolder, name: str, most: int = 1 << 30) -> bytes:
        if name == "kernel.obj" and times[0]:
            times[0] -= 1
            shutil.rmtree(store.folder / "a")
            Store(store.root, 0).write("a", ENTRY)
        return read(folder, name, most)

    monkeypatch.setattr(OpenFolder, "read", interrupted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.read("a") == ENTRY


def test_an_entry_that_is_gone_while_it_is_read_is_absent(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write("a", ENTRY)
    monkeypatch.setattr(OpenFolder, "touch", lambda folder: shutil.rmtree(store.folder / "a"))
    assert store.read("a") == ENTRY
    assert store.read("a") is None


def test_the_second_writer_throws_its_own_away(store: Store) -> None:
    store.write("a", ENTRY)
    store.write("a", Entry({"name": "other"}, {}))
    assert store.read("a") == ENTRY
    assert names(store) == {"a"}


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    store = Store(tmp_path, 5000)
    for age, name in enumerate(("new", "middle", "old")):
        store.write(name, Entry({}, {"obj": bytes(1500)}))
        os.utime(store.folder / name, (1e9 - age, 1e9 - age))
    assert store.read("old") is not None  # which makes it the newest
    store.write("more", Entry({}, {"obj": bytes(1500)}))
    Eviction(store.root, store.max_bytes).run()
    assert names(store) == {"old", "more"}


def test_the_size_is_looked_at_by_the_first_write_of_an_hour(tmp_path: Path) -> None:
    store = Store(tmp_path, 2000)
    store.write("a", Entry({}, {"obj": bytes(1500)}))
    store.write("b", Entry({}, {"obj": bytes(1500)}))
    assert names(store) == {"a", "b"}
    os.utime(store.folder / "a", (1e9, 1e9))
    os.utime(tmp_path / STAMP, (1e9, 1e9))
    store.write("c", Entry({}, {"obj": bytes(10)}))
    assert "a" not in names(store)
    assert "c" in names(store)


def test_no_limit(tmp_path: Path) -> None:
    store = Store(tmp_path, 0)
    store.write("a", ENTRY)
    Eviction(store.root, store.max_bytes).run()
    assert store.read("a") == ENTRY


def test_a_folder_that_cannot_be_written_warns_once(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("a file where the folder should be")
    store = Store(tmp_path, 1 << 20)
    with pytest.warns(TilewrightWarning, match="TILEWRIGHT_CACHE_DIR"):
        store.write("a", ENTRY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.write("b", ENTRY)


def test_threads_that_write_one_entry(store: Store) -> None:
    threads = [threading.Thread(target=store.write, args=("a", ENTRY)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read("a") == ENTRY
    assert names(store) == {"a"}


# --- through `compile` ----------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    with settings().cache.scope(dir=tmp_path):
        yield tmp_path


def compiled() -> tuple[CompiledKernel, bool]:
    """The kernel, and whether its stages were run."""
    events = ListRecorder()
    with recording(events):
        kernel = compile(ASTSource(add, ADD, {"BLOCK": 16}), CPU)
    return kernel, bool(events.of(StageText))


def test_the_second_compilation_reads_the_cache(cache: Path) -> None:
    assert [compiled()[1], compiled()[1]] == [True, False]
    with settings().cache.scope(dir=cache / "other"):
        assert compiled()[1]


def test_always_compile(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled()
    monkeypatch.setenv("TILEWRIGHT_ALWAYS_COMPILE", "1")
    assert compiled()[1]


def test_a_damaged_kernel_is_compiled_again(cache: Path) -> None:
    kernel, _ = compiled()
    TO_A_FILE["half"](cache / "kernels" / kernel.hash / "kernel.obj")
    with pytest.warns(TilewrightWarning, match="damaged"):
        again, ran = compiled()
    assert ran
    assert again.asm["obj"] == kernel.asm["obj"]
    assert compiled()[1] is False


def test_the_index_is_plain_json(cache: Path) -> None:
    kernel, _ = compiled()
    index = json.loads((cache / "kernels" / kernel.hash / "kernel.json").read_text())
    assert index["metadata"]["stored"] == [2]


def test_processes_share_the_cache(cache: Path) -> None:
    kernel, _ = compiled()
    program = (
        "from tests.unit.compiler.test_kernel_store import compiled;"
        "kernel, ran = compiled(); print(kernel.hash, ran)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TILEWRIGHT_CACHE_DIR": str(cache), "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.split()[:2] == [kernel.hash, "False"]


def test_package_version_is_cheap_and_stable() -> None:
    assert package_version() == package_version()
    assert len(package_version()) == 64


def test_llvm_texts_of_the_package_are_part_of_its_version() -> None:
    package = Path(tilewright.__file__).parent
    files = kernel_store._source_files(str(package), ())  # pyright: ignore[reportPrivateUsage]
    paths = {Path(entry.path) for entry in files}
    texts = list(package.rglob("*.ll"))
    assert texts and paths.issuperset(texts)


def test_package_content_depends_on_contents_only(tmp_path: Path) -> None:
    """A copy of the package elsewhere, with other times of files, has the same hash."""
    copied = tmp_path / "tilewright"
    shutil.copytree(Path(tilewright.__file__).parent, copied, copy_function=shutil.copyfile)
    program = "from tilewright.compiler.kernel_store import package_content as content"
    program += "; print(content('cpu'), content('cuda'))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    hashes = [kernel_store.package_content(name) for name in ("cpu", "cuda")]
    assert run.stdout.split() == hashes and len({*hashes}) == 2
    changed = copied / "compiler" / "compile.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "# other\n", encoding="utf-8")
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert not {*run.stdout.split()} & {*hashes}
