"""Types by Triton's names: "fp32", "i32", "*fp16", "*kbf16" (a pointer that is not stored to),
"tensordesc<fp16[64, 64]>" (a tensor descriptor by its blocks).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tilewright.ir.types import DType, PointerType, Scalar, Type, all_dtypes, i1
from tilewright.language import type_of
from tilewright.support import errors

_DESCRIPTOR_START = "tensordesc<"
_DESCRIPTOR = re.compile(
    r"tensordesc<(?P<element>\w+)\[(?P<shape>\d+(?:, *\d+){0,4})\]"
    r"(?:,(?P<reads>nan|zero,tf32|nan,tf32))?>"
)

_DTYPES = {
    name: dtype
    for dtype in all_dtypes()
    for name in (dtype.name, type_of(dtype).name, type_of(dtype).python_name)
}
_DTYPES.update({"u1": i1, "B": i1, "bool": i1})


def find_type(name: str) -> Scalar | None:
    """The scalar or pointer type called `name`, or None."""
    text = name.strip()
    pointer = text.startswith("*")
    const = text.startswith("*k")
    element = _DTYPES.get(text[1 + const :] if pointer else text)
    if element is None:
        return None
    return PointerType(element, const) if pointer else element


def type_named(name: str, what: str = "type") -> Scalar:
    """`find_type`, with InvalidOption, naming `what`, for unknown names."""
    type_ = find_type(name)
    if type_ is None:
        raise errors.InvalidOption(what, "a type such as 'i32', 'fp32' or '*fp16'", name)
    return type_


class DescriptorType(NamedTuple):
    """The facts of a tensor descriptor that a kernel is compiled for."""

    pointer: PointerType
    block_shape: tuple[int, ...]
    reads: str
    """The result of masked elements, as in a `Description`."""


def is_type_name(name: str) -> bool:
    """Whether a text has the form of a type."""
    return name.startswith(_DESCRIPTOR_START) or find_type(name) is not None


def find_descriptor_type(name: str, what: str = "type") -> DescriptorType | None:
    """The descriptor called `name`, or None; InvalidOption, naming `what`, if it is malformed."""
    if not name.startswith(_DESCRIPTOR_START):
        return None
    parts = _DESCRIPTOR.fullmatch(name)
    element = _DTYPES.get(parts["element"]) if parts is not None else None
    if parts is None or element is None:
        expected = "as 'tensordesc<fp16[64, 64]>' or 'tensordesc<fp16[64, 64],nan>'"
        raise errors.InvalidOption(what, expected, name)
    shape = tuple(int(extent) for extent in parts["shape"].split(","))
    return DescriptorType(PointerType(element), shape, parts["reads"] or "zero")


def name_of_descriptor(type_: DescriptorType) -> str:
    """The name that `find_descriptor_type` reads."""
    reads = "" if type_.reads == "zero" else f",{type_.reads}"
    return f"tensordesc<{name_of_type(type_.pointer.element)}{list(type_.block_shape)}{reads}>"


def name_of_type(type_: Type) -> str:
    """Triton's name of a scalar or pointer type."""
    if isinstance(type_, PointerType):
        return ("*k" if type_.const else "*") + name_of_type(type_.element)
    assert isinstance(type_, DType)
    if type_ is i1:
        return "u1"
    # Integers are written as in tile IR: "i32" is `int32`.
    return type_of(type_).name if type_.is_float else type_.name
