"""One variant of a kernel: what a launch needs once its arguments have decided the variant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NoReturn

from tilewright.compiler import CompiledKernel
from tilewright.frontend.python import ArgSpec, Dependencies, UsedGlobal
from tilewright.runtime.specialize import Key, Spec, TupleKey
from tilewright.support import errors

Pick = Callable[[Sequence[Any]], Sequence[Any]]
GlobalCheck = tuple[Callable[[str], object], str, object]


class Variant:
    """A loaded kernel and how its run-time values are picked from all arguments of a launch.

    globals: how to read each global that the code relies on, and what it must be.
    """

    __slots__ = ("_dependencies", "globals", "kernel", "launch", "pick")

    def __init__(
        self, kernel: CompiledKernel, keys: Sequence[Key], dependencies: Dependencies
    ) -> None:
        self.kernel = kernel
        self.launch = kernel.launcher.launch
        self.pick = picker(keys)
        self.globals: tuple[GlobalCheck, ...] = tuple(map(_check, dependencies.used))
        self._dependencies = dependencies

    def check_globals(self) -> None:
        """Raise ChangedGlobal if a global has another value than when the kernel was compiled."""
        for used in self._dependencies.changed():
            _raise_changed(used, self.kernel.name)


def _check(used: UsedGlobal) -> GlobalCheck:
    place = used.place
    if isinstance(place.holder, dict):
        return place.holder.get, place.key, used.value
    return lambda _name: place.read(), place.key, used.value


def _raise_changed(used: UsedGlobal, kernel: str) -> NoReturn:
    raise errors.ChangedGlobal(used.name, kernel, used.value, used.place.read())


def picker(keys: Sequence[Key]) -> Pick:
    """Picks the run-time values of a launch; tuples are flattened."""
    if any(isinstance(key, TupleKey) for key in keys):
        return lambda values: _flat(keys, values)
    indices = [i for i, key in enumerate(keys) if isinstance(key, Spec)]
    if len(indices) > 1:
        return itemgetter(*indices)
    return lambda values: [values[i] for i in indices]


def _flat(keys: Sequence[Key], values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for key, value in zip(keys, values, strict=True):
        if isinstance(key, TupleKey):
            found += _flat(key[1:], value)  # pyright: ignore[reportArgumentType]
        elif isinstance(key, Spec):
            found.append(value)
    return found


def arg_spec(name: str, key: Key, value: object) -> ArgSpec:
    """An argument in the words of the front end."""
    if isinstance(key, Spec):
        return ArgSpec(name, "value", key.type, facts=key.facts())
    if isinstance(key, TupleKey):
        kind, *keys = key
        items = [
            arg_spec(f"{name}_{i}", k, v)  # pyright: ignore[reportArgumentType]
            for i, (k, v) in enumerate(zip(keys, value, strict=True))  # pyright: ignore
        ]
        return ArgSpec(name, "tuple", value=kind, items=tuple(items))
    return ArgSpec(name, "constexpr", value=value)
