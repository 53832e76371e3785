"""The garbage collector is off while kernels are compiled, and afterwards as before."""

import gc
from collections.abc import Iterator

import pytest

import tilewright
import tilewright.language as tl
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
