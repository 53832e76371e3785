"""The garbage collector is off while kernels are compiled, and afterwards as before."""

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import tilewright
import tilewright.language as tl
from tests.stop_points import is_stopped_at
from tilewright.support import (
    Event,
    ListRecorder,
    PassEnded,
    collection_paused,
    recording,
    settings,
)


@pytest.fixture(autouse=True)
def _enabled() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    gc.enable()
    yield
    gc.enable()


def test_blocks_nest():
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_off_stays_off():
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


def test_errors_end_the_pause():
    with pytest.raises(ZeroDivisionError), collection_paused():
        raise ZeroDivisionError
    assert gc.isenabled()


def _pause_that_imports(monkeypatch: pytest.MonkeyPatch, modules: int) -> list[object]:
    """A container that is made in a pause, in which modules are imported."""
    with collection_paused():
        for number in range(modules):
            monkeypatch.setitem(sys.modules, f"imported_{number}", ModuleType("imported"))
        return [object()]


def _is_young(made: object) -> bool:
    return any(one is made for one in gc.get_objects(generation=0))


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """The tests freeze what they import."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("nothing_frozen")
def test_what_is_imported_in_a_pause_is_not_walked_behind_it(monkeypatch: pytest.MonkeyPatch):
    assert not _is_young(_pause_that_imports(monkeypatch, 100))
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("nothing_frozen")
def test_what_is_made_in_a_pause_without_imports_stays_young(monkeypatch: pytest.MonkeyPatch):
    gc.collect()
    assert _is_young(_pause_that_imports(monkeypatch, 0))


def test_what_was_frozen_stays_frozen(monkeypatch: pytest.MonkeyPatch):
    gc.freeze()
    assert _is_young(_pause_that_imports(monkeypatch, 100))
    assert gc.get_freeze_count() > 0


class _Watcher(ListRecorder):
    """Notes at every event whether the collector may run."""

    def __init__(self) -> None:
        super().__init__()
        self.enabled: list[bool] = []

    def record(self, event: Event) -> None:
        if isinstance(event, PassEnded):
            self.enabled.append(gc.isenabled())


@tilewright.jit
def count_up(out):
    tl.store(out + tl.arange(0, 64), tl.arange(0, 64))


def test_compilations_pause():
    watcher = _Watcher()
    with settings().cache.scope(always_compile=True), recording(watcher):
        count_up.warmup(tilewright.MockTensor("float32"), grid=(1,))
    assert watcher.enabled
    assert not any(watcher.enabled)
    assert gc.isenabled()


def test_an_exception_at_any_point_ends_the_pause():
    """What a signal handler raises, in `__enter__`, in the block and in `__exit__`."""

    def block() -> None:
        with collection_paused():
            len([])

    reached = late = 0
    while is_stopped_at(reached, block):
        late += not gc.isenabled()
        with collection_paused():
            pass
        assert gc.isenabled(), reached
        reached += 1
    assert reached > 10
    # as `__exit__` is called, nothing of it can run: the next block makes up for it
    assert late <= 1
