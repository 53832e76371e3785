"""What `cf.print` tells its host beside the elements; the lines are those of `printed_lines`."""

from __future__ import annotations

from math import ceil, log10

from tilewright.ir import Value
from tilewright.ir.types import DType, element_of, shape_of
from tilewright.support.printed_lines import normal_prefix


def operand_text(prefix: str, args: tuple[Value, ...], number: int) -> str:
    """What all lines of one operand share, as one text: widths of indices, bits, what precedes."""
    arg = args[number]
    widths = ",".join(str(ceil(log10(extent))) for extent in shape_of(arg.type)[:3])
    which = f"(operand {number}) " if len(args) > 1 else ""
    return f"{widths};{printed_bits(arg)};{normal_prefix(prefix, True)}{which}"


def printed_kind(value: Value) -> str:
    """Of PRINT_KINDS."""
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
