"""Conversion of arguments of unusual types to the 64 bits that a launch passes."""

from __future__ import annotations

import operator
from typing import Any

from tilewright.support import errors


def slot_value(kind: str, name: str, value: object) -> int:
    """The slot of a number that the machine code does not convert. kind: i1, i8 ... f64.

    These are integers of other types than int; the machine code converts every float.
    Raises UnsupportedArgument for other values, or out of range.
    """
    number = None if kind[0] in "fb" else _integer(value, kind)
    if number is None:
        type_name = type(value).__name__
        raise errors.UnsupportedArgument(name, type_name, f"pass a number for {kind}")
    if kind == "i1":
        return int(number != 0)
    bits = int(kind[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "i" else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise errors.UnsupportedArgument(name, f"value {number}", f"{kind} holds {low} to {high}")
    # two's complement: the kernel reads as many of the low bits as its type has
    return number & 0xFFFF_FFFF_FFFF_FFFF


def _integer(value: Any, kind: str) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        is_bool = kind == "i1" and type(value).__name__.startswith("bool")
        return int(bool(value)) if is_bool else None  # NumPy's bool is no integer


def address_of(name: str, value: object) -> int:
    """The address of an array's first element: of an integer (of any type), an object with
    `data_ptr()` or `__cuda_array_interface__`.

    Raises UnsupportedArgument for anything else.
    """
    address = _address(value)
    if address is None or not 0 <= address < 1 << 64:
        what = type(value).__name__ if address is None else f"value {address}"
        raise errors.UnsupportedArgument(name, what, "pass an array in the memory of the GPU")
    return address


def _address(value: Any) -> int | None:
    if hasattr(value, "__cuda_array_interface__"):
        return int(value.__cuda_array_interface__["data"][0] or 0)
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    try:
        return operator.index(value)
    except TypeError:
        return None
