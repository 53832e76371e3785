"""Folders of the cache that go away while something is written there."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fail_points import reached_points
from tilewright.compiler import Entry, Store
from tilewright.support import settings
from tilewright.support.disk_cache import Documents, clear
from tilewright.support.disk_cache.fail_points import FailPoints


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder for the cache, not made yet."""
    with settings().cache.scope(dir=tmp_path / "cache"):
        yield tmp_path / "cache"


def vanish(folder: Path) -> None:
    shutil.rmtree(folder)


def move(folder: Path) -> None:
    folder.rename(folder.with_name(f"moved{os.urandom(4).hex()}"))


def clear_cache(folder: Path) -> None:
    clear(folder if folder.name == "cache" else folder.parent)


def write_document(number: int) -> None:
    Documents("autotune").write(str(number), {"x": number})


def write_entry(number: int) -> None:
    Store(settings().cache.dir, 0).write(str(number), Entry({"name": "k"}, {"obj": b"code"}))


def is_document_kept(number: int) -> bool:
    return Documents("autotune").read(str(number)) is not None


def is_entry_kept(number: int) -> bool:
    return Store(settings().cache.dir, 0).read(str(number)) is not None


@pytest.mark.parametrize("disturb", [vanish, move, clear_cache])
@pytest.mark.parametrize("kind", ["autotune", "kernels"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_folder_that_goes_away_while_something_is_written(
    root: Path, kind: str, disturb: Callable[[Path], None], whole: bool
) -> None:
    """Nothing is told, and what is written next is kept."""
    write, is_kept = {
        "autotune": (write_document, is_document_kept),
        "kernels": (write_entry, is_entry_kept),
    }[kind]
    points = reached_points(lambda: write(0))
    assert len(points) >= 6
    for nth in range(len(points)):
        count = iter(range(nth))

        def disturb_once(point: str, count: Iterator[int] = count) -> None:
            if next(count, None) is None:
                FailPoints.hook = None
                disturb(root if whole else root / kind)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            FailPoints.hook = disturb_once
            try:
                write(1)
            finally:
                FailPoints.hook = None
            write(2)
            assert is_kept(2), points[nth]
            shutil.rmtree(root)


def test_a_folder_that_always_goes_away(root: Path) -> None:
    for write in (write_document, write_entry):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            FailPoints.hook = lambda point: shutil.rmtree(root, ignore_errors=True)
            try:
                write(1)
            finally:
                FailPoints.hook = None
    write_entry(2)
    assert is_entry_kept(2)
