"""The attributes of `triton.knobs`: descriptors on groups, and groups.

The value of a knob is the last assigned one, otherwise that of the environment, otherwise the
default. An assignment also writes the environment, for processes that are started later.

Programs replace a group by a copy, and restore it: `knobs.cache = knobs.cache.copy()`. Knobs that
are settings of this package, and hooks that it calls, are those of the active group; another group
holds its assignments until it becomes active.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Self

from tilewright.support import (
    HookChain,
    environment_flag,
    environment_text,
    errors,
    set_environment,
    settings,
)
from tilewright.support.asynchronous_exceptions import synchronous


class Env:
    """Assigned to a knob: use the value of the environment."""


env = Env()


class _Propagation:
    """on: whether assignments are written into the environment."""

    on = True


propagation = _Propagation()


def setenv(key: str, value: str | None) -> None:
    """Set an environment variable, or unset it, unless `propagate_env` is off."""
    if propagation.on:
        set_environment(key, value)


def toenv(val: object) -> tuple[str | None] | None:
    """The text of a value in the environment, in a tuple; None for a value that cannot be in it."""
    if isinstance(val, bool):
        return (str(int(val)),)
    if isinstance(val, str | int):
        return (str(val),)
    return (None,) if val is None else None


class env_base:
    """A knob: a descriptor on a group. key: its environment variable."""

    def __init__(self, key: str, default: object = None) -> None:
        self.key = key
        self.default = default
        self.name = ""
        self.no_effect_since = ""

    def __class_getitem__(cls, parameters: object) -> type[Self]:
        """The class itself, in annotations such as `env_class[CacheManager]`."""
        return cls

    def without_effect(self, since: str) -> Self:
        """Declare a knob without effect, which programs may set; `since`: the reason."""
        self.no_effect_since = since
        return self

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, group: base_knobs | None, owner: type | None = None) -> Any:
        if group is None:
            return self
        assigned = vars(group)
        return self.transform(assigned[self.name]) if self.name in assigned else self.get()

    def __set__(self, group: base_knobs, value: object) -> None:
        if isinstance(value, Env):
            self.__delete__(group)
            return
        self.assign(group, value)
        text = toenv(value)
        if text is not None:
            setenv(self.key, text[0])

    def __delete__(self, group: base_knobs) -> None:
        vars(group).pop(self.name, None)

    def assign(self, group: base_knobs, value: object) -> None:
        """Store a value."""
        vars(group)[self.name] = value

    def get(self) -> Any:
        """The value without assignments: a text."""
        return environment_text(self.key, self.default)  # pyright: ignore[reportArgumentType]

    def transform(self, val: Any) -> Any:
        """The value of the knob for an assigned value."""
        return val


class env_str(env_base):
    """A knob with a text."""


class env_opt_str(env_base):
    """A knob with a text, or None."""


class env_str_callable_default(env_base):
    """A knob with a text whose default is computed when it is read."""

    def __init__(self, key: str, default_factory: Callable[[], str]) -> None:
        super().__init__(key)
        self.default_factory = default_factory

    def get(self) -> Any:
        """The value without assignments."""
        text = environment_text(self.key)
        return self.default_factory() if text is None else text


class env_bool(env_base):
    """A knob that is on or off."""

    def __init__(self, key: str, default: bool | None = False) -> None:
        super().__init__(key, default)

    def get(self) -> Any:
        """The value without assignments. Errors: BadSetting."""
        return environment_flag(self.key, self.default)  # pyright: ignore[reportArgumentType]


class env_opt_bool(env_bool):
    """A knob that is on, off or None."""

    def __init__(self, key: str) -> None:
        super().__init__(key, None)


class env_int(env_base):
    """A knob with an integer."""

    def __init__(self, key: str, default: int = 0) -> None:
        super().__init__(key, default)

    def get(self) -> Any:
        """The value without assignments. Errors: BadSetting."""
        text = environment_text(self.key)
        try:
            return self.default if text is None else int(text)
        except synchronous(ValueError):
            raise errors.BadSetting(self.key, "an integer", text or "") from None


class env_class(env_base):
    """A knob with a class, "MODULE:CLASS" in the environment. type: the name of its base."""

    def __init__(self, key: str, type: str) -> None:
        super().__init__(key)
        self.type = type

    def get(self) -> Any:
        """The value without assignments, imported. Errors: BadSetting."""
        text = environment_text(self.key)
        if text is None:
            return None
        module, _, name = text.partition(":")
        expected = f"MODULE:CLASS of a class derived from {self.type}"
        if not name:
            raise errors.BadSetting(self.key, expected, text)
        found = getattr(importlib.import_module(module), name, None)
        bases = getattr(found, "__mro__", ())
        if self.type not in (base.__name__ for base in bases):
            raise errors.BadSetting(self.key, expected, text)
        return found


def _same(value: Any) -> Any:
    return value


class Shared(env_base):
    """A knob that is a setting of this package. to_triton, from_triton: convert its values."""

    def __init__(
        self,
        key: str,
        setting: str,
        to_triton: Callable[[Any], Any] = _same,
        from_triton: Callable[[Any], Any] = _same,
    ) -> None:
        super().__init__(key)
        group, _, self._setting = setting.partition(".")
        self._slot = setting
        self._settings: object = getattr(settings(), group)
        self._to_triton, self._from_triton = to_triton, from_triton

    @property
    def assigned(self) -> dict[str, Any]:
        """The assignments to settings of the same group."""
        return vars(self._settings)

    def __get__(self, group: base_knobs | None, owner: type | None = None) -> Any:
        if group is None:
            return self
        values, slot = self._place(group)
        return self._to_triton(values[slot]) if slot in values else self.get()

    def get(self) -> Any:
        """The value without assignments. Errors: BadSetting."""
        return self._to_triton(getattr(type(self._settings), self._setting).from_environment())

    def __delete__(self, group: base_knobs) -> None:
        values, slot = self._place(group)
        values.pop(slot, None)

    def assign(self, group: base_knobs, value: object) -> None:
        """Assign to the setting, if the group is active."""
        values, slot = self._place(group)
        values[slot] = None if value is None else self._from_triton(value)

    def _place(self, group: base_knobs) -> tuple[dict[str, Any], str]:
        active = group.is_active
        return (self.assigned, self._setting) if active else (vars(group), self._slot)

    def withdraw(self, group: base_knobs) -> None:
        """Copy the value of the setting into the group, which becomes inactive."""
        if self._setting in self.assigned:
            vars(group)[self._slot] = self.assigned.pop(self._setting)

    def apply(self, group: base_knobs) -> None:
        """Copy the value of the group, which becomes active, into the setting."""
        if self._slot in vars(group):
            self.assigned[self._setting] = vars(group).pop(self._slot)


class Hook:
    """A hook that this package calls. holder.attribute: stores that of the active group."""

    def __init__(self, holder: object, attribute: str) -> None:
        self._holder, self._attribute = holder, attribute

    def __get__(self, group: base_knobs | None, owner: type | None = None) -> Any:
        if group is None:
            return self
        if group.is_active:
            return getattr(self._holder, self._attribute)
        return vars(group).get(self._attribute)

    def __set__(self, group: base_knobs, value: Any) -> None:
        if group.is_active:
            setattr(self._holder, self._attribute, value)
        else:
            vars(group)[self._attribute] = value

    def withdraw(self, group: base_knobs) -> None:
        """As of a setting."""
        vars(group)[self._attribute] = getattr(self._holder, self._attribute)

    def apply(self, group: base_knobs) -> None:
        """As of a setting."""
        setattr(self._holder, self._attribute, vars(group).pop(self._attribute, None))


class Chain:
    """A chain of hooks that this package calls, shared by all groups; None is an empty one."""

    def __init__(self, chain: HookChain[...]) -> None:
        self._chain = chain

    def __get__(self, group: base_knobs | None, owner: type | None = None) -> Any:
        return self if group is None else self._chain

    def __set__(self, group: base_knobs, value: Any) -> None:
        single = [] if value is None else [value]
        self._chain[:] = list(value) if isinstance(value, HookChain) else single


class base_knobs:
    """A group of knobs."""

    @property
    def is_active(self) -> bool:
        """Whether the group is active."""
        return _active.get(type(self)) is self

    @property
    def knob_descriptors(self) -> dict[str, env_base]:
        """The knobs by name."""
        return {k: v for k, v in vars(type(self)).items() if isinstance(v, env_base)}

    @property
    def knobs(self) -> dict[str, Any]:
        """The values by name."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self) -> Self:
        """A group with the same assignments."""
        made = type(self)()
        if self.is_active:  # the values are restored after they have been copied
            for member in _in_effect(self):
                member.withdraw(self)
        vars(made).update(vars(self))
        if self.is_active:
            for member in _in_effect(self):
                member.apply(self)
        return made

    def reset(self) -> Self:
        """Drop all assignments."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @contextmanager
    def scope(self) -> Generator[None]:
        """A block after which assignments, hooks and environment are restored."""
        texts = {knob.key: environment_text(knob.key) for knob in self.knob_descriptors.values()}
        shared = [knob for knob in self.knob_descriptors.values() if isinstance(knob, Shared)]
        assigned = [knob.assigned for knob in shared if self.is_active]
        before = [(values, dict(values)) for values in (vars(self), *assigned)]
        members = vars(type(self)).items()
        hooks = {name: getattr(self, name) for name, hook in members if isinstance(hook, Hook)}
        try:
            yield
        finally:
            for name, hook in hooks.items():
                setattr(self, name, hook)
            # in place, since launches hold references to these dictionaries
            for values, old in before:
                values.clear()
                values.update(old)
            for key, text in texts.items():
                set_environment(key, text)


_active: dict[type[base_knobs], base_knobs] = {}


def activate(group: base_knobs) -> None:
    """Activate a group instead of another of its class."""
    before = _active.get(type(group))
    if before is group:
        return
    for member in _in_effect(group):
        if before is not None:
            member.withdraw(before)
    for member in _in_effect(group):
        member.apply(group)
    _active[type(group)] = group


def _in_effect(group: base_knobs) -> Iterator[Shared | Hook]:
    yield from (v for v in vars(type(group)).values() if isinstance(v, Shared | Hook))
