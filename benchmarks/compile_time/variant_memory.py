"""What a variant of a kernel takes in memory: launches many specializations, and prints the slope.

    python -m benchmarks.compile_time.variant_memory --count 2000 --limit 0

--limit: variants of a kernel that stay in memory (TILEWRIGHT_MAX_VARIANTS); 0 keeps all. The last
line is the growth of the resident memory for each variant, in kB. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import mmap
from pathlib import Path
from typing import Any

import numpy as np

import tilewright
import tilewright.language as tl

WARM_UP = 100
"""Variants before the first look: imports, LLVM, the allocator."""


@tilewright.jit
def scaled(out: Any, x: Any, n: Any, C: tl.constexpr):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(out + i, tl.load(x + i, i < n) * C + n, i < n)


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def launch(first: int, count: int) -> None:
    """Launch variants that no one has launched before."""
    out, x = np.zeros(64, "f"), np.ones(64, "f")
    for constant in range(first, first + count):
        scaled[(4,)](out, x, 63, C=constant)
        assert out[0] == constant + 63 and out[63] == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--limit", type=int, default=0)
    chosen = parser.parse_args()
    with tilewright.settings().cache.scope(max_variants=chosen.limit):
        launch(2, WARM_UP)
        before, first = resident(), 2 + WARM_UP
        quarter = max(1, chosen.count // 4)
        for done in range(quarter, 4 * quarter + 1, quarter):
            launch(first + done - quarter, quarter)
            print(f"{done:6} variants: {(resident() - before) / 1e6:6.1f} MB more")
    print(f"{(resident() - before) / (4 * quarter) / 1e3:.1f}")


if __name__ == "__main__":
    main()
