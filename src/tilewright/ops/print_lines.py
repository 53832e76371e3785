"""The header that `cf.print` sends to the host with its elements; see `printed_lines`."""

from __future__ import annotations

from math import ceil, log10

from tilewright.ir import Value
from tilewright.ir.types import DType, element_of, shape_of
from tilewright.support.printed_lines import normal_prefix


def operand_text(prefix: str, args: tuple[Value, ...], number: int) -> str:
    """The common part of an operand's lines: widths of indices, bits of numbers, prefix."""
    arg = args[number]
    widths = ",".join(str(ceil(log10(extent))) for extent in shape_of(arg.type)[:3])
    which = f"(operand {number}) " if len(args) > 1 else ""
    return f"{widths};{printed_bits(arg)};{normal_prefix(prefix, True)}{which}"


def printed_kind(value: Value) -> str:
    """The member of PRINT_KINDS for a value."""
    element = element_of(value.type)
    if not isinstance(element, DType):
        return "pointer"
    if element.is_float:
        return "float"
    return "int" if element.is_signed else "uint"


def printed_bits(value: Value) -> int:
    """The bits that are printed in hexadecimal; narrow floats are printed as fp32."""
    element = element_of(value.type)
    is_float = isinstance(element, DType) and element.is_float
    return max(32, element.bits) if is_float else max(8, element.bits)
