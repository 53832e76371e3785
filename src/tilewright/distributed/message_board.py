"""Texts by name in the store of a process group, whose calls cannot block this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from tilewright.support.asynchronous_exceptions import synchronous

T = TypeVar("T")


class Store(Protocol):
    """A store of `torch.distributed`, as far as it is used here."""

    def set(self, key: str, value: str, /) -> object: ...
    def get(self, key: str, /) -> bytes: ...
    def check(self, keys: list[str], /) -> bool: ...
    def add(self, key: str, amount: int, /) -> int: ...
    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes: ...


class UnreachableError(Exception):
    """A store that has failed or does not respond."""


class MessageBoard:
    """The texts whose names in the store start with `prefix`.

    seconds: for each call; after that, or an exception of the store, every call raises
    UnreachableError.
    """

    def __init__(self, store: Store, prefix: str, seconds: float) -> None:
        self._store = store
        self.prefix = prefix
        self._seconds = seconds
        self._problem: str | None = None
        self._work: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        # A daemon, since a call of a store whose host has vanished may never return.
        threading.Thread(target=self._serve, name="tilewright-agree", daemon=True).start()

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            call, future = work
            try:
                future.set_result(call())
            except synchronous(Exception) as problem:
                future.set_exception(problem)

    def close(self) -> None:
        """End the thread of the calls."""
        self._work.put(None)

    def _call(self, call: Callable[[], T]) -> T:
        if self._problem is not None:
            raise UnreachableError(self._problem)
        future: Future[T] = Future()
        self._work.put((call, future))
        try:
            return future.result(self._seconds)
        except synchronous(Exception) as problem:
            late = isinstance(problem, TimeoutError) and not future.done()
            first = str(problem).partition("\n")[0]
            self._problem = f"no answer for {self._seconds:g} s" if late else first
            raise UnreachableError(self._problem) from problem

    def put(self, name: str, text: str) -> None:
        """Write a text."""
        self._call(lambda: self._store.set(self.prefix + name, text))

    def get(self, name: str) -> str | None:
        """The text, or None if none was written."""
        key = self.prefix + name

        def read() -> str | None:
            # `get` alone would wait for the key
            return self._store.get(key).decode() if self._store.check([key]) else None

        return self._call(read)

    def put_first(self, name: str, text: str) -> str:
        """Write a text unless there is one; the text that is there now."""
        key = self.prefix + name
        return self._call(lambda: self._store.compare_set(key, "", text).decode())

    def count(self, name: str, more: int = 1) -> int:
        """Increase a counter, and return it."""
        return self._call(lambda: self._store.add(self.prefix + name, more))
