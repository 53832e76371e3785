"""Run a script that may measure as if the machine had small caches.

Flushing all caches of a large server takes a second for each timed call: `python
with_small_caches.py SCRIPT ARGUMENT...`.
"""

import runpy
import sys
from pathlib import Path

from tilewright.runtime.bench import cpu_caches

SMALL = (cpu_caches.Cache(level=2, size=cpu_caches.MIB, shared_by=1),)

if __name__ == "__main__":
    cpu_caches.read_caches = lambda folder=cpu_caches.CACHE_FOLDER: SMALL
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
