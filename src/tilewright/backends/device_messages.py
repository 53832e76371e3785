"""What kernels tell their host, as text: elements of `device_print`, places of `device_assert`."""

from __future__ import annotations

import json
import math
import struct

from tilewright.support import SourceLoc

PRINT_KINDS = ("bool", "int", "uint", "float", "pointer", "text", "double")
"""What the 64 bits of a printed element mean; generated code passes the position."""


def packed(message: str, loc: SourceLoc | None) -> str:
    """A message and the place that it is about, as one text."""
    frames = [] if loc is None else [frame[:-1] for frame in loc.frames()]
    return json.dumps([message, frames])


def unpacked(text: str) -> tuple[str, SourceLoc | None]:
    """What `packed` was given."""
    message, frames = json.loads(text)
    loc: SourceLoc | None = None
    for frame in reversed(frames):
        loc = SourceLoc._make([*frame, loc])
    return message, loc


def index_text(*indices: int) -> str:
    """`(1, 2)` for the index of an element; negative numbers stand for dims that there are not."""
    return f"({', '.join(str(n) for n in indices if n >= 0)})"


def printed_line(
    text: str, kind: int, hexadecimal: bool, bits: int, index: tuple[int, ...],
    program: tuple[int, ...],
) -> str:  # fmt: skip
    """One line of `device_print`: bits of an element of PRINT_KINDS[kind]; a text has no index."""
    if PRINT_KINDS[kind] == "text":
        return f"pid ({', '.join(map(str, program))}) {text}\n"
    shown = shown_bits(PRINT_KINDS[kind], bits, hexadecimal)
    return f"pid ({', '.join(map(str, program))}) idx {index_text(*index)} {text}{shown}\n"


def shown_bits(kind: str, bits: int, hexadecimal: bool) -> str:
    """An element as Python would print it; floats in the fewest digits that tell them apart."""
    unsigned = bits & 0xFFFFFFFFFFFFFFFF
    match kind:
        case "text":
            return ""
        case "float" | "double" if not hexadecimal:
            (number,) = struct.unpack("<d", struct.pack("<Q", unsigned))
            return repr(number if kind == "double" else _shortest(number))
        case "int" if not hexadecimal:
            return str(unsigned - (1 << 64) if unsigned >> 63 else unsigned)
        case "uint" if not hexadecimal:
            return str(unsigned)
        case "bool" if not hexadecimal:
            return str(bool(unsigned))
        case _:
            return f"0x{unsigned:x}"


def _shortest(number: float) -> float:
    """The number of fewest digits that is the same in fp32."""
    if not math.isfinite(number):
        return number
    single = struct.Struct("<f").pack
    rounded = (float(f"{number:.{digits}g}") for digits in range(1, 9))
    shorter = (r for r in rounded if abs(r) < 3.4e38 and single(r) == single(number))
    return next(shorter, number)
