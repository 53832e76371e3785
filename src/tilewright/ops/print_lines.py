"""The lines of `cf.print`, in Triton's form: one for each element.

    pid (0, 0, 0) idx ( 7) x: 1.500000          one operand; indices as wide as extents
    pid (0, 0, 0) idx () x: (operand 1) 42      several operands, of which this is a scalar
    pid (0, 0, 0) here                          none

Integers as C's %i and %u, floats as %f, in hexadecimal with all digits of their width.
"""

from __future__ import annotations

import struct
from math import ceil, log10

from tilewright.ir import Value
from tilewright.ir.types import DType, element_of, shape_of

KINDS = ("int", "uint", "float", "pointer", "text")
"""What a printed element is."""


def operand_text(prefix: str, args: tuple[Value, ...], number: int) -> str:
    """What all lines of one operand share, as one text: widths of indices, bits, what precedes."""
    arg = args[number]
    widths = ",".join(str(ceil(log10(extent))) for extent in shape_of(arg.type)[:3])
    which = f"(operand {number}) " if len(args) > 1 else ""
    return f"{widths};{printed_bits(arg)};{_normal_prefix(prefix, True)}{which}"


def printed_kind(value: Value) -> str:
    """Of KINDS."""
    element = element_of(value.type)
    if not isinstance(element, DType):
        return "pointer"
    if element.is_float:
        return "float"
    return "int" if element.is_signed else "uint"


def printed_bits(value: Value) -> int:
    """The width that hexadecimal digits show: floats of less than 32 bits are printed as fp32."""
    element = element_of(value.type)
    is_float = isinstance(element, DType) and element.is_float
    return max(32, element.bits) if is_float else max(8, element.bits)


def printed_line(
    text: str, kind: str, in_hex: bool, bits: int, index: tuple[int, ...],
    program: tuple[int, ...],
) -> str:  # fmt: skip
    """One line. bits: integers extended to 64, floats as a double; index: of the first dims that
    there are, then negative numbers."""
    pid = f"pid ({', '.join(map(str, program))})"
    if kind == "text":
        return f"{pid}{_normal_prefix(text, False)}\n"
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


def _normal_prefix(prefix: str, has_operands: bool) -> str:
    """A prefix that ends in ": " before operands, and begins with a space."""
    if has_operands:
        prefix = prefix if prefix.endswith(" ") else f"{prefix} "
        prefix = prefix if prefix.endswith(": ") else f"{prefix[:-1]}: "
    return f" {prefix}" if len(prefix) > 2 and not prefix.startswith(" ") else prefix
