"""`aggregate`: classes whose values a kernel makes, passes, returns and carries through loops.

    @aggregate
    class Range:
        low: tl.tensor
        high: tl.tensor
        inclusive: tl.constexpr

        def __init__(self, low, high, inclusive=True):
            self.low, self.high = low, high
            self.inclusive = tl.constexpr(inclusive)

        @tilewright.jit
        def contains(self, x):
            return (self.low <= x) & ((x <= self.high) if self.inclusive else (x < self.high))

The annotations of the class are its fields. A constructor runs where the kernel calls it and sets
all of them; without one, fields are given in their order or by name. Afterwards they do not change:
`aggregate_replace` makes a changed copy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType, MethodType
from typing import Any, TypeVar, cast

from tilewright.language.compile_time import base_value, constexpr, constexpr_function
from tilewright.language.stub_dispatch import DeviceFunction
from tilewright.language.tensors import aggregate_value, tensor
from tilewright.support import errors
from tilewright.support.data_class import dataclass

Class = TypeVar("Class", bound=type)
AnyAggregate = TypeVar("AnyAggregate", bound="user_aggregate")

_LITERALS = (bool, int, float, str, bytes, type(None))


@dataclass(frozen=True)
class Fixed:
    """The value of a constexpr field: control flow does not make it a run-time value."""

    value: object


class user_aggregate(aggregate_value):
    """Base of the classes that `aggregate` makes. aggregate_fields: name -> annotation."""

    aggregate_fields: dict[str, object] = {}
    _complete = False

    def parts(self) -> list[Any]:
        """The values of the fields that are set."""
        fields = vars(self)
        return [
            Fixed(fields[name]) if _is_constexpr(annotation) else fields[name]
            for name, annotation in self.aggregate_fields.items()
            if name in fields
        ]

    def rebuild(self, parts: Sequence[Any]) -> user_aggregate:
        """Another value of this class, made without its constructor."""
        copy = object.__new__(type(self))
        for name, part in zip(self.aggregate_fields, parts, strict=True):
            setattr(copy, name, part.value if isinstance(part, Fixed) else part)
        object.__setattr__(copy, "_complete", True)
        return copy

    def same_kind(self, other: aggregate_value) -> bool:
        """Whether both are of one class."""
        return type(self) is type(other)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in self.aggregate_fields:
            raise errors.UnknownAttribute(type(self).__name__, name, list(self.aggregate_fields))
        if self._complete:
            operation, reason = f"assign to field '{name}'", "values of aggregates do not change"
            raise errors.InvalidOperation(operation, reason, "tl.aggregate_replace makes a copy")
        if _is_constexpr(self.aggregate_fields[name]) and isinstance(value, base_value):
            raise errors.NotConstexpr(f"field '{name}'", repr(value))
        object.__setattr__(self, name, constexpr(value) if isinstance(value, _LITERALS) else value)

    def __getattr__(self, name: str) -> Any:
        raise errors.UnknownAttribute(type(self).__name__, name, _public(type(self)))

    def __repr__(self) -> str:
        fields = ", ".join(map(_described, self.parts())) if self._complete else "..."
        return f"{type(self).__name__}({fields})"


def _described(part: object) -> str:
    part = part.value if isinstance(part, Fixed) else part
    return str(part.type) if isinstance(part, tensor) else repr(part)


def _public(cls: type) -> list[str]:
    inherited = dir(user_aggregate)
    names = [name for name in dir(cls) if name not in inherited]
    return [*names, *cast("type[user_aggregate]", cls).aggregate_fields]


def _is_constexpr(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].strip() == "constexpr"
    return annotation is constexpr


class _Method:
    """A function of the language in a class, bound to a value of the class."""

    def __init__(self, fn: DeviceFunction | constexpr_function[..., Any]) -> None:
        self.fn = fn

    def __get__(self, instance: object, owner: type) -> Any:
        return self.fn if instance is None else MethodType(self.fn, instance)


def _is_function(member: object) -> bool:
    return isinstance(member, DeviceFunction | constexpr_function | FunctionType)


def aggregate(cls: Class) -> Class:
    """Class decorator: values of the class exist in kernels.

    Fields hold tensors, constexprs, tuples, dtypes, functions and other aggregates. Methods are
    functions under `@jit`, or plain ones, which run at compile time; operators are methods too.
    Errors: InvalidValue for an argument that is no class, or that has neither annotated fields nor
    methods.
    """
    if not isinstance(cast("object", cls), type):
        raise errors.InvalidValue("aggregate", "cls", "a class", type(cls).__name__)
    fields = {**getattr(cls, "aggregate_fields", {}), **inspect.get_annotations(cls)}
    own = dict(vars(cls))
    if not fields and not any(map(_is_function, own.values())):
        expected = "a class with annotated fields or methods"
        raise errors.InvalidValue("aggregate", "cls", expected, cls.__name__)
    defaults = {name: own[name] for name in fields if name in own}
    methods = {
        name: _Method(cast("Any", member))
        for name, member in own.items()
        if isinstance(member, DeviceFunction | constexpr_function)
    }
    bases = (cls,) if issubclass(cls, user_aggregate) else (cls, user_aggregate)
    names = {"__qualname__": cls.__qualname__, "__module__": cls.__module__, "__doc__": cls.__doc__}
    made = cast("Any", type(cls)(cls.__name__, bases, {**names, **methods}))
    made.aggregate_fields = fields
    made.aggregate_defaults = {**getattr(cls, "aggregate_defaults", {}), **defaults}
    made.__init__ = _checked(made, methods.get("__init__", own.get("__init__")))
    return made


_aggregate = aggregate
"""Its name in Triton 3.6, as `triton.language.core._aggregate`."""


def _checked(cls: Any, constructor: Any) -> Callable[..., None]:
    """A constructor that raises an error unless all fields are set."""
    inherited = next((b for b in cls.__mro__[1:] if hasattr(b, "aggregate_constructor")), None)
    if constructor is None:
        constructor = _from_fields if inherited is None else inherited.aggregate_constructor
    cls.aggregate_constructor = constructor

    @wraps(constructor.fn if isinstance(constructor, _Method) else constructor)
    def construct(self: user_aggregate, *args: Any, **kwargs: Any) -> None:
        bound = constructor.__get__(self, type(self))
        bound(*args, **kwargs)
        # In a derived class the constructor of the base sets some fields only.
        if type(self) is not cls:
            return
        for name in cls.aggregate_fields:
            if name not in vars(self):
                reason = f"its constructor does not set '{name}'"
                raise errors.InvalidOperation(f"make a {cls.__name__}", reason)
        object.__setattr__(self, "_complete", True)

    return construct


def _from_fields(self: Any, *args: Any, **kwargs: Any) -> None:
    """The constructor of a class that defines none: one parameter for each field."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in self.aggregate_fields]
    bound = inspect.Signature(parameters).bind_partial(*args, **kwargs)
    for name, value in {**self.aggregate_defaults, **bound.arguments}.items():
        setattr(self, name, value)


def call_operator(name: str, left: object, *right: object) -> object:
    """`left + right` by the method of an aggregate, `__add__` or the `__radd__` of the right one.

    name: as in `Dispatcher.operator`. Errors: InvalidOperation if there is no such method.
    """
    if isinstance(left, user_aggregate):
        owner, method, operands = left, f"__{name}__", right
    else:
        reflected = _REFLECTED.get(name, f"r{name}")
        owner, method, operands = cast("Any", right[0]), f"__{reflected}__", (left,)
    function = getattr(cast("type", type(owner)), method, None)
    if function is None or function is getattr(object, method, None):
        operation = f"apply '{name}' to {owner!r}"
        raise errors.InvalidOperation(operation, f"its class has no method {method}")
    return function(owner, *operands)


_REFLECTED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def aggregate_replace(value: AnyAggregate, **fields: object) -> AnyAggregate:
    """A copy of an aggregate with other values in some of its fields. Errors: UnknownAttribute."""
    names = list(value.aggregate_fields)
    for name in fields:
        if name not in names:
            raise errors.UnknownAttribute(type(value).__name__, name, names)
    parts = [fields.get(name, part) for name, part in zip(names, value.parts(), strict=True)]
    return cast("AnyAggregate", value.rebuild(parts))
