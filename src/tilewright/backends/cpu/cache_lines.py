"""Drops memory from the caches of all cores, by the instruction for it.

`clflushopt` writes a line back if it has changed, and takes it out of every cache of every core.
Dropping 1 MB takes 30 us on one core of a Zen 4, less than reading it from memory does. The threads
of the pool share the work.
"""

import functools
import struct
from collections.abc import Sequence

from tilewright.backends.cpu.pool import shared_pool
from tilewright.llvm import LoadedObject, compile_ir, host_cpu, host_target, load_object
from tilewright.support import settings

__all__ = ["drop_lines"]

_LINE = 64
"""Bytes; of every x86 CPU with the instruction."""
_SMALLEST_BLOCK = 1 << 16
_BLOCKS = 64
"""Into as many parts memory is cut for the threads, if they are not too small."""

_SYMBOL = "tw_drop_lines"
_TEXT = f"""
declare void @llvm.x86.clflushopt(ptr)
declare void @llvm.x86.sse2.mfence()

; args: for each program instance the first address of its memory, and the one after the last
define void @{_SYMBOL}(ptr %args, i64 %begin, i64 %end, ptr %grid, ptr %scratch) nounwind {{
entry:
  call void @llvm.x86.sse2.mfence()
  br label %program
program:
  %id = phi i64 [ %begin, %entry ], [ %id.next, %lines ]
  %work = icmp slt i64 %id, %end
  br i1 %work, label %block, label %exit
block:
  %row = getelementptr [2 x i64], ptr %args, i64 %id
  %first = load i64, ptr %row
  %last.slot = getelementptr i64, ptr %row, i64 1
  %last = load i64, ptr %last.slot
  br label %lines
lines:
  %line = phi i64 [ %first, %block ], [ %next, %drop ]
  %id.next = add i64 %id, 1
  %more = icmp ult i64 %line, %last
  br i1 %more, label %drop, label %program
drop:
  %pointer = inttoptr i64 %line to ptr
  call void @llvm.x86.clflushopt(ptr %pointer)
  %next = add i64 %line, {_LINE}
  br label %lines
exit:
  call void @llvm.x86.sse2.mfence()
  ret void
}}
"""


@functools.cache
def _code() -> LoadedObject | None:
    if "clflushopt" not in host_cpu().enabled:
        return None
    return load_object(compile_ir(_TEXT, host_target()).obj, [_SYMBOL])


def drop_lines(spans: Sequence[tuple[int, int]]) -> bool:
    """Drop memory, given as (address, bytes), which must be mapped; False on CPUs that cannot."""
    code = _code()
    if code is None:
        return False
    block = max(_SMALLEST_BLOCK, sum(size for _, size in spans) // _BLOCKS & -_LINE)
    rows: list[int] = []
    for address, size in spans:
        for first in range(address & -_LINE, address + size, block):
            rows += (first, min(first + block, address + size))
    table = struct.pack(f"<{len(rows)}Q", *rows)
    pool = shared_pool(settings().cpu.threads)
    pool.launch(code[_SYMBOL], table, (len(rows) // 2, 1, 1), 0)
    return True
