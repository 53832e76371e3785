"""The disk cache: whole entries or none, damage, sharing, size, folders that cannot be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.compiler.kernels import ADD, add
from tilewright.compiler import ASTSource, CompiledKernel, Entry, Store, compile, package_version
from tilewright.support import StageText, TilewrightWarning, recording, settings
from tilewright.support.trace import ListRecorder

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


def damage_truncate(place: Path) -> None:
    (place / "kernel.obj").write_bytes(b"\x00")


def damage_flip(place: Path) -> None:
    (place / "kernel.obj").write_bytes(b"\x00\xfe")


def damage_index(place: Path) -> None:
    (place / "kernel.json").write_text('{"metadata": {')


def damage_shape(place: Path) -> None:
    (place / "kernel.json").write_text("[]")


def damage_missing(place: Path) -> None:
    (place / "kernel.ttir").unlink()


def damage_no_index(place: Path) -> None:
    (place / "kernel.json").unlink()


@pytest.mark.parametrize(
    "damage",
    [
        damage_truncate,
        damage_flip,
        damage_index,
        damage_shape,
        damage_missing,
        damage_no_index,
    ],
)
def test_a_damaged_entry_is_dropped_with_a_warning(store: Store, damage) -> None:
    store.write("a", ENTRY)
    damage(store.folder / "a")
    with pytest.warns(TilewrightWarning, match="is damaged"):
        assert store.read("a") is None
    assert not (store.folder / "a").exists()
    store.write("a", ENTRY)
    assert store.read("a") == ENTRY


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
    store.evict()
    assert names(store) == {"old", "more"}


def test_the_size_is_looked_at_by_the_first_write_of_an_hour(tmp_path: Path) -> None:
    store = Store(tmp_path, 2000)
    store.write("a", Entry({}, {"obj": bytes(1500)}))
    store.write("b", Entry({}, {"obj": bytes(1500)}))
    assert names(store) == {"a", "b"}
    os.utime(store.folder / "a", (1e9, 1e9))
    os.utime(store.folder / ".scanned", (1e9, 1e9))
    store.write("c", Entry({}, {"obj": bytes(10)}))
    assert "a" not in names(store)
    assert "c" in names(store)


def test_no_limit(tmp_path: Path) -> None:
    store = Store(tmp_path, 0)
    store.write("a", ENTRY)
    store.evict()
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
        kernel = compile(ASTSource(add, ADD, {"BLOCK": 16}))
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
    damage_truncate(cache / "kernels" / kernel.hash)
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
        "from tests.unit.compiler.test_store import compiled;"
        "kernel, ran = compiled(); print(kernel.hash, ran)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "TILEWRIGHT_CACHE_DIR": str(cache), "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.split()[:2] == [kernel.hash, "False"]


def test_package_version_is_cheap_and_stable() -> None:
    assert package_version() == package_version()
    assert len(package_version()) == 64
