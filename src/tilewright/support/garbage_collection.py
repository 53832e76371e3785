"""Python's cyclic garbage collector, held back while a kernel is compiled.

A compilation makes tens of thousands of objects, so the collector runs several times; a full run
walks all objects of the process: 50 ms beside torch, a seventh of the compile time of an attention
kernel. Nothing of the IR is garbage before the compilation ends.

Modules that are imported meanwhile are no garbage afterwards either. The first collection would
walk them as young objects: 8 ms for what a first launch imports.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import ClassVar

from tilewright.support.fork_locks import ForkLock
from tilewright.support.operating_system import at_fork

_FEW_MODULES = 20
"""Imported in a pause, whose objects stay young."""


def _age_all() -> None:
    """Leave all objects of now to full collections, as if they had survived two others.

    Objects that the program itself has frozen must stay so; then nothing happens.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


class _Paused:
    """The threads that are inside a block. A fork may come between any two statements here."""

    lock = ForkLock()
    threads: ClassVar[dict[int, int]] = {}
    """How often each thread is inside."""
    was_enabled = False
    modules = 0
    """How many were imported before."""

    @classmethod
    def enter(cls, thread: int) -> None:
        with cls.lock:
            first = not cls.threads
            if first:
                # set before gc.disable(): a child forked in between must know what to go back to
                cls.was_enabled = gc.isenabled()
                cls.modules = len(sys.modules)
            cls.threads[thread] = cls.threads.get(thread, 0) + 1
            if first:
                gc.disable()

    @classmethod
    def leave(cls, thread: int) -> None:
        with cls.lock:
            cls.threads[thread] -= 1
            if not cls.threads[thread]:
                del cls.threads[thread]
            cls.resume()

    @classmethod
    def resume(cls) -> None:
        """Turn collection on again if no thread is inside and it was on before."""
        # the last to leave, not the first to have entered: blocks of different threads overlap
        if not cls.threads and cls.was_enabled:
            if len(sys.modules) > cls.modules + _FEW_MODULES:
                _age_all()
            gc.enable()
            cls.was_enabled = False

    @classmethod
    def after_fork_in_child(cls) -> None:
        """The other threads that were inside are not here to leave."""
        # a thread's identifier stays the same in the child that it forks
        here = threading.get_ident()
        cls.threads = {thread: n for thread, n in cls.threads.items() if thread == here}
        cls.resume()


@contextmanager
def collection_paused() -> Generator[None]:
    """A block without cyclic collection, in all threads; blocks may nest and overlap.

    A collector that was off stays off.
    """
    thread = threading.get_ident()
    _Paused.enter(thread)
    try:
        yield
    finally:
        _Paused.leave(thread)


at_fork(after_in_child=_Paused.after_fork_in_child)
