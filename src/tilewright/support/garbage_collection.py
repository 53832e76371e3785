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
from types import TracebackType
from typing import ClassVar
from weakref import ReferenceType, ref

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
    """The blocks that are being executed. A fork, or a signal handler that raises, may come between
    any two statements here."""

    lock = ForkLock()
    threads: ClassVar[dict[ReferenceType[collection_paused], int]] = {}
    """The thread of each block."""
    was_enabled = False
    modules = 0
    """How many were imported before."""

    @classmethod
    def enter(cls, block: ReferenceType[collection_paused]) -> None:
        with cls.lock:
            # blocks that are gone: a handler has raised just before `__exit__` could do anything
            for left in [left for left in cls.threads if left() is None]:
                cls.threads.pop(left)
            cls.resume()
            first = not cls.threads
            if first:
                # set before gc.disable(): a child forked in between must know what to go back to
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
        cls.threads = {block: thread for block, thread in cls.threads.items() if thread == here}
        cls.resume()


class collection_paused:
    """A block without cyclic collection, in all threads; blocks may nest and overlap.

    A collector that was off stays off.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        """Turn collection off."""
        try:
            _Paused.enter(ref(self))
        except BaseException:  # of a signal handler: there will be no `__exit__`
            _Paused.leave(ref(self))
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Turn collection on again, if it was on."""
        try:
            _Paused.leave(ref(self))
        except BaseException:  # of a signal handler, which may have come before or after it
            _Paused.leave(ref(self))
            raise


at_fork(after_in_child=_Paused.after_fork_in_child)
