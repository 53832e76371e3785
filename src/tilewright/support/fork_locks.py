"""Locks that survive `fork`.

A forked child has one thread, the one that forked. A lock that another thread of the parent held
would stay locked in the child for ever, and the work of that thread half done. So there are two
kinds of critical sections, and the linter rejects other locks:

* `ForkLock` guards work that a child can omit or repeat: in the child it is free, unless the
  forking thread itself holds it.
* `fork_waits()` is for work that must not be cut in two, such as an import at first use, and
  `hold_across_forks` for a lock of a library: a fork waits until no thread is inside, so the
  child finds the work done or not started.
"""

from __future__ import annotations

import _thread
import importlib
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, ClassVar

from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import suppress
from tilewright.support.operating_system import at_fork

Guard = AbstractContextManager[object]


class ForkLock(_thread.RLock):  # pyright: ignore[reportGeneralTypeIssues] -- final in stubs only
    """A reentrant lock, used in `with`.

    The guarded data must be consistent between any two statements: a fork may happen there, and the
    child continues without the thread that was inside.

    It inherits `__enter__`, which is written in C: Python runs no signal handler between taking the
    lock and entering the block, so an exception of a handler always releases it.
    """

    def __init__(self) -> None:
        _Forks.renewed.add(self)

    def __reduce__(self) -> tuple[type[ForkLock], tuple[()]]:
        """A new lock: a copy of the guarded object needs its own."""
        return ForkLock, ()

    def renew(self) -> None:
        """In a forked child: replace the lock if a thread of the parent holds it."""
        # Only this thread runs in the child: a lock that it cannot take belongs to a lost thread.
        if self.acquire(blocking=False):
            self.release()
        else:
            self._at_fork_reinit()  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]


class _Forks:
    """State of the locks that a fork takes."""

    renewed: ClassVar[weakref.WeakSet[ForkLock]] = weakref.WeakSet()
    waiting = _thread.RLock()  # the lock of `fork_waits`
    held: ClassVar[list[Guard]] = [waiting]
    """The guards, in the order in which a fork takes them."""
    taken: ClassVar[list[Guard]] = []
    """The guards that the current fork has taken."""

    @classmethod
    def before(cls) -> None:
        for guard in cls.held:  # the list may grow during a wait
            # appended before the call: a signal handler may raise between the two
            cls.taken.append(guard)
            guard.__enter__()

    @classmethod
    def after(cls) -> None:
        # in reverse order, as nested `with` blocks would release them
        while cls.taken:
            with suppress(RuntimeError):  # it was appended, but not taken
                cls.taken.pop().__exit__(None, None, None)

    @classmethod
    def after_in_child(cls) -> None:
        cls.after()
        for lock in list(cls.renewed):
            lock.renew()


def fork_waits() -> Guard:
    """A block that no fork of another thread interrupts; one thread at a time is inside.

    For imports inside functions: a child that is forked during one would wait for its end for ever.
    """
    return _Forks.waiting


def import_late(name: str) -> ModuleType:
    """Import a module at its first use; a fork waits until it is imported."""
    with fork_waits():
        return importlib.import_module(name)


def package_late(name: str, remedy: str) -> ModuleType:
    """A module of a package that most users do without, imported at its first use.

    Raises ToolMissing with the remedy where it is not installed.
    """
    try:
        return import_late(name)
    except ModuleNotFoundError:
        raise errors.ToolMissing(name, "this Python's packages", remedy) from None


def attribute_late(path: str) -> Any:
    """The object named "module:name"; the module is imported at its first use."""
    module, _, name = path.partition(":")
    return getattr(import_late(module), name)


def function_late(path: str) -> Callable[..., Any]:
    """The function named "module:name"; the module is imported at its first call."""

    def call(*arguments: Any) -> Any:
        return attribute_late(path)(*arguments)

    return call


def hold_across_forks(guard: Guard) -> None:
    """Make every fork take `guard`, a reentrant lock, and release it in both processes.

    A thread that holds it must not wait for `fork_waits()` or for a guard that was added before.
    """
    _Forks.held.append(guard)


at_fork(
    before=_Forks.before,
    after_in_parent=_Forks.after,
    after_in_child=_Forks.after_in_child,
)
