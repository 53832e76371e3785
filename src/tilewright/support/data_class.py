"""`dataclass` of the standard library, with methods that are written at their first use.

The standard decorator compiles up to six functions for each class, mostly for classes without an
instance in the process (ADR 0056). Here a class gets closures at once and its `__init__` at its
first instance. `fields`, `replace`, `asdict` and subclasses by the standard decorator work. Type
checkers see the standard decorator (`data_class.pyi`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType, MemberDescriptorType
from typing import Any, NamedTuple, cast

from tilewright.support.init_at_first_use import InitAtFirstUse
from tilewright.support.lock_free_property import cached_property

_OWN = "__declared_fields__"
_NOT_GIVEN = object()


class _Declared(NamedTuple):
    """A field. assigned: the value in the class body, or MISSING"""

    annotation: object
    assigned: Any
    kw_only: bool

    @property
    def default(self) -> Any:
        """The default; MISSING without one, or with a factory."""
        is_field = isinstance(self.assigned, dataclasses.Field)
        return self.assigned.default if is_field else self.assigned

    @property
    def factory(self) -> Any:
        """The factory; MISSING without one."""
        is_field = isinstance(self.assigned, dataclasses.Field)
        return self.assigned.default_factory if is_field else dataclasses.MISSING

    def _option(self, name: str) -> bool:
        assigned: object = self.assigned
        is_field = isinstance(assigned, dataclasses.Field)
        return not is_field or getattr(cast("object", assigned), name)

    def as_standard(self) -> Any:
        """The value to assign in the body of a class for the standard decorator."""
        if not self.kw_only:
            return self.assigned
        field: Any = dataclasses.field(
            kw_only=True, repr=self.shown, init=self.given, compare=self.compared
        )
        field.default, field.default_factory = self.default, self.factory
        return field

    @property
    def shown(self) -> bool:
        """Whether the field is part of the `repr`."""
        return self._option("repr")

    @property
    def given(self) -> bool:
        """Whether the field is a parameter of the constructor."""
        return self._option("init")

    @property
    def compared(self) -> bool:
        """Whether the field is part of comparisons and the hash."""
        return self._option("compare")


_Fields = Mapping[str, _Declared]


def dataclass(
    cls: type | None = None,
    /,
    *,
    init: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """`dataclasses.dataclass` without order, InitVar, and fields that are compared, not hashed."""

    def processed(cls: type) -> type:
        fields = _fields_of(cls, kw_only)
        methods = _methods(fields, init, eq, frozen, slots)
        own = {n: method for n, method in methods.items() if cls.__dict__.get(n) is None}
        own[_OWN] = MappingProxyType(fields)
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            own[name] = _Description(name, fields, frozen)
        if slots:
            return _with_slots(cls, fields, own)
        for name, declared in fields.items():
            if isinstance(cls.__dict__.get(name), dataclasses.Field):
                delattr(cls, name)
                if declared.default is not dataclasses.MISSING:
                    own[name] = declared.default
        for name, value in own.items():
            setattr(cls, name, value)
        return cls

    return processed if cls is None else processed(cls)


def _fields_of(cls: type, kw_only: bool) -> dict[str, _Declared]:
    """The fields of the bases, then the own ones."""
    fields: dict[str, _Declared] = {}
    for base in cls.__mro__[:0:-1]:
        fields.update(base.__dict__.get(_OWN, {}))
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():
        if "ClassVar" not in str(annotation):
            assigned = cls.__dict__.get(name, dataclasses.MISSING)
            by_name = getattr(assigned, "kw_only", dataclasses.MISSING) is True
            fields[name] = _Declared(annotation, assigned, kw_only or by_name)
    return fields


def _with_slots(cls: type, fields: _Fields, own: dict[str, Any]) -> type:
    """A new class like this one, since a class cannot get slots later."""
    inherited = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    kept: dict[str, Any] = {k: v for k, v in cls.__dict__.items() if k not in fields}
    namespace = kept | own
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace["__slots__"] = tuple(name for name in fields if name not in inherited)
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _methods(fields: _Fields, init: bool, eq: bool, frozen: bool, slots: bool) -> dict[str, Any]:
    names = tuple(fields)
    by_position = tuple(n for n, field in fields.items() if field.given and not field.kw_only)
    methods: dict[str, Any] = {"__match_args__": by_position, "__repr__": _repr_of(fields)}
    if init:
        methods["__init__"] = InitAtFirstUse(lambda cls: _init_of(cls, fields, frozen))
    if eq:
        values = _values_of(tuple(n for n, field in fields.items() if field.compared))
        methods["__eq__"] = _equality(values)
        methods["__hash__"] = _hash_of(values) if frozen else None
    if frozen:
        methods["__setattr__"], methods["__delattr__"] = _refusals(names)
    if frozen and slots:
        methods["__getstate__"], methods["__setstate__"] = _state, _restore
    return methods


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _equality(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    def equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal


def _hash_of(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _repr_of(fields: _Fields) -> Callable[[Any], str]:
    def text(self: Any) -> str:
        shown = [f"{n}={getattr(self, n)!r}" for n, declared in fields.items() if declared.shown]
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    return text


def _refusals(names: tuple[str, ...]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Methods that refuse to set and delete fields; a subclass that is no data class may add
    others.
    """

    def set_one(self: Any, name: str, value: object) -> None:
        if name in names or _OWN in type(self).__dict__:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def delete_one(self: Any, name: str) -> None:
        if name in names or _OWN in type(self).__dict__:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    return set_one, delete_one


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _init_of(cls: type, fields: _Fields, frozen: bool) -> Callable[..., None]:
    scope: dict[str, Any] = {"_NOT_GIVEN": _NOT_GIVEN, "_set": object.__setattr__}
    parameters: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for name, declared in fields.items():
        if declared.given:
            (by_name if declared.kw_only else parameters).append(_parameter(name, declared, scope))
        body.append(_assignment(name, declared, scope, getattr(cls, name, None), frozen))
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    listed = ", ".join(["self", *parameters, *(["*", *by_name] if by_name else [])])
    text = f"def __init__({listed}):\n " + "\n ".join(body or ["pass"])
    exec(text, scope)  # noqa: S102 -- as the standard decorator does
    init = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {name: one.annotation for name, one in fields.items()}
    return init


def _parameter(name: str, declared: _Declared, scope: dict[str, Any]) -> str:
    """The text of a parameter; its default goes into the scope."""
    if declared.factory is not dataclasses.MISSING:
        return f"{name}=_NOT_GIVEN"
    if declared.default is dataclasses.MISSING:
        return name
    scope[f"_default_{name}"] = declared.default
    return f"{name}=_default_{name}"


def _assignment(
    name: str, declared: _Declared, scope: dict[str, Any], slot: object, frozen: bool
) -> str:
    """The statement that sets a field."""
    value = name
    if declared.factory is not dataclasses.MISSING:
        scope[f"_make_{name}"] = declared.factory
        value = f"_make_{name}()"
        if declared.given:
            value += f" if {name} is _NOT_GIVEN else {name}"
    elif not declared.given:
        scope[f"_default_{name}"] = declared.default
        value = f"_default_{name}"
    if not frozen:
        return f"self.{name} = {value}"
    if not isinstance(slot, MemberDescriptorType):
        return f"_set(self, {name!r}, {value})"
    scope[f"_set_{name}"] = slot.__set__
    return f"_set_{name}(self, {value})"


class _Description:
    """`__dataclass_fields__` or `__dataclass_params__` of a class, computed at the first use.

    The standard decorator computes them, for a class without methods.
    """

    def __init__(self, name: str, fields: _Fields, frozen: bool) -> None:
        self._name = name
        self._fields = fields
        self._frozen = frozen

    def __get__(self, instance: object, owner: type) -> Any:
        return getattr(self._plain, self._name)

    @cached_property
    def _plain(self) -> type:
        namespace: dict[str, Any] = {
            name: declared.as_standard()
            for name, declared in self._fields.items()
            if declared.kw_only or declared.assigned is not dataclasses.MISSING
        }
        namespace["__annotations__"] = {n: one.annotation for n, one in self._fields.items()}
        namespace["__doc__"] = "Fields."  # if empty, the decorator writes a signature
        plain = type("Plain", (), namespace)
        plain = dataclasses.dataclass(init=False, repr=False, eq=False)(plain)
        # not an option of the decorator, which would compile two functions for it
        cast("Any", plain).__dataclass_params__.frozen = self._frozen
        return plain
