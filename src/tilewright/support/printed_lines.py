"""The lines of `cf.print`, in Triton's form: one for each element.

    pid (0, 0, 0) idx ( 7) x: 1.500000          one operand; indices as wide as extents
    pid (0, 0, 0) idx () x: (operand 1) 42      several operands, of which this is a scalar
    pid (0, 0, 0) here                          none

Integers as C's %i and %u, floats as %f, in hexadecimal with all digits of their width.
"""

from __future__ import annotations

import struct

PRINT_KINDS = ("int", "uint", "float", "pointer", "text")
"""The class of a printed element."""


def printed_line(
    text: str, kind: str, in_hex: bool, bits: int, index: tuple[int, ...],
    program: tuple[int, ...],
) -> str:  # fmt: skip
    """The line of one element.

    bits: an integer extended to 64 bits, or a float as a double; index: the element's index, padded
    with negative numbers
    """
    pid = f"pid ({', '.join(map(str, program))})"
    if kind == "text":
        return f"{pid}{normal_prefix(text, False)}\n"
    widths, size, before = text.split(";", 2)
    wide = [int(width) for width in widths.split(",")] if widths else []
    places = (f"{n:{width or 1}}" for n, width in zip(index, wide, strict=False))
    shown = _shown(kind, bits & 0xFFFFFFFFFFFFFFFF, int(size), in_hex)
    return f"{pid} idx ({', '.join(places)}){before}{shown}\n"


def _shown(kind: str, bits: int, size: int, in_hex: bool) -> str:
    if kind == "pointer":
        return f"0x{bits:x}"
    if kind == "float":
        (number,) = struct.unpack("<d", struct.pack("<Q", bits))
        if not in_hex:
            return f"{number:f}"
        if size == 32:
            (bits,) = struct.unpack("<I", struct.pack("<f", number))
    if in_hex:
        return f"0x{bits & (1 << size) - 1:0{size // 4}x}"
    return str(bits - (1 << 64) if kind == "int" and bits >> 63 else bits)


def normal_prefix(prefix: str, has_operands: bool) -> str:
    """A prefix with a leading space that ends in ": " before operands."""
    if has_operands:
        prefix = prefix if prefix.endswith(" ") else f"{prefix} "
        prefix = prefix if prefix.endswith(": ") else f"{prefix[:-1]}: "
    return f" {prefix}" if len(prefix) > 2 and not prefix.startswith(" ") else prefix
