"""Locks in forked children, and caches that need none."""

import copy
import gc
import pickle
import sys
import threading
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.forking import assert_child_succeeds, needs_fork
from tilewright.support import (
    ForkLock,
    cached_property,
    collection_paused,
    fork_waits,
    hold_across_forks,
    import_late,
    package_late,
)
from tilewright.support.errors import ToolMissing
from tilewright.support.fork_locks import _Forks  # pyright: ignore[reportPrivateUsage]


@contextmanager
def held_elsewhere(guard: AbstractContextManager[object]) -> Generator[None]:
    """Another thread is inside `guard`."""
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with guard:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    yield
    leave.set()
    thread.join()


def is_free(lock: AbstractContextManager[object]) -> bool:
    """Whether another thread can take the lock."""
    return _taken(lock).wait(20)


def is_held(lock: ForkLock) -> bool:
    """Whether another thread, which tries for a while, cannot take the lock."""
    return not _taken(lock).wait(0.2)


def _taken(lock: AbstractContextManager[object]) -> threading.Event:
    """Set as soon as another thread has taken the lock."""
    taken = threading.Event()

    def take() -> None:
        with lock:
            taken.set()

    threading.Thread(target=take, daemon=True).start()
    return taken


@needs_fork
def test_a_lock_that_another_thread_holds_is_free_in_the_child() -> None:
    lock = ForkLock()

    def use() -> None:
        with lock:
            assert is_held(lock)
        assert is_free(lock)

    with held_elsewhere(lock):
        assert_child_succeeds(use)
        assert is_held(lock)


@needs_fork
def test_the_forking_thread_still_holds_its_lock_in_the_child() -> None:
    lock = ForkLock()

    def use() -> None:
        assert is_held(lock)
        lock.__exit__(None, None, None)
        assert is_free(lock)

    with lock:
        assert_child_succeeds(use)


def test_a_copy_of_a_lock_is_another_lock() -> None:
    lock = ForkLock()
    with held_elsewhere(lock):
        assert is_free(copy.deepcopy(lock))
        assert is_free(pickle.loads(pickle.dumps(lock)))


@needs_fork
def test_a_fork_waits_for_work_that_must_not_be_cut_in_two() -> None:
    steps: list[str] = []
    inside = threading.Event()

    def work() -> None:
        with fork_waits():
            inside.set()
            time.sleep(0.2)
            steps.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    assert_child_succeeds(lambda: steps.remove("done"))
    thread.join()
    assert steps == ["done"]


@needs_fork
def test_a_fork_inside_such_work_does_not_wait_for_itself() -> None:
    def use() -> None:
        with fork_waits():
            pass

    with fork_waits():
        assert_child_succeeds(use)


@needs_fork
def test_a_lock_of_a_library_is_held_across_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = threading.RLock()
    monkeypatch.setattr(_Forks, "held", list(_Forks.held))
    hold_across_forks(guard)
    steps: list[int] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            with guard:
                steps.append(0)
                steps.pop()

    thread = threading.Thread(target=work)
    thread.start()

    def use() -> None:
        assert not steps
        assert guard.acquire(timeout=1)

    for _ in range(20):
        assert_child_succeeds(use)
    stop.set()
    thread.join()


@needs_fork
def test_a_lock_that_is_added_while_a_fork_waits_is_held_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when the module that adds it is being imported."""
    guard = threading.RLock()
    monkeypatch.setattr(_Forks, "held", list(_Forks.held))
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with fork_waits():
            inside.set()
            time.sleep(0.2)
            guard.acquire()
            hold_across_forks(guard)
        leave.wait(0.2)
        guard.release()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()

    def use() -> None:
        assert guard.acquire(timeout=1)

    assert_child_succeeds(use)
    leave.set()
    thread.join()


SLOW_MODULE = "import time\ntime.sleep(0.3)\nvalue = 7\n"


@needs_fork
def test_an_import_at_first_use_is_whole_in_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_module_for_forks.py").write_text(SLOW_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "slow_module_for_forks"
    thread = threading.Thread(target=import_late, args=(name,))
    thread.start()
    while name not in sys.modules:
        time.sleep(0.001)

    def use() -> None:
        assert import_late(name).value == 7

    assert_child_succeeds(use)
    thread.join()


@needs_fork
@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_in_the_child_as_before_compilations(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()

    def use() -> None:
        assert gc.isenabled() == enabled
        with collection_paused():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled

    try:
        with held_elsewhere(collection_paused()):
            assert not gc.isenabled()
            assert_child_succeeds(use)
    finally:
        gc.enable()


@needs_fork
def test_a_fork_inside_a_pause_stays_inside_in_the_child() -> None:
    pause = collection_paused()

    def use() -> None:
        assert not gc.isenabled()
        pause.__exit__(None, None, None)
        assert gc.isenabled()

    with pause:
        assert_child_succeeds(use)
    assert gc.isenabled()


class Square:
    def __init__(self, side: int) -> None:
        self.side = side
        self.computed = 0

    @cached_property
    def area(self) -> int:
        """Side squared."""
        self.computed += 1
        time.sleep(self.side * 0.1)
        return self.side**2


def test_a_cached_property_is_computed_once() -> None:
    square = Square(0)
    assert (square.area, square.area, square.computed) == (0, 0, 1)
    assert Square.area.__doc__ == "Side squared."


@needs_fork
def test_a_cached_property_that_another_thread_computes_is_computed_in_the_child() -> None:
    square = Square(3)
    thread = threading.Thread(target=lambda: square.area)
    thread.start()
    while not square.computed:
        time.sleep(0.001)

    def use() -> None:
        assert square.area == 9

    assert_child_succeeds(use)
    thread.join()


def test_a_package_that_is_not_installed_is_named_with_its_remedy() -> None:
    with pytest.raises(ToolMissing, match="'no_such_package.part' was not found") as caught:
        package_late("no_such_package.part", "pip install something")
    assert caught.value.hint == "pip install something"
    assert package_late("json.decoder", "").__name__ == "json.decoder"
