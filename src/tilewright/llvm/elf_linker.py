"""A linker of ELF object files for x86-64: layout, stubs, relocations.

Kernels are small: their object files hold code, constants, and references to each other and to
functions of this process. For these, LLVM's linker keeps 34 KB of tables and two pages as
long as a kernel is loaded; this linker keeps the code itself (ADR 0018). Objects with more
(initialized variables, thread-local storage, constructors, unusual relocations) are left to LLVM,
as other formats are: `laid_out` returns None.

    code | constants | stubs: jmp to a function of this process | addresses that code loads
    from the next page on: variables, initially zero

Only section headers, symbols and relocations with addends are read
(System V ABI, AMD64 supplement, chapter 4)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from tilewright.llvm.elf_file import (
    EXECUTABLE,
    NOBITS,
    PROGBITS,
    TLS,
    UNDEFINED,
    WRITE,
    Section,
    Symbol,
    Unsupported,
    machine_of,
    relocations_of,
    sections_of,
    symbols_of,
)
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

Lookup = Callable[[str], int | None]
"""Address of a function of this process; None if there is none of that name."""

_X86_64 = 62

# R_X86_64_64, PC32, PLT32, PC64
_ABSOLUTE_64, _RELATIVE_32, _CALL_32, _RELATIVE_64 = 1, 2, 4, 24
_ADDRESS_OF = (9, 41, 42)  # R_X86_64_GOTPCREL, GOTPCRELX, REX_GOTPCRELX
_KNOWN = frozenset((_ABSOLUTE_64, _RELATIVE_32, _CALL_32, _RELATIVE_64, *_ADDRESS_OF))

_STUB = b"\xff\x25\x00\x00\x00\x00"  # jmp [rip + 0]; the address follows
_STUB_BYTES, _ADDRESS_BYTES = 16, 8
_PAGE_BYTES = 4096
_LARGEST = 1 << 30
"""Bytes of an image, within the reach of relative relocations."""


class _Relocation(NamedTuple):
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(slots=True)
class Image:
    """An object file that is laid out, but not yet placed at an address.

    size: of the image; code_bytes: of its part before the variables; exports: symbol -> offset
    """

    size: int
    code_bytes: int
    exports: dict[str, int]
    _sections: list[Section]
    _symbols: list[Symbol]
    _relocations: list[_Relocation]
    _stubs: Mapping[str, int]
    _slots: Mapping[int, int]
    _outside: Mapping[str, int]
    _section_offsets: dict[int, int] = field(default_factory=dict[int, int])

    def at(self, base: int) -> bytes | None:
        """The bytes of all but the variables for an address; None if a symbol is out of reach
        from there."""
        self._section_offsets = {section.index: section.offset for section in self._sections}
        image = bytearray(self.code_bytes)
        for section in self._sections:
            image[section.offset : section.offset + len(section.data)] = section.data
        for name, offset in self._stubs.items():
            struct.pack_into("<6sQ", image, offset, _STUB, self._outside[name])
        try:
            for symbol, offset in self._slots.items():
                struct.pack_into("<Q", image, offset, self._address(symbol, base))
            for offset, kind, symbol, addend in self._relocations:
                if kind == _ABSOLUTE_64:
                    address = self._address(symbol, base)
                    struct.pack_into("<Q", image, offset, address + addend)
                    continue
                distance = self._target(kind, symbol, base) + addend - (base + offset)
                struct.pack_into("<q" if kind == _RELATIVE_64 else "<i", image, offset, distance)
        except (struct.error, Unsupported):  # out of range
            return None
        return bytes(image)

    def _address(self, index: int, base: int) -> int:
        name, section, value, _ = self._symbols[index]
        if section == UNDEFINED:
            return self._outside[name]
        return base + self._section_offsets[section] + value

    def _target(self, kind: int, symbol: int, base: int) -> int:
        """The target address of a relative relocation."""
        if kind in _ADDRESS_OF:
            return base + self._slots[symbol]
        name, section = self._symbols[symbol][:2]
        if kind == _CALL_32 and section == UNDEFINED:
            return base + self._stubs[name]
        return self._address(symbol, base)


def laid_out(obj: bytes, symbols: Sequence[str], lookup: Lookup) -> Image | None:
    """The image of an object file that defines `symbols`; None if it is left to LLVM, as damaged
    files are."""
    try:
        return _laid_out(obj, symbols, lookup)
    except synchronous(Unsupported, struct.error, IndexError, KeyError, ValueError):
        return None


def _laid_out(obj: bytes, exported: Sequence[str], lookup: Lookup) -> Image:
    if machine_of(obj) != _X86_64:
        raise Unsupported
    sections = sections_of(obj)
    loaded = _loaded(sections)
    end = _placed([s for s in loaded.values() if not _is_variables(s)], 0)
    symbols = symbols_of(sections)
    relocations = list(_relocations_of(sections, loaded, symbols))
    outside: dict[str, int] = {}
    stubs: dict[str, int] = {}
    slots: dict[int, int] = {}
    # All stubs, then all slots: both tables stay aligned to the size of their entries.
    end = -end % _STUB_BYTES + end
    for _, kind, index, _ in relocations:
        name, section = symbols[index][:2]
        if section != UNDEFINED:
            continue
        if name not in outside:
            outside[name] = _found(name, lookup)
        if kind == _CALL_32 and name not in stubs:
            stubs[name], end = end, end + _STUB_BYTES
    for _, kind, index, _ in relocations:
        if kind in _ADDRESS_OF and index not in slots:
            slots[index], end = end, end + _ADDRESS_BYTES
    code_bytes = end
    variables = [s for s in loaded.values() if _is_variables(s)]
    if variables:
        end = _placed(variables, -end % _PAGE_BYTES + end)
    defined = {s.name: loaded[s.section].offset + s.value for s in symbols if s.section in loaded}
    exports = {name: defined[name] for name in exported}
    if not all(offset < end for offset in exports.values()):
        raise Unsupported
    return Image(
        end, code_bytes, exports, [*loaded.values()], symbols, relocations, stubs, slots, outside
    )


def _found(name: str, lookup: Lookup) -> int:
    address = lookup(name)
    if address is None:
        raise Unsupported
    return address


def _loaded(sections: Sequence[Section]) -> dict[int, Section]:
    """The sections needed at run time, code first."""
    kept = [section for section in sections if section.is_loaded]
    for section in kept:
        # `.data.rel.ro` is constant once relocated, which is before the pages become executable.
        constant = not section.flags & WRITE or section.name.startswith(".data.rel.ro")
        # Writable sections do no harm while they are empty.
        known = section.kind == PROGBITS or _is_variables(section)
        if not known or section.flags & TLS or (section.data and not constant):
            raise Unsupported
    kept.sort(key=lambda section: not section.flags & EXECUTABLE)
    return {section.index: section for section in kept}


def _is_variables(section: Section) -> bool:
    return section.kind == NOBITS and bool(section.flags & WRITE)


def _placed(sections: Sequence[Section], end: int) -> int:
    """Assign each section its offset, from `end` on; returns the end of the last one."""
    for section in sections:
        # A range starts at a page: no stricter alignment can be kept.
        if section.align > _PAGE_BYTES:
            raise Unsupported
        section.offset = -end % section.align + end
        end = section.offset + section.size
    if end > _LARGEST:
        raise Unsupported
    return end


def _relocations_of(
    sections: Sequence[Section], loaded: Mapping[int, Section], symbols: Sequence[Symbol]
) -> list[_Relocation]:
    relocations: list[_Relocation] = []
    for target in filter(lambda section: section.index in loaded, sections):
        for offset, kind, index, addend in relocations_of(sections, target):
            _check(kind, symbols[index].section, loaded, len(target.data) - offset)
            relocations.append(_Relocation(target.offset + offset, kind, index, addend))
    return relocations


def _check(kind: int, section: int, loaded: Mapping[int, Section], left: int) -> None:
    """Raise for an unknown relocation, or one against a section that is not loaded.

    section: of its symbol; left: bytes from its field to the end of the relocated section.
    """
    outside = section == UNDEFINED
    is_near = kind in (_RELATIVE_32, _RELATIVE_64)
    if kind not in _KNOWN or (outside and is_near) or not (outside or section in loaded):
        raise Unsupported
    # The field must be within its section: a damaged file must not write elsewhere.
    if left < (8 if kind in (_ABSOLUTE_64, _RELATIVE_64) else 4):
        raise Unsupported
