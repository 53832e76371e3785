"""Locks that survive `fork`.

A forked child has one thread, the one that forked. A lock that another thread of the parent held
would stay locked in the child for ever, and what that thread was doing stays half done. So there
are two kinds of critical section here, and the linter refuses other locks:

* `ForkLock` guards what a child can do without, or do again: in the child it is free, unless the
  forking thread itself holds it.
* `fork_waits()` is for work that must not be cut in two, such as an import at first use, and
  `hold_across_forks` for a lock of a library: a fork waits until no thread is inside, so the child
  finds the work done or not begun.
"""

from __future__ import annotations

import _thread
import importlib
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, ClassVar

from tilewright.support.asynchronous_exceptions import suppress
from tilewright.support.operating_system import at_fork

__all__ = [
    "ForkLock",
    "attribute_late",
    "fork_waits",
    "function_late",
    "hold_across_forks",
    "import_late",
]

Guard = AbstractContextManager[object]


class ForkLock(_thread.RLock):  # pyright: ignore[reportGeneralTypeIssues] -- final in stubs only
    """A reentrant lock, used in `with`. What it guards must be sound between any two statements:
    a fork may come there, and the child continues without the thread that was inside.

    It inherits `__enter__`, which is written in C: Python runs no signal handler between taking the
    lock and entering the block, so that what a handler raises always releases it.
    """

    def __init__(self) -> None:
        _Forks.renewed.add(self)

    def __reduce__(self) -> tuple[type[ForkLock], tuple[()]]:
        """A copy of what it guards gets a lock of its own."""
        return ForkLock, ()

    def renew(self) -> None:
        """In a forked child: replace the lock if a thread that is not here holds it."""
        # In the child only this thread runs: what it cannot take is held by one that is gone.
        if self.acquire(blocking=False):
            self.release()
        else:
            self._at_fork_reinit()  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]


class _Forks:
    """What a fork has to do with locks."""

    renewed: ClassVar[weakref.WeakSet[ForkLock]] = weakref.WeakSet()
    waiting = _thread.RLock()  # of `fork_waits`
    held: ClassVar[list[Guard]] = [waiting]
    """In the order in which a fork takes them."""
    taken: ClassVar[list[Guard]] = []
    """By the fork that is under way."""

    @classmethod
    def before(cls) -> None:
        for guard in cls.held:  # which may grow while one of them is waited for
            # noted first: a signal handler may raise between the two
            cls.taken.append(guard)
            guard.__enter__()

    @classmethod
    def after(cls) -> None:
        # the last taken first, as nested `with` blocks would do
        while cls.taken:
            with suppress(RuntimeError):  # it was noted, but not taken
                cls.taken.pop().__exit__(None, None, None)

    @classmethod
    def after_in_child(cls) -> None:
        cls.after()
        for lock in list(cls.renewed):
            lock.renew()


def fork_waits() -> Guard:
    """A block that no fork of another thread cuts in two; one thread at a time is in one.

    For imports inside functions: a child that is forked in the middle of one would wait for ever
    for the rest of it.
    """
    return _Forks.waiting


def import_late(name: str) -> ModuleType:
    """Import a module at its first use; a fork waits until that is done."""
    with fork_waits():
        return importlib.import_module(name)


def attribute_late(path: str) -> Any:
    """What "module:name" stands for; the module is imported at its first use."""
    module, _, name = path.partition(":")
    return getattr(import_late(module), name)


def function_late(path: str) -> Callable[..., Any]:
    """The function that "module:name" stands for; the module is imported at its first call."""

    def call(*arguments: Any) -> Any:
        return attribute_late(path)(*arguments)

    return call


def hold_across_forks(guard: Guard) -> None:
    """From now on every fork takes `guard`, a reentrant lock, and gives it back in both processes.

    Whoever holds it must not wait for `fork_waits()` or for a guard that was added before.
    """
    _Forks.held.append(guard)


at_fork(
    before=_Forks.before,
    after_in_parent=_Forks.after,
    after_in_child=_Forks.after_in_child,
)
