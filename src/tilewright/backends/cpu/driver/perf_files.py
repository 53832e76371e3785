"""Files by which Linux's `perf` names kernels (`TILEWRIGHT_PERF=1`).

    /tmp/perf-PID.map     address, size and name of each kernel: `perf report` shows the names
    jit-PID.dump          code and line tables: `perf record -k mono`, then `perf inject --jit`
                          makes objects of it, of which `perf annotate` shows the lines

Linux describes the formats in `jit-interface.txt` and `jitdump-specification.txt` of
`tools/perf/Documentation`. perf finds the dump by an executable mapping of the file.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

from tilewright.backends.cpu.driver.loaded_code import LoadedCode

# magic, version, total_size, elf_mach, pad1, pid, timestamp, flags
_HEADER = struct.Struct("=IIIIIIQQ")
# id, total_size, timestamp
_RECORD = struct.Struct("=IIQ")
# pid, tid, vma, code_addr, code_size, code_index
_LOAD = struct.Struct("=IIQQQQ")
# code_addr, nr_entry
_DEBUG_INFO = struct.Struct("=QQ")
# code_addr, line, discrim
_DEBUG_ENTRY = struct.Struct("=Qii")
_MAGIC, _VERSION = 0x4A695444, 1
_CODE_LOAD, _CODE_DEBUG_INFO = 0, 2
_MACHINES = {"x86_64": 62, "aarch64": 183}


class PerfFiles:
    """The files of this process, which get a kernel by `add`."""

    def __init__(self, folder: Path | None = None) -> None:
        pid = os.getpid()
        self.pid = pid
        temporary = Path("/tmp")  # noqa: S108 -- where perf looks
        self.map = (folder or temporary) / f"perf-{pid}.map"
        self.dump = (folder or Path(tempfile.gettempdir())) / f"jit-{pid}.dump"
        self._count = 0
        self._dump: BinaryIO = self.dump.open("w+b", buffering=0)
        machine = _MACHINES.get(platform.machine(), 0)
        head = (_MAGIC, _VERSION, _HEADER.size, machine, 0, pid, time.monotonic_ns(), 0)
        self._dump.write(_HEADER.pack(*head))
        # perf records this mapping, and so the name of the file
        self._marker = mmap.mmap(
            self._dump.fileno(), _HEADER.size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC
        )

    def add(self, code: LoadedCode) -> None:
        """Describe a kernel that has been loaded."""
        with self.map.open("a", encoding="utf-8") as file:
            for name, (first, size) in code.table.functions.items():
                title = code.title if name == code.name else f"{name} of {code.title}"
                file.write(f"{code.base + first:x} {size:x} {title}\n")
        for name, (first, size) in code.table.functions.items():
            self._write_lines(code, first, size)
            self._write_code(name, code.base + first, size)

    def _write_lines(self, code: LoadedCode, first: int, size: int) -> None:
        """The lines of a function; perf wants them before its code."""
        rows = [row for row in code.table.rows if row.line and first <= row.offset < first + size]
        if not rows:
            return
        entries = [
            _DEBUG_ENTRY.pack(code.base + row.offset, row.line, 0) + row.file.encode() + b"\0"
            for row in rows
        ]
        body = _DEBUG_INFO.pack(code.base + first, len(rows)) + b"".join(entries)
        self._record(_CODE_DEBUG_INFO, body)

    def _write_code(self, name: str, address: int, size: int) -> None:
        self._count += 1
        head = _LOAD.pack(self.pid, self.pid, address, address, size, self._count)
        self._record(_CODE_LOAD, head + name.encode() + b"\0" + ctypes.string_at(address, size))

    def _record(self, kind: int, body: bytes) -> None:
        # records are multiples of 8 bytes
        body += bytes(-len(body) % 8)
        size = _RECORD.size + len(body)
        self._dump.write(_RECORD.pack(kind, size, time.monotonic_ns()) + body)
