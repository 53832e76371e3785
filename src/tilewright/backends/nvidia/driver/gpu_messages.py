"""Messages of kernels to their host, read from the records of `message_records.py`."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence

from tilewright.backends.device_messages import index_text, unpacked
from tilewright.backends.nvidia.message_records import (
    FAILURE,
    FAILURE_WORDS,
    HEAD_BYTES,
    HOST_ADDRESS,
    PRINT_WORDS,
    PRINTS,
    RECORD_BYTES,
    RECORDS,
    STOPS,
    PrintedText,
)
from tilewright.support import errors
from tilewright.support.printed_lines import PRINT_KINDS, printed_line

Read = Callable[[str, int], bytes]
Clear = Callable[[str, int], None]


class FailureRecord:
    """The record of a kernel's first failed assertion, in mapped memory of the host: reading it
    needs no wait or copy, and works after the loss of a context.

    address: of `size` bytes, valid on both
    """

    size = 64

    def __init__(self, address: int) -> None:
        self.address = address
        self._bytes = (ctypes.c_char * self.size).from_address(address)
        ctypes.memset(address, 0, self.size)

    def words(self) -> tuple[int, ...] | None:
        """Number of the assertion, program and index; None if none failed."""
        failed, *words = FAILURE_WORDS.unpack_from(self._bytes)
        return tuple(words) if failed else None

    def clear(self) -> None:
        """Reset the record for the next failure."""
        ctypes.memset(self.address, 0, FAILURE_WORDS.size)

    @property
    def stops(self) -> bool:
        """Whether a failure ends the grid by a trap, which all later calls of CUDA report;
        otherwise the program returns, and only this record reports it."""
        return self._bytes[STOPS] != b"\0"

    @stops.setter
    def stops(self, stops: bool) -> None:
        self._bytes[STOPS] = bytes([stops])


class Console:
    """Reads and clears the records of one loaded kernel.

    asserts: messages of its assertions, `packed`; prints: of its prints (see PrintedText);
    read(name, size) -> bytes and clear(name, size): access to the module's memory; failure: the
    record of its assertions, None if it has none
    """

    def __init__(
        self,
        asserts: Sequence[str],
        prints: Sequence[Sequence[object]],
        read: Read,
        clear: Clear,
        failure: FailureRecord | None = None,
    ) -> None:
        self._asserts = asserts
        self.failure = failure
        self._prints = [PrintedText(str(t), int(str(k)), bool(h)) for t, k, h in prints]
        self._read, self._clear = read, clear

    def drain(self) -> None:
        """Write what was printed to stdout. Raises DeviceAssertionFailure if one failed."""
        # first, so that prints are also shown after a failed assertion
        if self._prints:
            self._drain_prints()
        self.check()

    def check(self) -> None:
        """Raise DeviceAssertionFailure if the record has a failure; waits for nothing."""
        words = None if self.failure is None else self.failure.words()
        if self.failure is None or words is None:
            return
        # Before raising, so that the next launch does not report the same failure; after a trap
        # there is none, and every call reports the reason.
        if not self.failure.stops:
            self.failure.clear()
            self._clear(FAILURE, HOST_ADDRESS)
        number, x, y, z, *index = words
        message, loc = unpacked(self._asserts[number])
        where = f", at {index_text(*index)}" if index[0] >= 0 else ""
        raise errors.DeviceAssertionFailure(f"{message}{where}", (x, y, z)).with_loc(loc)

    def _drain_prints(self) -> None:
        # the count first: all records are 3 MB, and usually few are used
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
        """The printed lines, by program, then in program order, then by index."""
        lines: list[tuple[tuple[int, ...], str]] = []
        for start in range(0, len(data), RECORD_BYTES):
            record = PRINT_WORDS.unpack_from(data, start)
            bits, number, order, x, y, z, i, j, k, _, _ = record
            shown = self._prints[int(number)]
            kind, index = PRINT_KINDS[shown.kind], (i, j, k)
            line = printed_line(shown.text, kind, shown.hexadecimal, bits, index, (x, y, z))
            lines.append(((z, y, x, order, number, i, j, k), line))
        return [line for _, line in sorted(lines)]
