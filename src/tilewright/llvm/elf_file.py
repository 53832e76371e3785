"""ELF object files of 64 bits: sections, symbols, relocations (System V ABI, chapter 4)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tilewright.support.data_class import dataclass

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, low bytes first
# e_type, e_machine, e_shoff, e_shentsize, e_shnum, e_shstrndx
_HEADER = struct.Struct("<16xHH20xQ10xHHH")
# sh_name, type, flags, addr, offset, size, link, info, addralign, entsize
_SECTION = struct.Struct("<IIQQQQIIQQ")
# st_name, info, other, shndx, value, size
_SYMBOL = struct.Struct("<IBBHQQ")
# r_offset, info, addend
_RELOCATION = struct.Struct("<QQq")

_RELOCATABLE = 1
PROGBITS, _SYMTAB, _RELA, _NOTE, NOBITS = 1, 2, 4, 7, 8
WRITE, _ALLOC, EXECUTABLE, TLS = 1, 2, 4, 0x400
UNDEFINED = 0
"""Section of a symbol that another file defines."""


class Unsupported(Exception):
    """Another kind of file, or a damaged one."""


@dataclass(slots=True)
class Section:
    """A section. offset: in the image of a linker"""

    index: int
    name: str
    kind: int
    flags: int
    data: bytes
    size: int
    align: int
    link: int
    info: int
    offset: int = 0

    @property
    def is_loaded(self) -> bool:
        """Whether code needs it; unwind tables are not, since kernels throw nothing."""
        return bool(self.flags & _ALLOC) and self.kind != _NOTE and self.name != ".eh_frame"


# A tuple, since an object of the thread pool has hundreds of symbols.
class Symbol(NamedTuple):
    """A symbol. section: index of its section; value: its offset there; size: in bytes"""

    name: str
    section: int
    value: int
    size: int


def machine_of(obj: bytes) -> int:
    """The number of the processor (`e_machine`). Errors: Unsupported."""
    if not obj.startswith(_MAGIC):
        raise Unsupported
    return int(_HEADER.unpack_from(obj)[1])


def sections_of(obj: bytes) -> list[Section]:
    """The sections of a relocatable file. Errors: Unsupported, struct.error, IndexError."""
    if not obj.startswith(_MAGIC):
        raise Unsupported
    header: tuple[int, ...] = _HEADER.unpack_from(obj)
    kind, _, table, size, count, names = header
    if (kind, size) != (_RELOCATABLE, _SECTION.size):
        raise Unsupported
    starts: Sequence[int] = range(table, table + count * _SECTION.size, _SECTION.size)
    rows: list[tuple[int, ...]] = [_SECTION.unpack_from(obj, start) for start in starts]
    strings = _part(obj, rows[names][4], rows[names][5])
    return [
        Section(
            index,
            text_at(strings, row[0]),
            row[1],
            row[2],
            b"" if row[1] == NOBITS else _part(obj, row[4], row[5]),
            row[5],
            max(row[8], 1),
            row[6],
            row[7],
        )
        for index, row in enumerate(rows)
    ]


def _part(obj: bytes, start: int, size: int) -> bytes:
    # A slice would be cut short without an error.
    if start + size > len(obj):
        raise Unsupported
    return obj[start : start + size]


def text_at(strings: bytes, start: int) -> str:
    """The text from `start` to the next zero."""
    return strings[start : strings.index(b"\0", start)].decode() if start < len(strings) else ""


def symbols_of(sections: Sequence[Section]) -> list[Symbol]:
    """The symbols of a file. Errors: Unsupported; ValueError for a second table."""
    (table,) = [section for section in sections if section.kind == _SYMTAB] or [None]
    if table is None:
        raise Unsupported
    strings = sections[table.link].data
    rows = _SYMBOL.iter_unpack(table.data)
    return [Symbol(text_at(strings, row[0]), row[3], row[4], row[5]) for row in rows]


def relocations_of(
    sections: Sequence[Section], target: Section
) -> Iterator[tuple[int, int, int, int]]:
    """The relocations of a section: offset, kind, number of the symbol, addend."""
    for section in sections:
        if section.kind == _RELA and section.info == target.index:
            for offset, info, addend in _RELOCATION.iter_unpack(section.data):
                yield offset, info & 0xFFFFFFFF, info >> 32, addend
