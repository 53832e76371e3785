"""`triton.language.str_to_ty`: the types of the language by the names that signatures have."""

from __future__ import annotations

from typing import Any, cast

from tilewright.compiler import find_descriptor_type, type_named
from tilewright.language import (
    block_type,
    constexpr_type,
    dtype,
    tensor_descriptor_type,
    tuple_type,
    type_of,
)


def str_to_ty(name: Any, c: object) -> Any:
    """ "i32", "*kfp16" or "tensordesc<fp16[64, 64]>" as a type; a tuple of names as a `tuple_type`;
    "constexpr" as the type of the value `c`. Errors: InvalidOption."""
    if isinstance(name, tuple):
        names = cast("tuple[Any, ...]", name)
        return tuple_type([str_to_ty(item, c) for item in names], getattr(names, "_fields", None))
    if name.startswith("constexpr"):
        return constexpr_type(c)
    descriptor = find_descriptor_type(name)
    if descriptor is None:
        return type_of(type_named(name))
    element = dtype.of(descriptor.pointer.element)
    return tensor_descriptor_type(block_type(element, descriptor.block_shape))
