"""The folder of files that outlive a process, and atomic writes to it.

    <cache>/kernels/    compiled kernels        (compiler.store)
            autotune/   timings of autotuners   (runtime.tuning_store)
            grammar/    parser tables           (frontend.c.grammar)
            native/     code of this package, and LLVM's description of the machine
            crashes/    reproducers of bugs     (compiler.stages)

Machine code is read from there and run. So files are read only from folders that no other user may
write to (`folder_trust`), through checksums (`checksummed_json`), and are written under another
name, synchronized and renamed (`whole_files`): a file is complete or absent, even after a crash.
The size of all kinds together is bounded (`eviction`). The folder may contain files of the user,
which are never deleted (`own_files`).
"""

# pyright: reportUnusedImport=false

from .checksummed_json import sealed, unsealed
from .eviction import MEGABYTE, STAMP, Eviction, clear, wrote
from .folder_trust import cache_folder, in_cache_folder
from .json_documents import Documents
from .own_files import CRASH_HEAD, INDEX
from .transient_failures import is_transient, is_unreadable
from .whole_files import OpenFolder, remove, replace_folder, write_file
