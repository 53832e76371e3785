"""The table that a checked kernel shares with its host: words of 64 bits.

    word 0          0, or the first violation: 1 + 8 * number of the site + kind of violation
    words 1 ... 4   its lane, its address, the other program, the program
    words 5, 6      programs of earlier launches; the last note that this program comes after
    word 7          address of the ranges of mapped memory: begin and end of each, in order,
                    padded with empty ones to 2 ** RANGE_BITS
    word 8          1 once this program has used an atomic, else 0
    then            for each pointer parameter: begin and end of its array; the addresses of the
                    notes of the last writer, reader and atomic of its first element; whether the
                    kernel may store to that memory, may load from it, and whether programs may
                    share it; the address of the note of the last program that changed it by an
                    atomic

Programs are numbered over all launches, from 1 on, so that notes of earlier launches need not be
erased: their numbers are at most word 5. A note is an int32: twice the number of a program, plus
one if that program had used an atomic before. A note of readers is negative where several programs
have read.
"""

from __future__ import annotations

import enum
import json
from dataclasses import asdict, field, replace
from typing import Any

from tilewright.ir import Builder, Value
from tilewright.ir.types import PointerType, i64
from tilewright.ops import LoadOp, NumProgramsOp, OffsetOp, ProgramIdOp
from tilewright.support.data_class import dataclass
from tilewright.transforms.checks.lane_arithmetic import Lanes

RECORD_WORDS = 5
BASE, ACQUIRED, RANGES, RELEASED = 5, 6, 7, 8
RANGE_BITS = 9
"""log2 of the number of ranges of mapped memory: the steps of a binary search."""
_HEAD = 9
BEGIN, END, WRITERS, READERS, TOUCHERS, STORED, LOADED, SHARED, UPDATERS = range(9)
_PER_POINTER = 9
_KINDS = 16


class Violation(enum.IntEnum):
    """Kinds of violation, in the order in which they are tested."""

    MASK_UNDEFINED = 0
    ADDRESS_UNDEFINED = 1
    ADDRESS_WRAPPED = 2
    VALUE_UNDEFINED = 3
    OUTSIDE = 4
    WRITTEN = 5
    READ = 6
    LANES_DIFFER = 7
    UPDATED = 8
    CONDITION_UNDEFINED = 9
    BOUND_UNDEFINED = 10
    GATHER_OUTSIDE = 11


@dataclass(frozen=True, slots=True)
class CheckSite:
    """An access of the kernel, or an op that depends on what is loaded.

    verb: "load", "store", "atomic add" ...; element: type of what is accessed; bytes: of one;
    shape: of the tile; root: number of the pointer parameter that it starts from, -1 for any; loc:
    frames of its source location; extent: of the tile that a gather reads.
    """

    verb: str
    element: str
    bytes: int
    shape: tuple[int, ...]
    root: int
    loc: list[list[Any]] = field(default_factory=list[list[Any]])
    extent: int = 0

    def code(self, number: int, kind: Violation) -> int:
        """The word for a violation at this site, which has a number."""
        return 1 + _KINDS * number + kind


def site_of(word: int) -> tuple[int, Violation]:
    """The number of the site and the violation in a word."""
    number, kind = divmod(word - 1, _KINDS)
    return number, Violation(kind)


def words_for(pointers: int) -> int:
    """Length of the table of a kernel, in words."""
    return _HEAD + _PER_POINTER * pointers


def pointer_word(pointer: int, word: int) -> int:
    """Index of one of the words BEGIN ... SHARED of a pointer parameter."""
    return _HEAD + _PER_POINTER * pointer + word


@dataclass(slots=True)
class CheckTable:
    """The table of one kernel, as the pass makes it.

    kinds: the checks; pointers: positions of the pointer parameters; windows: for each, the axis of
    the grid along which programs use separate windows, -1 for none; granule: bytes that share a
    note of races; sites: accesses by number
    """

    kinds: tuple[str, ...]
    pointers: tuple[int, ...] = ()
    windows: tuple[int, ...] = ()
    granule: int = 1
    sites: list[CheckSite] = field(default_factory=list[CheckSite])

    @property
    def accesses(self) -> list[CheckSite]:
        """The sites that are accesses."""
        return [site for site in self.sites if site.bytes]

    def as_text(self) -> str:
        """As JSON, for the metadata of the kernel."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> CheckTable:
        """Parse what `as_text` wrote."""
        given = json.loads(text)
        sites = [replace(CheckSite(**s), shape=tuple(s["shape"])) for s in given["sites"]]
        kinds, pointers, windows = (tuple(given[k]) for k in ("kinds", "pointers", "windows"))
        return cls(kinds, pointers, windows, given["granule"], sites)


def word_at(build: Builder, table: Value, word: int) -> Value:
    """The address of a word of the table."""
    return build.value(OffsetOp(table, build.constant(word, i64)))


def load_word(build: Builder, table: Value, word: int) -> Value:
    """A word of the table, as i64."""
    return build.value(LoadOp(word_at(build, table, word)))


def load_pointer(build: Builder, table: Value, word: int, type_: PointerType) -> Value:
    """A word of the table, as a pointer."""
    return build.cast(load_word(build, table, word), type_)


def within(lanes: Lanes, table: Value, pointer: int, address: Value, size: int) -> Value:
    """Whether elements of `size` bytes at addresses are in the array of a parameter."""
    begin, end = (
        load_word(lanes.build, table, pointer_word(pointer, word)) for word in (BEGIN, END)
    )
    last = lanes.build.add(end, -size)
    return lanes.masked(lanes.ge(address, begin), lanes.le(address, last))


def program_number(build: Builder, table: Value) -> Value:
    """The number of the running program, as i64."""
    ids = [build.cast(build.value(ProgramIdOp(axis)), i64) for axis in range(3)]
    extents = [build.cast(build.value(NumProgramsOp(axis)), i64) for axis in range(2)]
    x, y, z = map(build.expr, ids)
    width, height = map(build.expr, extents)
    return (x + width * (y + height * z) + 1 + load_word(build, table, BASE)).value
