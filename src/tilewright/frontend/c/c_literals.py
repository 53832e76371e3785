"""Integer, character and string literals: their values, and the types that C gives to integers.

A decimal integer is of the first of `int`, `long` that holds it; in another base the unsigned types
count as well; `u` leaves only those, `l` only the long ones (C17 6.4.4.1).
"""

from __future__ import annotations

import re

from tilewright.ir.types import DType, i32, i64, u32, u64
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous

_CANDIDATES = (i32, u32, i64, u64)
_BASES = {"0x": 16, "0b": 2}
_DIGIT_NAMES = {8: "an octal number, since it begins with 0", 2: "a binary number"}
_LONGEST = 24
"""Longest literal that messages show; no 64-bit number has as many decimal digits."""

_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
# Octal takes at most three digits, hexadecimal any number (C17 6.4.4.4).
_ESCAPE = re.compile(r"\\(?:x(?P<hex>[0-9a-fA-F]+)|(?P<octal>[0-7]{1,3})|(?P<other>.))", re.DOTALL)


def integer_literal(text: str) -> tuple[int, DType]:
    """Value and type of a literal such as `10`, `0x1fu`, `017`, `3l`. Errors: CSyntaxError."""
    digits = text.rstrip("uUlL")
    suffix = text[len(digits) :].lower()
    value, base = _value_of(digits, text)
    for dtype in _CANDIDATES:
        # Suffixes exclude types; the first of the others that holds the value is chosen.
        if "u" in suffix and dtype.is_signed or "l" in suffix and dtype.bits < 64:
            continue
        # Decimal literals without `u` never become unsigned in C.
        if base == 10 and "u" not in suffix and not dtype.is_signed:
            continue
        if value <= dtype.max_int:
            return value, dtype
    instead = f"write {text}u" if value <= u64.max_int else ""
    kind = "an int or a long" if base == 10 and "u" not in suffix else "an integer of 64 bits"
    raise errors.CSyntaxError(f"{kind}", f"'{shortened(text)}'", instead)


def _value_of(digits: str, text: str) -> tuple[int, int]:
    """The value of digits, and their base."""
    # `0` by itself is octal in C too, with the same value.
    base = _BASES.get(digits[:2].lower(), 8 if digits[0] == "0" else 10)
    # Before int(): Python refuses, or takes long for, numbers of thousands of digits.
    if base == 10 and len(digits) > _LONGEST:
        raise errors.CSyntaxError("an integer of 64 bits", f"'{shortened(text)}'")
    try:
        return int(digits, base), base
    except synchronous(ValueError):
        # int() accepts no digit 8 or 9 in base 8: `08` ends here.
        instead = f"for the decimal number write {digits.lstrip('0')}" if base == 8 else ""
        raise errors.CSyntaxError(_DIGIT_NAMES[base], f"'{shortened(text)}'", instead) from None


def shortened(text: str) -> str:
    """A literal, shortened for messages."""
    if len(text) <= _LONGEST:
        return text
    # The quotes inside close and reopen those that the caller puts around the result.
    return f"{text[:_LONGEST]}...' of {len(text)} characters, '...{text[-4:]}"


def character_literal(text: str) -> int:
    """The code of `'a'`, `'\\n'`, `'\\x41'`. Errors: CSyntaxError."""
    inner = unescaped(text.removeprefix("L")[1:-1])
    if len(inner) != 1:
        raise errors.CSyntaxError("one character in single quotes", shortened(text))
    return ord(inner)


def string_literal(text: str) -> str:
    """The content of `"..."`. Errors: CSyntaxError."""
    return unescaped(text[1:-1])


def unescaped(text: str) -> str:
    """Replace the escape sequences of a text. Errors: CSyntaxError."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    if match["other"] is not None:
        if match["other"] not in _ESCAPES:
            expected = "an escape sequence such as \\n, \\\\ or \\x41"
            raise errors.CSyntaxError(expected, f"'{match[0]}'")
        return _ESCAPES[match["other"]]
    code = int(match["hex"], 16) if match["hex"] else int(match["octal"], 8)
    if code > 255:
        raise errors.CSyntaxError("a character of 8 bits", f"'{shortened(match[0])}'")
    return chr(code)
