"""The folder in which this package keeps files between processes, and how files get there whole.

    <cache>/kernels/    compiled kernels        (compiler.store)
            autotune/   timings of autotuners   (runtime.tuning_store)
            grammar/    parser tables           (frontend.c.grammar)
            crashes/    reproducers of bugs     (compiler.stages)

Machine code is read from there and run. So files are read only from folders that no other user may
write to (`trust`), through checksums (`sealed`), and are written under another name, synchronized
and renamed (`files`): they are there whole or not at all, also after a crash. The size of all kinds
together is bounded (`eviction`).
"""

from .documents import Documents
from .eviction import KINDS, MEGABYTE, STAMP, Eviction, wrote
from .files import OpenFolder, remove, replace_folder
from .sealed import sealed, unsealed
from .transient import is_transient
from .trust import cache_folder

__all__ = [
    "KINDS",
    "MEGABYTE",
    "STAMP",
    "Documents",
    "Eviction",
    "OpenFolder",
    "cache_folder",
    "is_transient",
    "remove",
    "replace_folder",
    "sealed",
    "unsealed",
    "wrote",
]
