"""How an op is declared: fields, traits, effects, constraints; registries of ops and their rules.

    class SubOp(Op, opcode="arith.sub", traits=(Trait.PURE, Trait.ELEMENTWISE)):
        '''result = lhs - rhs'''
        lhs: Value = operand(number)
        rhs: Value = operand(number)

        def infer(self) -> Type:
            return self.lhs.type

`SubOp(x, y)` infers its result types and returns a detached op; the constructor's parameters are
the fields in the order of their declaration: what has no default first. Optional operands may be
absent only from the end; an op has optional operands or one variadic (passed as a tuple), not both.
An op whose result types do not follow from its operands declares them as an attribute named
`result_type` or `result_types`; the text form shows those after the colon and not among the
attributes.
The class is built once and its constructor is generated source, as for dataclasses: 1-2 us per op.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

from tilewright.ir.core import Block, Function, Value
from tilewright.ir.core import Op as CoreOp
from tilewright.ir.types import DType, PointerType, TileType, Type, element_of


class Trait(Enum):
    """What generic code may assume of an op."""

    PURE = "no effects, may be removed, duplicated, reordered"
    ELEMENTWISE = "result[i] depends on operands[i] only; all operands and results have one shape"
    COMMUTATIVE = "the first two operands may be swapped"
    TERMINATOR = "ends a block"
    CONSTANT = "its value is known"
    ENDLESS = "may run for ever"


class Effect(Enum):
    """What an op may do besides computing its results."""

    READ = "reads global memory"
    WRITE = "writes global memory"
    BARRIER = "orders memory operations around it"
    OBSERVE = "prints, asserts or stops the program"


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
scalar = Constraint("a scalar", lambda type_: not isinstance(type_, TileType))
scalar_integer = Constraint(
    "a scalar integer", lambda type_: isinstance(type_, DType) and not type_.is_float
)
tile = Constraint("a tile", lambda type_: isinstance(type_, TileType))


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
    """An operand that may be absent (None); only trailing ones can be."""
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


OPS: dict[str, type[Op]] = {}
"""Every op class by opcode."""

ReferenceRule = Callable[..., Any]
R = TypeVar("R", bound=ReferenceRule)
REFERENCE_RULES: dict[type[CoreOp], ReferenceRule] = {}
"""NumPy meaning of each op: rule(op, *operand arrays) -> array or tuple of arrays."""


def reference(op_class: type[CoreOp]) -> Callable[[R], R]:
    """Register the NumPy rule of an op class; a backend registers those of its own ops."""

    def register(rule: R) -> R:
        assert op_class not in REFERENCE_RULES, f"two reference rules for {op_class.opcode}"
        REFERENCE_RULES[op_class] = rule
        return rule

    return register


@dataclass_transform(field_specifiers=(operand, optional_operand, variadic, attr, region))
class OpMeta(type):
    """Builds an op class from its declaration."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        opcode: str = "",
        traits: tuple[Trait, ...] = (),
        effects: tuple[Effect, ...] = (),
    ) -> OpMeta:
        fields = tuple(
            replace(f, name=n, annotation=str(namespace["__annotations__"][n]))
            for n, f in namespace.items()
            if isinstance(f, Field)
        )
        for field in fields:
            del namespace[field.name]
        namespace.setdefault("__slots__", ())
        if opcode:
            namespace.update(_class_facts(opcode, fields, traits, effects))
            namespace.update(_accessors(fields))
        cls = super().__new__(mcls, name, bases, namespace)
        if opcode:
            assert opcode not in OPS, f"two ops are called {opcode}"
            OPS[opcode] = cast("type[Op]", cls)
            setattr(cls, "__init__", _constructor(cls, fields))  # noqa: B010
        return cls


class Op(CoreOp, metaclass=OpMeta):
    """Base class of every declared op."""

    __slots__ = ()
    fields: ClassVar[tuple[Field, ...]] = ()
    operand_fields: ClassVar[tuple[Field, ...]] = ()
    attr_fields: ClassVar[tuple[Field, ...]] = ()
    region_fields: ClassVar[tuple[Field, ...]] = ()
    traits: ClassVar[frozenset[Trait]] = frozenset()
    effects: ClassVar[frozenset[Effect]] = frozenset()


def _class_facts(
    opcode: str, fields: tuple[Field, ...], traits: tuple[Trait, ...], effects: tuple[Effect, ...]
) -> dict[str, object]:
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


def _accessors(fields: tuple[Field, ...]) -> dict[str, property]:
    accessors: dict[str, property] = {}
    position = regions = 0
    for field in fields:
        match field.role:
            case "operand":
                accessors[field.name] = property(_get_operand(position))
                position += 1
            case "optional":
                accessors[field.name] = property(_get_optional(position))
                position += 1
            case "variadic":
                accessors[field.name] = property(_get_variadic(position))
            case "attr":
                accessors[field.name] = property(_get_attr(field.name))
            case _:
                accessors[field.name] = property(_get_region(regions))
                regions += 1
    return accessors


def _get_operand(position: int) -> Callable[[CoreOp], Value]:
    return lambda op: op.operands[position]


def _get_optional(position: int) -> Callable[[CoreOp], Value | None]:
    return lambda op: op.operands[position] if len(op.operands) > position else None


def _get_variadic(position: int) -> Callable[[CoreOp], tuple[Value, ...]]:
    return lambda op: tuple(op.operands[position:])


def _get_attr(name: str) -> Callable[[CoreOp], object]:
    return lambda op: op.attrs[name]


def _get_region(position: int) -> Callable[[CoreOp], Block]:
    return lambda op: op.regions[position]


def _constructor(cls: type, fields: tuple[Field, ...]) -> Callable[..., None]:
    """Generate `__init__(operands, attributes, regions)` of one op class."""
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
    lines.append("    types = self.infer()")
    lines.append("    if types is None: self.results = ()")
    lines.append("    elif type(types) is tuple:")
    lines.append("        self.results = tuple([Value(t, self, i) for i, t in enumerate(types)])")
    lines.append("    else: self.results = (Value(types, self, 0),)")
    scope: dict[str, Any] = {"Value": Value, **defaults}
    exec("\n".join(lines), scope)  # noqa: S102 -- as dataclasses do, once per class
    init = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def is_pure(op: CoreOp) -> bool:
    """Whether the op and everything in its regions has no effect."""
    known = (cast("Op", inner).traits for inner in (op.walk() if op.regions else (op,)))
    return all(Trait.PURE in traits or Trait.TERMINATOR in traits for traits in known)


def ops_with(function: Function, effects: Set[Effect]) -> set[Op]:
    """The ops of a function that have one of some effects, or contain an op that has."""
    having: set[Op] = set()
    for op in function.walk():
        around: object = op if cast("Op", op).effects & effects else None
        while isinstance(around, Op) and around not in having:
            having.add(around)
            around = around.parent.owner if around.parent is not None else None
    return having


def effects_of(op: CoreOp) -> frozenset[Effect]:
    """Effects of the op and of everything in its regions."""
    effects = cast("Op", op).effects
    if op.regions:
        effects = effects.union(*(cast("Op", inner).effects for inner in op.walk()))
    return effects
