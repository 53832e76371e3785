"""Python's cyclic garbage collector, paused while a kernel is compiled.

A compilation makes tens of thousands of objects, so the collector would run several times, and a
full run walks all objects of the process (ADR 0040). No IR is garbage before the compilation ends.

Modules that are imported during a pause are not garbage afterwards either, but the first collection
would walk them as young objects.
"""

from __future__ import annotations

import gc
import sys
import threading
from types import TracebackType
from typing import ClassVar
from weakref import ReferenceType, ref

from tilewright.support.fork_locks import ForkLock
from tilewright.support.operating_system import at_fork

_FEW_MODULES = 20
"""Number of modules imported in a pause, from which their objects move to the old generation."""


def _age_all() -> None:
    """Move all present objects to the oldest generation, as if they had survived two collections.

    Nothing happens if the program has frozen objects, which must stay frozen.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


class _Paused:
    """The active blocks.

    A fork, or a signal handler that raises, may come between any two statements here.
    """

    lock = ForkLock()
    threads: ClassVar[dict[ReferenceType[collection_paused], int]] = {}
    """The thread of each block."""
    was_enabled = False
    modules = 0
    """Number of imported modules at the start."""

    @classmethod
    def enter(cls, block: ReferenceType[collection_paused]) -> None:
        with cls.lock:
            # blocks that are gone: a handler raised just before `__exit__` could run
            for left in [left for left in cls.threads if left() is None]:
                cls.threads.pop(left)
            cls.resume()
            first = not cls.threads
            if first:
                # set before gc.disable(): a child forked in between must restore the same state
                cls.was_enabled = gc.isenabled()
                cls.modules = len(sys.modules)
            cls.threads[block] = threading.get_ident()
            if first:
                gc.disable()

    @classmethod
    def leave(cls, block: ReferenceType[collection_paused]) -> None:
        with cls.lock:
            cls.threads.pop(block, None)
            cls.resume()

    @classmethod
    def resume(cls) -> None:
        """Enable collection if no thread is inside and it was enabled before."""
        # the last thread to leave, not the first to enter: blocks of different threads overlap
        if not cls.threads and cls.was_enabled:
            if len(sys.modules) > cls.modules + _FEW_MODULES:
                _age_all()
            gc.enable()
            cls.was_enabled = False

    @classmethod
    def after_fork_in_child(cls) -> None:
        """Drop the blocks of threads that do not exist in a forked child."""
        # a thread's identifier is the same in the child that it forks
        here = threading.get_ident()
        cls.threads = {block: thread for block, thread in cls.threads.items() if thread == here}
        cls.resume()


class collection_paused:
    """A block without cyclic collection, in all threads; blocks may nest and overlap.

    A collector that was disabled stays disabled.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        """Disable collection."""
        try:
            _Paused.enter(ref(self))
        except BaseException:  # of a signal handler: `__exit__` will not run
            _Paused.leave(ref(self))
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Enable collection, if it was enabled."""
        try:
            _Paused.leave(ref(self))
        except BaseException:  # of a signal handler, before or after the call
            _Paused.leave(ref(self))
            raise


at_fork(after_in_child=_Paused.after_fork_in_child)
