"""Python's cyclic garbage collector, held back while a kernel is compiled.

A compilation makes tens of thousands of objects, so the collector runs several times; a full run
walks all objects of the process: 50 ms beside torch, a seventh of the compile time of an attention
kernel. Nothing of the IR is garbage before the compilation ends.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0
_was_enabled = False


@contextmanager
def collection_paused() -> Generator[None]:
    """A block without cyclic collection, in all threads; blocks may nest and overlap.

    A collector that was off stays off.
    """
    global _inside, _was_enabled
    with _lock:
        if _inside == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _was_enabled:
                gc.enable()
