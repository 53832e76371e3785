"""Line tables of object files: which line of the source an instruction comes from.

Reads `.debug_line` of versions 2 to 4 (DWARF 4, chapter 6.2), which LLVM writes for kernels
(ADR 0024), of relocatable ELF files. A line of 0 belongs to code without a place in the source.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

from tilewright.llvm.elf_file import (
    Section,
    Symbol,
    Unsupported,
    relocations_of,
    sections_of,
    symbols_of,
    text_at,
)
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

_LINES = ".debug_line"
# unit_length, version, header_length, minimum_instruction_length, maximum_operations,
# default_is_stmt, line_base, line_range, opcode_base; version 3 has no maximum_operations
_HEADER = struct.Struct("<IHIBBBbBB")
_OLD_HEADER = struct.Struct("<IHIBBbBB")
_PROGRAM_AT = 10
"""Offset of the field that `header_length` counts from."""
_VERSIONS = (2, 3, 4)

_COPY = 1
_END_SEQUENCE, _SET_ADDRESS = 1, 2


class LineRow(NamedTuple):
    """The instructions from `offset` on, to the next row, come from a line."""

    offset: int
    file: str
    line: int


@dataclass(slots=True)
class LineTable:
    """The lines of the code in one section.

    rows: by offset; functions: offset and size of each function
    """

    functions: dict[str, tuple[int, int]]
    rows: list[LineRow] = field(default_factory=list[LineRow])

    def row_at(self, offset: int) -> LineRow | None:
        """The row of an instruction; None outside of the table."""
        place = bisect_right(self.rows, offset, key=lambda row: row.offset)
        return self.rows[place - 1] if place else None


def line_table(obj: bytes, symbol: str) -> LineTable | None:
    """The table of the section that has a function; None for other formats, and without one."""
    try:
        sections = sections_of(obj)
        symbols = symbols_of(sections)
        (code,) = {one.section for one in symbols if one.name == symbol}
        functions = {s.name: (s.value, s.size) for s in symbols if s.section == code and s.size}
        lines = next((one for one in sections if one.name == _LINES), None)
        rows = [] if lines is None else list(_rows(_relocated(lines, sections, symbols)))
    except synchronous(Unsupported, struct.error, IndexError, ValueError):
        return None
    return LineTable(functions, sorted(rows, key=lambda row: row.offset))


def _relocated(lines: Section, sections: Sequence[Section], symbols: Sequence[Symbol]) -> bytes:
    """The section with its addresses as offsets in the section of code."""
    data = bytearray(lines.data)
    for offset, _, symbol, addend in relocations_of(sections, lines):
        struct.pack_into("<Q", data, offset, symbols[symbol].value + addend)
    return bytes(data)


def _rows(data: bytes) -> Iterator[LineRow]:
    """The rows of all units."""
    start = 0
    while start < len(data):
        length, version = struct.unpack_from("<IH", data, start)
        if version not in _VERSIONS:
            raise Unsupported
        yield from _Unit(data[start : start + 4 + length], version).rows()
        start += 4 + length


class _Unit:
    """The program of one unit, whose state machine writes the rows."""

    def __init__(self, data: bytes, version: int) -> None:
        self.data = data
        form = _HEADER if version >= 4 else _OLD_HEADER
        fields: tuple[int, ...] = form.unpack_from(data)
        self.instruction, self.base, self.range = fields[3], fields[-3], fields[-2]
        self.opcode_base = fields[-1]
        self.place = form.size
        self.lengths = data[self.place : self.place + self.opcode_base - 1]
        self.place += self.opcode_base - 1
        self.files = self._files()
        self.place = _PROGRAM_AT + fields[2]
        self._reset()

    def _reset(self) -> None:
        self.address, self.line, self.file = 0, 1, 1

    def _files(self) -> list[str]:
        """The paths of the files, which count from 1."""
        folders = [""]
        while text := self._text():
            folders.append(text)
        files = [""]
        while text := self._text():
            folder, _, _ = self._number(), self._number(), self._number()
            files.append(f"{folders[folder]}/{text}" if folders[folder] else text)
        return files

    def _text(self) -> str:
        text = text_at(self.data, self.place)
        self.place += len(text.encode()) + 1
        return text

    def _number(self) -> int:
        """An unsigned LEB128 number."""
        value = shift = 0
        while True:
            byte = self.data[self.place]
            self.place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _signed(self) -> int:
        start = self.place
        value = self._number()
        bits = 7 * (self.place - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def _row(self) -> LineRow:
        return LineRow(self.address, self.files[self.file], self.line)

    def rows(self) -> Iterator[LineRow]:
        """Run the program."""
        while self.place < len(self.data):
            opcode = self.data[self.place]
            self.place += 1
            if opcode >= self.opcode_base:
                self._advance(opcode - self.opcode_base)
                self.line += self.base + (opcode - self.opcode_base) % self.range
                yield self._row()
            elif opcode == _COPY:
                yield self._row()
            elif opcode:
                self._standard(opcode)
            elif self._extended() == _END_SEQUENCE:
                # what follows the code belongs to no line
                yield LineRow(self.address, "", 0)
                self._reset()

    def _advance(self, adjusted: int) -> None:
        self.address += adjusted // self.range * self.instruction

    def _standard(self, opcode: int) -> None:
        match opcode:
            case 2:  # advance_pc
                self.address += self._number() * self.instruction
            case 3:  # advance_line
                self.line += self._signed()
            case 4:  # set_file
                self.file = self._number()
            case 8:  # const_add_pc
                self._advance(255 - self.opcode_base)
            case 9:  # fixed_advance_pc
                self.address += struct.unpack_from("<H", self.data, self.place)[0]
                self.place += 2
            case _:
                for _ in range(self.lengths[opcode - 1]):
                    self._number()

    def _extended(self) -> int:
        """Read an extended instruction; returns its code."""
        size = self._number()
        end = self.place + size
        code = self.data[self.place]
        if code == _SET_ADDRESS:
            self.address = int.from_bytes(self.data[self.place + 1 : end], "little")
        self.place = end
        return code
