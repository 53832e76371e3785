"""Format of the records that a kernel writes for its host: failed assertions and prints.

Memory of a failure: whether a thread has failed, and, 8 bytes on, the address of its record, which
the host owns and can read while the kernel runs. The record has 8 words: whether there is a
failure, number of the assertion, program, index; after them, whether the kernel is to trap. It
traps as well if nobody gave an address. Otherwise nothing stops a kernel that fails: all threads of
the program agree that it failed, and return; only those of the warp, where warps never meet.

Memory of prints: a head of 16 bytes whose first word counts the records, then the records of 12
words each: bits (2 words), number of the text, number of prints that the thread made before,
program, index.
"""

from __future__ import annotations

import struct

from tilewright.support.data_class import dataclass

FAILURE = "tilewright_failure"
PRINTS = "tilewright_prints"
"""Names of the kernel's memory of a failed assertion, and of prints."""

FAILURE_BYTES = 16
HOST_ADDRESS = 8
"""Offset in the memory of a failure of the address of its record, which the host owns."""
STOPS = 32
"""Offset in that record of the host's flag whether a failure stops the grid."""
HEAD_BYTES = 16
RECORD_BYTES = 48
RECORDS = 1 << 16
"""Elements that one launch can print; further ones are counted and dropped."""

FAILURE_WORDS = struct.Struct("<8i")
PRINT_WORDS = struct.Struct("<Q10i")


@dataclass(frozen=True, slots=True)
class PrintedText:
    """The common part of all elements printed for one operand. kind: position in PRINT_KINDS."""

    text: str
    kind: int
    hexadecimal: bool
