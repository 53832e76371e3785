"""One variant of a kernel: what a launch needs once its arguments have decided the variant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, cast

from tilewright.compiler import CompiledKernel
from tilewright.frontend.python import ArgSpec, Dependencies, UsedGlobal
from tilewright.ir.types import PointerType, i32
from tilewright.runtime.arguments.kernel_parameters import KernelParam
from tilewright.runtime.arguments.specialization import Key, Spec, TupleKey
from tilewright.support import errors

Pick = Callable[[Sequence[Any]], Sequence[Any]]
GlobalCheck = tuple[Callable[[Any], object], object, object]
"""A launch asks `get(name)`, which must be what it was: `value`."""


class Globals:
    """What code relies on outside of it; shared by the variants of a kernel.

    checks: how to read each global, and what it must be.
    """

    __slots__ = ("checks", "dependencies")

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.checks: tuple[GlobalCheck, ...] = tuple(map(_check, dependencies.used))


class Variant:
    """A loaded kernel and how its run-time values are picked from all arguments of a launch.

    globals: see `Globals.checks`; pairs: of run-time arguments that must not overlap; stamp: tells
    when it was launched last, by the clock of `Variants`.
    """

    __slots__ = ("_dependencies", "globals", "kernel", "launch", "pairs", "pick", "stamp")

    def __init__(
        self, kernel: CompiledKernel, keys: Sequence[Key], globals: Globals, stamp: int
    ) -> None:
        self.kernel = kernel
        self.pairs = kernel.pairs
        self.launch = kernel.launcher.launch
        self.pick = picker(keys)
        self.globals = globals.checks
        self.stamp = stamp
        self._dependencies = globals.dependencies

    def check_globals(self) -> None:
        """Raise ChangedGlobal if a global has another value than when the kernel was compiled."""
        check_globals(self.kernel.src.name, self._dependencies)


def check_globals(kernel: str, dependencies: Dependencies) -> None:
    """Raise ChangedGlobal if a global of a kernel has changed since `dependencies` were found."""
    for used in dependencies.changed():
        raise errors.ChangedGlobal(used.name, kernel, used.value, used.place.read())


def _check(used: UsedGlobal) -> GlobalCheck:
    place = used.place
    if isinstance(place.holder, dict):
        return place.holder.get, place.key, used.value
    return lambda _name: place.read(), place.key, used.value


def picker(keys: Sequence[Key]) -> Pick:
    """Picks the run-time values of a launch; tuples are flattened."""
    if any(isinstance(key, TupleKey) for key in keys):
        return lambda values: [value for _, value in run_time_pairs(keys, values)]
    indices = [i for i, key in enumerate(keys) if isinstance(key, Spec)]
    if len(indices) > 1:
        return itemgetter(*indices)
    return lambda values: [values[i] for i in indices]


def run_time_pairs(keys: Sequence[Key], items: Sequence[Any]) -> Iterator[tuple[Spec, Any]]:
    """The run-time arguments, tuples flattened, each with what `items` has in its place."""
    for key, item in zip(keys, items, strict=True):
        if isinstance(key, TupleKey):
            yield from run_time_pairs(key.items, item)
        elif isinstance(key, Spec):
            yield key, item


def arg_spec(param: KernelParam, key: Key, value: object) -> ArgSpec:
    """An argument in the words of the front end."""
    if param.is_constexpr or param.is_keywords:
        return ArgSpec(param.name, "constexpr", value=value)
    return _arg_spec(param.name, key, value, param.const)


def _arg_spec(name: str, key: Key, value: object, const: bool) -> ArgSpec:
    if isinstance(key, Spec):
        type_ = key.type
        if const and isinstance(type_, PointerType):
            type_ = PointerType(type_.element, const=True)
        return ArgSpec(name, "value", type_, facts=key.facts())
    if isinstance(key, TupleKey):
        pairs = zip(key.items, cast("Sequence[object]", value), strict=True)
        items = [_arg_spec(f"{name}_{i}", k, v, const) for i, (k, v) in enumerate(pairs)]
        return ArgSpec(name, "tuple", value=key.kind, items=tuple(items))
    type_ = i32 if isinstance(key, int) else None
    return ArgSpec(name, "constexpr", type_, value)
