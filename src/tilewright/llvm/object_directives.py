"""Object files as directives of an assembler, so that C source can contain them.

The allocated sections become data directives, and relocations `.reloc` directives, which GNU as and
LLVM's assembler both accept for ELF. So an old assembler takes the newest instructions, and the
user's linker resolves the references.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.llvm.code_generation import compile_ir
from tilewright.llvm.code_targets import TargetCpu, TargetSpec
from tilewright.llvm.elf_file import (
    EXECUTABLE,
    NOBITS,
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
from tilewright.llvm.float_conversions import conversions_ir
from tilewright.llvm.object_loader import CONVERSION_SYMBOLS

_ABSOLUTE, _COMMON = 0xFFF1, 0xFFF2

_RELOCATIONS: Mapping[int, Mapping[int, str]] = {
    62: {
        1: "R_X86_64_64", 2: "R_X86_64_PC32", 4: "R_X86_64_PLT32", 9: "R_X86_64_GOTPCREL",
        24: "R_X86_64_PC64", 41: "R_X86_64_GOTPCRELX", 42: "R_X86_64_REX_GOTPCRELX",
    },
    183: {
        257: "R_AARCH64_ABS64", 260: "R_AARCH64_PREL64", 261: "R_AARCH64_PREL32",
        275: "R_AARCH64_ADR_PREL_PG_HI21", 277: "R_AARCH64_ADD_ABS_LO12_NC",
        278: "R_AARCH64_LDST8_ABS_LO12_NC", 282: "R_AARCH64_JUMP26", 283: "R_AARCH64_CALL26",
        284: "R_AARCH64_LDST16_ABS_LO12_NC", 285: "R_AARCH64_LDST32_ABS_LO12_NC",
        286: "R_AARCH64_LDST64_ABS_LO12_NC", 299: "R_AARCH64_LDST128_ABS_LO12_NC",
        311: "R_AARCH64_ADR_GOT_PAGE", 312: "R_AARCH64_LD64_GOT_LO12_NC",
    },
}  # fmt: skip
"""Names of relocations by processor (System V ABI, supplements for AMD64 and AArch64)."""


def assembler_directives(
    obj: bytes, target: TargetSpec, prefix: str, exports: Mapping[str, str]
) -> list[str]:
    """Assembler lines that define the code of an object file.

    target: of the object; prefix: starts each local label; exports: global symbols of the object,
    and their new names, which are hidden from other libraries. Other names are those of functions
    of the linked program.
    Errors: ValueError for an object with thread-local storage or an unknown relocation, and for
    Windows with variables.
    """
    write = _in_one_section if "windows" in target.triple else _directives
    try:
        return [*write(obj, prefix, exports)]
    except (Unsupported, IndexError, KeyError) as problem:
        raise ValueError(f"the object of {prefix} has a part without a directive") from problem


def windows_target(cpu: TargetCpu) -> TargetSpec:
    """The target of code for Windows, whose objects are ELF files."""
    return TargetSpec("x86_64-pc-windows-gnu-elf", cpu.name, cpu.features)


def used_conversions(obj: bytes, target: TargetSpec) -> bytes | None:
    """An object file with the float conversions that `obj` calls by name; None if it calls none."""
    if not any(name.encode() in obj for name in CONVERSION_SYMBOLS):
        return None
    return compile_ir(conversions_ir(), target)


def _directives(obj: bytes, prefix: str, exports: Mapping[str, str]) -> Iterator[str]:
    names = _RELOCATIONS[machine_of(obj)]
    sections = sections_of(obj)
    symbols = symbols_of(sections)
    for section in filter(_is_needed, sections):
        label = f".L{prefix}_{section.index}"
        yield f".section {_section_head(section, prefix)}"
        yield f".balign {section.align}"
        yield f"{label}:"
        yield from _exported(symbols, section, exports)
        if section.kind == NOBITS:
            yield f".zero {section.size}"
            continue
        yield from _data(section.data)
        for offset, kind, symbol, addend in relocations_of(sections, section):
            place = _place(symbols[symbol], prefix, exports)
            yield f".reloc {label}+{offset}, {names[kind]}, {place}{addend:+d}"


def _is_needed(section: Section) -> bool:
    if section.flags & TLS:
        raise Unsupported
    return section.is_loaded and section.size > 0


def _section_head(section: Section, prefix: str) -> str:
    if section.flags & EXECUTABLE:
        return f'.text.{prefix}, "ax", %progbits'
    if section.kind == NOBITS:
        return f'.bss.{prefix}, "aw", %nobits'
    if section.flags & WRITE:
        kind = ".data.rel.ro" if section.name.startswith(".data.rel.ro") else ".data"
        return f'{kind}.{prefix}, "aw", %progbits'
    return f'.rodata.{prefix}, "a", %progbits'


def _exported(
    symbols: Sequence[Symbol], section: Section, exports: Mapping[str, str]
) -> Iterator[str]:
    for symbol in symbols:
        if symbol.section == section.index and symbol.name in exports:
            name = exports[symbol.name]
            yield f".globl {name}"
            yield f".hidden {name}"
            yield f".type {name}, %function"
            yield f".set {name}, .+{symbol.value}" if symbol.value else f"{name}:"


def _place(symbol: Symbol, prefix: str, exports: Mapping[str, str]) -> str:
    if symbol.section in (_ABSOLUTE, _COMMON):
        raise Unsupported
    if symbol.section == UNDEFINED:
        return exports.get(symbol.name, symbol.name)
    return f".L{prefix}_{symbol.section}{symbol.value:+d}"


_WORDS_IN_LINE = 6


def _data(data: bytes) -> Iterator[str]:
    whole = len(data) // 8 * 8
    words = [f"{int.from_bytes(data[i : i + 8], 'little'):#x}" for i in range(0, whole, 8)]
    for first in range(0, len(words), _WORDS_IN_LINE):
        yield ".quad " + ",".join(words[first : first + _WORDS_IN_LINE])
    if data[whole:]:
        yield ".byte " + ",".join(f"{byte:#x}" for byte in data[whole:])


# --- Windows --------------------------------------------------------------------------------------

# COFF has no `.reloc`, so all parts are in one section, and references are expressions.

_EXPRESSIONS = {
    1: (8, "{place}"), 2: (4, "{place}-."), 4: (4, "{place}-."), 24: (8, "{place}-."),
    25: (8, "{place}-{base}"), 29: (8, "{base}{addend}-."),
}  # fmt: skip
"""Bytes and value of R_X86_64_64, PC32, PLT32, PC64, GOTOFF64 and GOTPC64. base: of the object,
which takes the place of its global offset table"""


def _in_one_section(obj: bytes, prefix: str, exports: Mapping[str, str]) -> Iterator[str]:
    sections = sections_of(obj)
    symbols = symbols_of(sections)
    base = f".L{prefix}_base"
    yield f'.section .text${prefix}, "xr"'
    yield ".balign 64"
    yield f"{base}:"
    for section in filter(_is_needed, sections):
        if section.flags & WRITE:
            raise Unsupported
        yield f".balign {section.align}"
        yield f".L{prefix}_{section.index}:"
        for symbol in symbols:
            if symbol.section == section.index and symbol.name in exports:
                yield f".globl {exports[symbol.name]}"
                yield f".set {exports[symbol.name]}, .L{prefix}_{section.index}+{symbol.value}"
        end = 0
        for offset, kind, number, addend in sorted(relocations_of(sections, section)):
            size, expression = _EXPRESSIONS[kind]
            place = f"{_place(symbols[number], prefix, exports)}{addend:+d}"
            yield from _data(section.data[end:offset])
            value = expression.format(place=place, base=base, addend=f"{addend:+d}")
            yield f"{'.quad' if size == 8 else '.long'} {value}"
            end = offset + size
        yield from _data(section.data[end:])
