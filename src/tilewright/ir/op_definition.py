"""Declaration of ops: fields, traits, effects and constraints; `core.Op` is the base class.

    class SubOp(Op, opcode="arith.sub", traits=(Trait.PURE, Trait.ELEMENTWISE)):
        '''result = lhs - rhs'''
        lhs: Value = operand(number)
        rhs: Value = operand(number)

        def infer(self) -> Type:
            return self.lhs.type

`SubOp(x, y)` infers its result types and returns a detached op. The constructor's parameters are
the fields in the order of their declaration, those of a base class and those without a default
first. Only trailing optional
operands may be absent; an op has optional operands or one variadic (passed as a tuple), not both.
An op whose result types do not follow from its operands declares them as an attribute named
`result_type` or `result_types`; the text form prints those after the colon, not among the
attributes. By default `infer` returns those, and without them an op has no results. The constructor
is generated source, as for dataclasses: 1-2 us per op.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Any

from tilewright.ir.types import BufferType, DType, PointerType, TileType, Type, element_of
from tilewright.support.data_class import dataclass


class Trait(Enum):
    """A property of an op that generic code may rely on."""

    PURE = "no effects, may be removed, duplicated, reordered"
    ELEMENTWISE = "result[i] depends on operands[i] only; all operands and results have one shape"
    COMMUTATIVE = "the first two operands may be swapped"
    TERMINATOR = "ends a block"
    CONSTANT = "its value is known"
    ENDLESS = "may run for ever"

    __hash__ = object.__hash__  # Enum's is Python code, which each check of a trait would call


class Effect(Enum):
    """An effect of an op besides its results."""

    READ = "reads global memory"
    WRITE = "writes global memory"
    BARRIER = "orders memory operations around it"
    OBSERVE = "prints, asserts or stops the program"
    SHARED = "uses buffers, or orders what does; nothing else sees it"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Constraint:
    """A named predicate on the type of an operand, checked by the verifier."""

    name: str
    accepts: Callable[[Type], bool]


def _element(test: Callable[[DType], bool]) -> Callable[[Type], bool]:
    def accepts(type_: Type) -> bool:
        element = element_of(type_)
        return isinstance(element, DType) and test(element)

    return accepts


any_type = Constraint("any type", lambda type_: True)
number = Constraint("a number or bool", _element(lambda e: True))
integer = Constraint("an integer or bool", _element(lambda e: not e.is_float))
floating = Constraint("a float", _element(lambda e: e.is_float))
boolean = Constraint("i1", _element(lambda e: e.is_bool))
pointer = Constraint("a pointer", lambda type_: isinstance(element_of(type_), PointerType))
scalar = Constraint("a scalar", lambda type_: not isinstance(type_, TileType | BufferType))
scalar_integer = Constraint(
    "a scalar integer", lambda type_: isinstance(type_, DType) and not type_.is_float
)
tile = Constraint("a tile", lambda type_: isinstance(type_, TileType))
buffer = Constraint("a buffer", lambda type_: isinstance(type_, BufferType))
tile_or_buffer = Constraint(
    "a tile or a buffer", lambda type_: isinstance(type_, TileType | BufferType)
)


@dataclass(frozen=True, slots=True)
class Field:
    """One declared field of an op class."""

    role: str
    name: str = ""
    constraint: Constraint = any_type
    default: object = None
    has_default: bool = False
    choices: tuple[object, ...] = ()
    annotation: str = ""
    """The declared type of an attribute, as text."""


def operand(constraint: Constraint = any_type) -> Any:
    """One required operand."""
    return Field("operand", constraint=constraint)


def optional_operand(constraint: Constraint = any_type, *, default: None = None) -> Any:
    """An operand that may be absent (None), if all later ones are absent."""
    return Field("optional", constraint=constraint, has_default=True, default=default)


def variadic(constraint: Constraint = any_type) -> Any:
    """The remaining operands, as a tuple."""
    return Field("variadic", constraint=constraint)


_MISSING = object()


def attr(*, default: Any = _MISSING, choices: tuple[object, ...] = ()) -> Any:
    """A compile-time property: int, float, bool, str, None, Type, or a tuple of those."""
    if default is _MISSING:
        return Field("attr", choices=choices)
    return Field("attr", default=default, has_default=True, choices=choices)


def region() -> Any:
    """A nested block."""
    return Field("region")


def declared_fields(namespace: dict[str, Any]) -> tuple[Field, ...]:
    """Remove the fields from the body of an op class, in the order of their declaration."""
    # in the order of the namespace, which is that of the class body
    fields = tuple(
        replace(f, name=n, annotation=str(namespace["__annotations__"][n]))
        for n, f in namespace.items()
        if isinstance(f, Field)
    )
    for field in fields:
        del namespace[field.name]
    return fields


def class_facts(
    opcode: str, fields: tuple[Field, ...], traits: tuple[Trait, ...], effects: tuple[Effect, ...]
) -> dict[str, object]:
    """The class attributes of an op's declaration."""
    assert not (Trait.PURE in traits and effects), f"{opcode} is pure and has effects"
    return {
        "opcode": opcode,
        "fields": fields,
        "operand_fields": tuple(f for f in fields if f.role in ("operand", "optional", "variadic")),
        "attr_fields": tuple(f for f in fields if f.role == "attr"),
        "region_fields": tuple(f for f in fields if f.role == "region"),
        "traits": frozenset(traits),
        "effects": frozenset(effects),
    }


def accessors(fields: tuple[Field, ...]) -> dict[str, property]:
    """A property for each field, which reads the operands, attributes or regions of an op."""
    properties: dict[str, property] = {}
    position = regions = 0
    for field in fields:
        match field.role:
            case "operand":
                properties[field.name] = property(_get_operand(position))
                position += 1
            case "optional":
                properties[field.name] = property(_get_optional(position))
                position += 1
            case "variadic":
                properties[field.name] = property(_get_variadic(position))
            case "attr":
                properties[field.name] = property(_get_attr(field.name))
            case _:
                properties[field.name] = property(_get_region(regions))
                regions += 1
    return properties


def _get_operand(position: int) -> Callable[[Any], Any]:
    return lambda op: op.operands[position]


def _get_optional(position: int) -> Callable[[Any], Any]:
    return lambda op: op.operands[position] if len(op.operands) > position else None


def _get_variadic(position: int) -> Callable[[Any], Any]:
    return lambda op: tuple(op.operands[position:])


def _get_attr(name: str) -> Callable[[Any], Any]:
    return lambda op: op.attrs[name]


def _get_region(position: int) -> Callable[[Any], Any]:
    return lambda op: op.regions[position]


def constructor(cls: type, fields: tuple[Field, ...], value_class: type) -> Callable[..., None]:
    """Generate `__init__(operands, attributes, regions)` of one op class.

    value_class: the class of results; an argument, since the data structures import this module.
    """
    names = {
        role: [f.name for f in fields if f.role == role]
        for role in ("operand", "optional", "variadic", "attr", "region")
    }
    defaults = {f"_default_{f.name}": f.default for f in fields if f.has_default}
    parameters = ", ".join(
        f"{f.name}=_default_{f.name}" if f.has_default else f.name for f in fields
    )
    lines = [f"def __init__(self, {parameters}):"]
    rest = "".join(f", *{n}" for n in names["variadic"])
    lines.append(
        f"    operands = [{', '.join(names['operand'])}{rest}]"
        if names["operand"]
        else f"    operands = [{rest[2:]}]"
    )
    for n in names["optional"]:
        lines.append(f"    if {n} is not None: operands.append({n})")
    lines.append("    self.operands = operands")
    lines.append(f"    self.attrs = {{{', '.join(f'{n!r}: {n}' for n in names['attr'])}}}")
    lines.append(f"    self.regions = ({''.join(n + ',' for n in names['region'])})")
    lines.append("    self.parent = self.prev = self.next = self.loc = None")
    lines += [f"    {n}.owner = self" for n in names["region"]]
    # last: `infer` reads operands, attributes and regions
    lines.append("    types = self.infer()")
    lines.append("    if types is None: self.results = ()")
    lines.append("    elif type(types) is tuple:")
    lines.append("        self.results = tuple([Value(t, self, i) for i, t in enumerate(types)])")
    lines.append("    else: self.results = (Value(types, self, 0),)")
    scope: dict[str, Any] = {"Value": value_class, **defaults}
    exec("\n".join(lines), scope)  # noqa: S102 -- as dataclasses do, once per class
    init = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init
