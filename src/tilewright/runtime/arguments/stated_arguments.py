"""Arguments that are stated as text, for compilation without values: `warmup("*fp16:16", "i32")`.

A `Stated` takes the place of a value in a launch that is bound to be compiled; its launch key is
that of the values it describes, so that both lead to the same code.
"""

from __future__ import annotations

from typing import Any, cast

from tilewright.compiler import DescriptorType, StatedArgument, is_argument_text, parse_argument
from tilewright.ir.types import DType, PointerType, i32, i64
from tilewright.runtime.arguments.descriptor_arguments import Blocks, DescriptorKey
from tilewright.runtime.arguments.key_rules import (
    ALIGNMENT,
    HANDLERS,
    MOCK,
    Constant,
    Handled,
    Handler,
    Key,
    TupleKey,
    constant_key,
    spec,
)


class Stated:
    """An argument by its facts, without a value. As a number it is 0, for annotated parameters."""

    def __init__(self, argument: StatedArgument) -> None:
        self.argument = argument

    def __int__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0


def stated(value: object, name: str) -> object:
    """An argument for a text that states one; anything else as it is. name: of the parameter.

    Errors: InvalidArgumentText.
    """
    if isinstance(value, str) and is_argument_text(value):
        return Stated(parse_argument(value, name))
    return value


def key_of(argument: StatedArgument) -> tuple[Key, Any]:
    """The launch key of all values that an argument describes; the value for constants."""
    type_ = argument.type
    if argument.is_constant:
        return _constant_key(argument), argument.value
    if isinstance(type_, DescriptorType):
        return _descriptor_key(argument, type_), 0
    if isinstance(type_, type):
        pairs = [key_of(item) for item in argument.items]
        return TupleKey((type_, *(key for key, _ in pairs))), [value for _, value in pairs]
    if isinstance(type_, PointerType):
        return spec(type_, argument.divisor, MOCK), 0
    return spec(cast("DType", type_), argument.divisor, sign=int(argument.non_negative)), 0


def _constant_key(argument: StatedArgument) -> Key:
    key = constant_key(argument.value)
    # an integer without a type is `tl.constexpr(n)`
    return Constant((int, key)) if isinstance(key, int) and argument.type is None else key


def _descriptor_key(argument: StatedArgument, type_: DescriptorType) -> DescriptorKey:
    rank, element = len(type_.block_shape), type_.pointer.element
    per_line = max(ALIGNMENT // element.bytes, 1) if argument.divisor > 1 else 1
    extents = [*[spec(i32, sign=1)] * (rank - 1), spec(i32, per_line, sign=1)]
    strides = [spec(i64, sign=1)] * (rank - 1)
    address = spec(type_.pointer, ALIGNMENT, MOCK)
    blocks = Blocks(type_.block_shape, type_.reads)
    return DescriptorKey((blocks, address, *extents, *strides))


def _of_stated(value: Stated) -> Handled:
    return key_of(value.argument)


def _resolve(kind: type[Any]) -> Handler | None:
    return _of_stated if issubclass(kind, Stated) else None


HANDLERS.resolvers.insert(0, _resolve)
