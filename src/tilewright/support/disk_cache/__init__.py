"""The folder in which this package keeps files between processes, and how files get there whole.

    <cache>/kernels/    compiled kernels        (compiler.store)
            autotune/   timings of autotuners   (runtime.tuning_store)
            grammar/    parser tables           (frontend.c.grammar)
            native/     code of this package, and what LLVM says of the machine
            crashes/    reproducers of bugs     (compiler.stages)

Machine code is read from there and run. So files are read only from folders that no other user may
write to (`trust`), through checksums (`sealed`), and are written under another name, synchronized
and renamed (`files`): they are there whole or not at all, also after a crash. The size of all kinds
together is bounded (`eviction`).
"""

from .checksummed_json import sealed, unsealed
from .eviction import KINDS, MEGABYTE, STAMP, Eviction, wrote
from .folder_trust import cache_folder
from .json_documents import Documents
from .transient_failures import is_transient
from .whole_files import OpenFolder, remove, replace_folder, write_file

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
    "write_file",
    "wrote",
]
