"""Arguments of a kernel as text: the type, and facts that hold for every value passed.

    *fp16:16                 a pointer whose address is a multiple of 16
    i32                      any int32
    i32:16                   a multiple of 16
    i32:16,>=0,<1048576      ... from 0 to 1048575
    i32=1                    always 1, compiled as a constant
    tensordesc<fp16[64, 64]>:16       a tensor descriptor whose rows are multiples of 16 bytes
    (*fp32:16; i32=1; None)  a tuple of arguments; `package.module:Class(...)` for a named tuple

A launch finds these facts by itself (`runtime/arguments/key_rules.py`): an address that is a
multiple of 16; an integer that is a multiple of 16 or 8, is not negative, or is 1. Code compiled
with the facts of a launch is that of the launch. Bounds select a variant, and list the reachable
ones; of a range, only its sign changes code.
"""

from __future__ import annotations

import ast
import importlib
import re
from typing import Any, TypeGuard, cast

from tilewright.compiler.type_names import (
    DescriptorType,
    find_descriptor_type,
    find_type,
    is_type_name,
    name_of_descriptor,
    name_of_type,
)
from tilewright.frontend.python import ArgSpec, descriptor_spec
from tilewright.ir.types import DType, PointerType, Scalar, Type
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

_PARTS = re.compile(r"(?P<type>tensordesc<[^>]*>|[^:=]*)(?:=(?P<value>.*)|:(?P<facts>.*))?", re.S)
_DIVISOR = re.compile(r"[1-9]\d*")
_BOUND = re.compile(r"(>=|>|<=|<)\s*(-?\d+)")
_TUPLE = re.compile(r"(?:(?P<kind>[\w.]+:[\w.]+))?\((?P<items>.*)\)", re.S)
_LINE = 16
"""Bytes of which the rows of a tensor descriptor may be multiples."""

Kind = Scalar | DescriptorType | type[Any] | None


@dataclass(frozen=True, slots=True)
class StatedArgument:
    """An argument with its facts.

    type: scalar, pointer or descriptor; the class of a tuple; None for a compile-time item of a
    tuple; divisor: of the value, the address or the bytes of a row; low, high: bounds of an
    integer, low <= value < high; value: that of a constant; items: those of a tuple
    """

    type: Kind
    divisor: int = 1
    low: int | None = None
    high: int | None = None
    value: object = None
    is_constant: bool = False
    items: tuple[StatedArgument, ...] = ()

    @property
    def non_negative(self) -> bool:
        """Whether a signed integer is 0 or more."""
        signed = isinstance(self.type, DType) and self.type.is_integer and self.type.is_signed
        return signed and self.low is not None and self.low >= 0

    @property
    def integers(self) -> range | None:
        """The values that have the facts of an integer; None for a constant or another type."""
        if self.is_constant or not _is_integer(self.type):
            return None
        low = self.type.min_int if self.low is None else self.low
        high = self.type.max_int + 1 if self.high is None else self.high
        return range(-(-low // self.divisor) * self.divisor, high, self.divisor)

    def spec(self, name: str) -> ArgSpec:
        """The argument as the front end describes it."""
        if self.is_constant:
            return ArgSpec(name, "constexpr", cast("Type | None", self.type), self.value)
        if isinstance(self.type, DescriptorType):
            return descriptor_spec(name, *self.type, even_rows=self.divisor > 1)
        if isinstance(self.type, type):
            items = tuple(item.spec(f"{name}_{i}") for i, item in enumerate(self.items))
            return ArgSpec(name, "tuple", value=self.type, items=items)
        facts: dict[str, int] = {}
        if self.divisor > 1:
            is_pointer = isinstance(self.type, PointerType)
            facts["aligned" if is_pointer else "multiple_of"] = self.divisor
        if self.non_negative:
            facts["non_negative"] = 1
        return ArgSpec(name, "value", cast("Type", self.type), facts=facts)


def is_argument_text(text: str) -> bool:
    """Whether a text has the form of an argument; its facts may be wrong."""
    grouped = _TUPLE.fullmatch(text.strip())
    if grouped is not None:
        return any(map(is_argument_text, _split(grouped["items"])))
    parts = _PARTS.fullmatch(text.strip())
    return parts is not None and is_type_name(parts["type"].strip())


def parse_argument(text: str, name: str) -> StatedArgument:
    """The argument that a text states. name: of its parameter, for messages.

    Errors: InvalidArgumentText; InvalidOption for an unknown type.
    """
    text = text.strip()
    grouped = _TUPLE.fullmatch(text)
    if grouped is not None:
        kind = _class_named(grouped["kind"], name, text) if grouped["kind"] else tuple
        items = tuple(parse_item(item, name) for item in _split(grouped["items"]))
        return StatedArgument(kind, items=items)
    parts = cast("re.Match[str]", _PARTS.fullmatch(text))
    type_name = parts["type"].strip()
    what = f"type of '{name}'"
    type_: Kind = find_descriptor_type(type_name, what) or find_type(type_name)
    if type_ is None:
        raise errors.InvalidOption(what, "a type such as 'i32', 'fp32' or '*fp16'", type_name)
    if parts["value"] is not None:
        return _constant(type_, parts["value"], name, text)
    return _with_facts(type_, parts["facts"], name, text)


def parse_item(text: str, name: str) -> StatedArgument:
    """An item of a tuple: an argument, or a compile-time value as a literal of Python."""
    if is_argument_text(text):
        return parse_argument(text, name)
    try:
        return StatedArgument(None, value=ast.literal_eval(text.strip()), is_constant=True)
    except synchronous(ValueError, SyntaxError):
        problem = "is neither an argument nor a literal"
        raise errors.InvalidArgumentText(name, text.strip(), problem) from None


def argument_text(spec: ArgSpec) -> str:
    """The text of an argument that the front end describes. Errors: InvalidArgumentText for a tuple
    whose class or constants have no text."""
    if spec.kind == "constexpr":
        return _constant_text(spec)
    if spec.kind == "tuple":
        items = "; ".join(map(argument_text, spec.items))
        return f"{_class_name(spec)}({items})"
    if spec.kind == "descriptor":
        pointer = cast("PointerType", spec.items[0].type)
        block_shape, padding = cast("tuple[Any, Any]", spec.value)
        last = spec.items[len(block_shape)]
        even = f":{_LINE}" if "multiple_of" in last.facts else ""
        return name_of_descriptor(DescriptorType(pointer, block_shape, padding)) + even
    divisor = spec.facts.get("aligned") or spec.facts.get("multiple_of")
    facts = [str(divisor)] if divisor else []
    facts += [">=0"] if spec.facts.get("non_negative") else []
    return name_of_type(cast("Type", spec.type)) + (f":{','.join(facts)}" if facts else "")


def _constant_text(spec: ArgSpec) -> str:
    if spec.type is not None:
        return f"{name_of_type(spec.type)}={spec.value}"
    if not isinstance(spec.value, int | float | str | None):
        problem = "is a compile-time object, which has no text"
        raise errors.InvalidArgumentText(spec.name, repr(spec.value), problem)
    return repr(spec.value)


def _class_name(spec: ArgSpec) -> str:
    kind = cast("type[Any]", spec.value)
    if kind is tuple:
        return ""
    name = f"{kind.__module__}:{kind.__qualname__}"
    if "<locals>" in name:
        problem = "is a class inside a function, which no name reaches"
        raise errors.InvalidArgumentText(spec.name, kind.__qualname__, problem)
    return name


def _class_named(text: str, name: str, whole: str) -> type[Any]:
    module, _, path = text.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise errors.InvalidArgumentText(name, whole, f"has no class '{text}'") from None
    if not isinstance(found, type) or not issubclass(found, tuple):
        raise errors.InvalidArgumentText(name, whole, f"is of '{text}', which is no named tuple")
    return cast("type[Any]", found)


def _split(text: str) -> list[str]:
    """The items of a tuple, separated by semicolons outside of parentheses."""
    items, depth, start = list[str](), 0, 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == ";" and depth == 0:
            items.append(text[start:place])
            start = place + 1
    rest = text[start:]
    return [*items, rest] if rest.strip() else items


def _constant(type_: Kind, value: str, name: str, text: str) -> StatedArgument:
    if not isinstance(type_, DType) or not type_.is_integer:
        raise errors.InvalidArgumentText(name, text, "has a value, which only integers may have")
    if re.fullmatch(r"\s*-?\d+\s*", value) is None:
        raise errors.InvalidArgumentText(name, text, f"has the value '{value}', no integer")
    number = int(value)
    _check_inside(type_, number, name, text)
    return StatedArgument(type_, value=number, is_constant=True)


def _with_facts(type_: Kind, facts: str | None, name: str, text: str) -> StatedArgument:
    divisor, low, high = 1, None, None
    for fact in [] if facts is None else facts.split(","):
        fact = fact.strip()
        bound = _BOUND.fullmatch(fact)
        if _DIVISOR.fullmatch(fact):
            divisor = _divisor(type_, int(fact), divisor, name, text)
        elif bound is None:
            problem = f"has the fact '{fact}', which is no divisor and no bound"
            raise errors.InvalidArgumentText(name, text, problem)
        else:
            low, high = _bounded(type_, bound, (low, high), name, text)
    stated = StatedArgument(type_, divisor, low, high)
    if stated.integers is not None and not stated.integers:
        raise errors.InvalidArgumentText(name, text, "has no value: its range is empty")
    return stated


def _divisor(type_: Kind, divisor: int, before: int, name: str, text: str) -> int:
    if before > 1:
        raise errors.InvalidArgumentText(name, text, "has two divisors")
    if isinstance(type_, DType) and not _is_integer(type_):
        problem = f"has a divisor, which {name_of_type(type_)} cannot have"
        raise errors.InvalidArgumentText(name, text, problem)
    if isinstance(type_, DescriptorType) and divisor != _LINE:
        problem = f"has the divisor {divisor}; rows are multiples of {_LINE} bytes, or not"
        raise errors.InvalidArgumentText(name, text, problem)
    if isinstance(type_, PointerType) and divisor & (divisor - 1):
        problem = f"is aligned to {divisor} bytes, no power of two"
        raise errors.InvalidArgumentText(name, text, problem)
    return divisor


def _bounded(
    type_: Kind,
    bound: re.Match[str],
    before: tuple[int | None, int | None],
    name: str,
    text: str,
) -> tuple[int | None, int | None]:
    """Bounds with another one."""
    if not _is_integer(type_):
        raise errors.InvalidArgumentText(name, text, "has a bound, which only integers may have")
    (low, high), (sign, number) = before, (bound[1], int(bound[2]))
    limit = number + (sign in (">", "<="))
    if sign.startswith(">"):
        _check_inside(type_, limit, name, text)
        return (limit if low is None else max(low, limit)), high
    _check_inside(type_, limit - 1, name, text)
    return low, (limit if high is None else min(high, limit))


def _check_inside(type_: DType, number: int, name: str, text: str) -> None:
    if not type_.min_int <= number <= type_.max_int:
        problem = f"has a bound or value outside of {name_of_type(type_)}"
        raise errors.InvalidArgumentText(name, text, problem)


def _is_integer(type_: Kind) -> TypeGuard[DType]:
    """Whether values have divisors and bounds."""
    return isinstance(type_, DType) and type_.is_integer and not type_.is_bool
