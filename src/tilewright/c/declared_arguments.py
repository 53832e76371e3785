"""Launch arguments of kernels whose parameters have declared types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tilewright.frontend.c import KernelParameter, c_spelling
from tilewright.ir.types import DType, PointerType
from tilewright.runtime import (
    Declared,
    Spec,
    address_divisor,
    argument_key,
    integer_spec,
    spec,
)
from tilewright.support import errors

Handler = Callable[[Any], tuple[Any, Any]]


def declared_as(parameter: KernelParameter) -> Declared:
    """The declaration of a parameter for launches."""
    facts = parameter.facts
    multiple = facts.get("aligned", facts.get("multiple_of", 1))
    return Declared(parameter.type, multiple, handler_of(parameter))


def handler_of(parameter: KernelParameter) -> Handler:
    """The handler of a parameter: argument -> (its part of the variant's key, the passed value).

    Integers are specialized as in Python kernels: on being 1, on being multiples of 16 or 8, and on
    their sign.
    Errors of the handler: UnsupportedArgument.
    """
    type_ = parameter.type
    if isinstance(type_, PointerType):
        return _pointer_handler(parameter, type_)
    return _integer_handler(parameter, type_) if type_.is_integer else _number_handler(type_)


def _number_handler(type_: DType) -> Handler:
    plain = spec(type_)
    convert = bool if type_.is_bool else float
    return lambda value: (plain, convert(_number(value)))


def _integer_handler(parameter: KernelParameter, type_: DType) -> Handler:
    low, high = type_.min_int, type_.max_int
    multiple = parameter.facts.get("multiple_of", 1)

    def handle(value: Any) -> tuple[Any, Any]:
        # type() first: bool is a subclass, and the usual case should cost one comparison.
        number = value if type(value) is int else _whole(value)
        if not low <= number <= high:
            raise errors.UnsupportedArgument(
                "", f"value {number}, too large for {c_spelling(type_)}"
            )
        if number % multiple:
            actual = f"value {number}, declared to be a multiple of {multiple}"
            raise errors.UnsupportedArgument("", actual, f"pass a multiple of {multiple}")
        # As in Triton, an integer that is 1 is a constant of the variant.
        if number == 1:
            return 1, 1
        return integer_spec(type_, number), number

    return handle


def _number(value: Any) -> Any:
    key, passed = argument_key(value)
    if isinstance(key, Spec) and isinstance(key.type, PointerType):
        raise errors.UnsupportedArgument("", "array", "the parameter is declared as a number")
    return passed


def _whole(value: Any) -> int:
    number = _number(value)
    # Whole floats are accepted: NumPy scalars and results of `/` often are.
    if isinstance(number, float) and not number.is_integer():
        raise errors.UnsupportedArgument("", f"value {number}", "pass an integer")
    return int(number)


def _pointer_handler(parameter: KernelParameter, type_: PointerType) -> Handler:
    aligned = parameter.facts.get("aligned", 1)

    def handle(value: Any) -> tuple[Any, Any]:
        # An integer is an address, and None the null pointer.
        if type(value) is int or value is None:
            address = value or 0
            key = spec(type_, address_divisor(address))
        else:
            given, address = argument_key(value)
            if not isinstance(given, Spec) or not isinstance(given.type, PointerType):
                instead = f"pass an array for {c_spelling(type_)}"
                raise errors.UnsupportedArgument("", type(value).__name__, instead)
            if given.type.element is not type_.element:
                what = f"{c_spelling(given.type.element)} array"
                raise errors.UnsupportedArgument("", what, f"it is declared {c_spelling(type_)}")
            # The declared type; alignment, device and writability are those of the array.
            key = spec(type_, given.divisor, given.device, given.read_only)
        if cast("int", address) % aligned:
            what = f"pointer that is not aligned to {aligned} bytes, as declared"
            raise errors.UnsupportedArgument("", what, "pass an aligned array")
        return key, address

    return handle
