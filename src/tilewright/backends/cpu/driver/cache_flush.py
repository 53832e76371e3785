"""Cache flush: evicts memory from the caches of all cores by `clflushopt`.

The instruction writes a modified line back and evicts it from every cache of every core, which
takes less time than reading it from memory. The threads of the pool share the work.
"""

import ctypes
import functools
import struct
from collections.abc import Sequence
from pathlib import Path

from tilewright.backends.cpu.driver.kernel_record import KernelRecord, kernel_record
from tilewright.backends.cpu.driver.thread_pool import shared_pool
from tilewright.llvm import LoadedObject, host_cpu, load_object
from tilewright.native import NativeProgram

_LINE = 64
"""Bytes of a cache line of every x86 CPU with the instruction."""
_SMALLEST_BLOCK = 1 << 16
"""Bytes below which distributing a block among threads takes longer than flushing it."""
_BLOCKS = 64
"""Number of blocks for the threads, unless they would be smaller than `_SMALLEST_BLOCK`."""


class MemoryBlock(ctypes.Structure):
    """The memory that one program of the grid flushes."""

    _fields_ = (
        ("first", ctypes.c_uint64),  # address
        ("end", ctypes.c_uint64),  # the address after the last byte
    )


_SYMBOL = "tw_drop_lines"
CACHE_FLUSH = NativeProgram(
    source=Path(__file__).with_name("cache_flush.c"),
    exports=[_SYMBOL],
    structures=[MemoryBlock],
    constants={"LINE_BYTES": _LINE},
    definitions={
        "flush_line": """declare void @llvm.x86.clflushopt(ptr)
define internal void @flush_line(ptr %address) alwaysinline nounwind {
  call void @llvm.x86.clflushopt(ptr %address)
  ret void
}""",
        "fence": """declare void @llvm.x86.sse2.mfence()
define internal void @fence() alwaysinline nounwind {
  call void @llvm.x86.sse2.mfence()
  ret void
}""",
    },
)

_Loaded = tuple[KernelRecord, LoadedObject]


@functools.cache
def _loaded() -> _Loaded | None:
    return _load(CACHE_FLUSH.compile()) if "clflushopt" in host_cpu().enabled else None


def _load(obj: bytes) -> _Loaded:
    """The flush as a kernel, and the loaded object, which must live as long as the record."""
    code = load_object(obj, CACHE_FLUSH.exports)
    return kernel_record(code[_SYMBOL], "dropping memory from the caches"), code


def drop_lines(spans: Sequence[tuple[int, int]], threads: int = 0) -> bool:
    """Evict mapped memory, given as (address, bytes); False on CPUs without the instruction.
    threads: of the pool that runs it; 0: all CPUs of this process."""
    loaded = _loaded()
    if loaded is None:
        return False
    # Whole lines, so that no line belongs to two blocks.
    block = max(_SMALLEST_BLOCK, sum(size for _, size in spans) // _BLOCKS & -_LINE)
    rows: list[int] = []
    for address, size in spans:
        for first in range(address & -_LINE, address + size, block):
            rows += (first, min(first + block, address + size))
    table = struct.pack(f"<{len(rows)}Q", *rows)
    pool = shared_pool(threads)
    pool.launch(loaded[0], table, (len(rows) // 2, 1, 1), 0)
    return True
