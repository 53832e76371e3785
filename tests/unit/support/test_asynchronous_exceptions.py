"""What signal handlers raise is told from what the interrupted code raises."""

from __future__ import annotations

import functools
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from tests.stop_points import is_stopped_at
from tests.unit.support.test_fork_locks import is_free
from tilewright.support import ForkLock
from tilewright.support.asynchronous_exceptions import is_asynchronous, suppress, synchronous

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")


def fail() -> None:
    raise TimeoutError("too slow")


def plain(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("too slow")


def variadic(*_: object) -> None:
    fail()


class Handler:
    def method(self, number: int, frame: FrameType | None) -> None:
        fail()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        raise TimeoutError("too slow")


def wrapped(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> None:
        function(*args, **named)

    return call


HANDLERS: dict[str, Callable[..., Any]] = {
    "function": plain,
    "variadic": variadic,
    "method": Handler().method,
    "object": Handler(),
    "lambda": lambda *_: fail(),
    "partial": functools.partial(lambda _, number, frame: fail(), 1),
    "wrapped": wrapped(plain),
}


def loop() -> None:
    while True:
        pass


def call_often() -> None:
    while True:
        sorted([3, 1, 2], key=lambda x: -x)


def sleep() -> None:
    time.sleep(60)


@pytest.fixture(params=HANDLERS)
def alarm(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, HANDLERS[request.param])
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("work", [loop, call_often, sleep])
def test_a_handlers_exception_passes_every_except(work: Callable[[], None]) -> None:
    caught: list[str] = []

    def guarded() -> None:
        try:
            with suppress(OSError, TimeoutError):
                work()
            caught.append("suppressed")
        except synchronous(OSError):
            caught.append("except")
        except synchronous(ValueError, Exception):
            caught.append("several")

    with pytest.raises(TimeoutError, match="too slow") as problem:
        guarded()
    assert is_asynchronous(problem.value)
    assert caught == []


def test_other_exceptions_are_caught() -> None:
    with suppress(OSError):
        fail()
    try:
        fail()
    except synchronous(OSError) as problem:
        assert not is_asynchronous(problem)
    with pytest.raises(KeyError), suppress(OSError):
        raise KeyError
    with pytest.raises(TimeoutError):
        try:
            fail()
        except synchronous(ValueError):
            pytest.fail("another kind")


def test_a_lock_is_free_after_an_exception_at_any_point() -> None:
    lock = ForkLock()

    def block() -> None:
        with lock:
            len([])

    reached = 0
    while is_stopped_at(reached, block):
        assert is_free(lock), reached
        reached += 1
    assert reached >= 3
