"""Messages of kernels to their host: reads the records that `lower/device_records.py` describes."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.backends.device_messages import index_text, unpacked
from tilewright.ops import PRINT_KINDS, printed_line
from tilewright.support import errors

__all__ = [
    "FAILURE",
    "FAILURE_BYTES",
    "HEAD_BYTES",
    "PRINTS",
    "RECORDS",
    "RECORD_BYTES",
    "Console",
    "PrintedText",
]

FAILURE = "tilewright_failure"
PRINTS = "tilewright_prints"
"""Names of the kernel's memory of a failed assertion, and of prints."""

FAILURE_BYTES = 32
HEAD_BYTES = 16
RECORD_BYTES = 48
RECORDS = 1 << 16
"""Elements that one launch can print; further ones are counted and dropped."""

_FAILURE = struct.Struct("<8i")
_RECORD = struct.Struct("<Q10i")


@dataclass(frozen=True, slots=True)
class PrintedText:
    """What all elements printed by one operand share. kind: position in PRINT_KINDS."""

    text: str
    kind: int
    hexadecimal: bool


Read = Callable[[str, int], bytes]
Clear = Callable[[str, int], None]


class Console:
    """Reads and clears the records of one loaded kernel.

    asserts: messages of its assertions, `packed`; prints: of its prints (see PrintedText);
    read(name, size) -> bytes and clear(name, size): access to the module's memory
    """

    def __init__(
        self, asserts: Sequence[str], prints: Sequence[Sequence[object]], read: Read, clear: Clear
    ) -> None:
        self._asserts = asserts
        self._prints = [PrintedText(str(t), int(str(k)), bool(h)) for t, k, h in prints]
        self._read, self._clear = read, clear

    def drain(self) -> None:
        """Write what was printed to stdout. Raises DeviceAssertionFailure if one failed."""
        # first, so that prints are shown when an assertion has failed too
        if self._prints:
            self._drain_prints()
        if self._asserts:
            self._check()

    def _check(self) -> None:
        failed, number, x, y, z, *index = _FAILURE.unpack(self._read(FAILURE, FAILURE_BYTES))
        if not failed:
            return
        # before raising, or the next launch would report the same failure
        self._clear(FAILURE, FAILURE_BYTES)
        message, loc = unpacked(self._asserts[int(number)])
        where = f", at {index_text(*index)}" if index[0] >= 0 else ""
        raise errors.DeviceAssertionFailure(f"{message}{where}", (x, y, z)).with_loc(loc)

    def _drain_prints(self) -> None:
        # the count first: all records are 3 MB, and mostly there are few
        (count,) = struct.unpack("<I", self._read(PRINTS, 4))
        if not count:
            return
        kept = min(count, RECORDS)
        data = self._read(PRINTS, HEAD_BYTES + kept * RECORD_BYTES)[HEAD_BYTES:]
        self._clear(PRINTS, HEAD_BYTES)
        sys.stdout.writelines(self._lines(data))
        if count > kept:
            sys.stdout.write(f"... and {count - kept} elements more than a launch can print\n")

    def _lines(self, data: bytes) -> list[str]:
        """By program, then in the order of the program, then by index."""
        lines: list[tuple[tuple[int, ...], str]] = []
        for start in range(0, len(data), RECORD_BYTES):
            record = _RECORD.unpack_from(data, start)
            bits, number, order, x, y, z, i, j, k, _, _ = record
            shown = self._prints[int(number)]
            kind, index = PRINT_KINDS[shown.kind], (i, j, k)
            line = printed_line(shown.text, kind, shown.hexadecimal, bits, index, (x, y, z))
            lines.append(((z, y, x, order, number, i, j, k), line))
        return [line for _, line in sorted(lines)]
