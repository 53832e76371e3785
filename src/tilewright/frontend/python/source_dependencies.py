"""Dependencies of a kernel's tile IR: its source, the functions it calls, the globals it uses.

Names are resolved as in the kernel: through its closure, its module's globals and attributes of
modules. Functions written in the kernel language are followed; constants are recorded, so that a
later change of one is detected.
"""

from __future__ import annotations

import ast
import hashlib
from copy import deepcopy
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any, cast

from tilewright.frontend.python.captured_names import MISSING, Binding, Environment
from tilewright.frontend.python.function_source import FunctionSource, source_of
from tilewright.frontend.python.read_order import early_reads
from tilewright.frontend.python.syntax_parts import parts_of
from tilewright.ir.types import DType, PointerType, TileType
from tilewright.language import (
    Constexpr,
    DeviceFunction,
    constexpr_function,
    dtype,
    is_builtin,
    user_aggregate,
)
from tilewright.support import errors, settings
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

CONTAINERS = (list, dict)
"""Types of globals that may change in place."""
_CONSTANTS = (
    bool, int, float, str, bytes, type(None), tuple, *CONTAINERS, Constexpr, dtype, Enum,
)  # fmt: skip
# With functions: rebinding a helper's name changes the kernel as a constant does.
_RECORDED = (*_CONSTANTS, DeviceFunction, constexpr_function)
_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    DType,
    PointerType,
    TileType,
    dtype,
    Enum,
)


def _may_change(value: object) -> bool:
    return isinstance(value, (*CONTAINERS, Constexpr))


@dataclass(frozen=True, slots=True)
class UsedGlobal:
    """A constant or function from outside the kernel.

    original: the object that the name referred to; value: the same, or a copy of an object that may
    change in place.
    """

    name: str
    binding: Binding
    value: object
    original: object

    @staticmethod
    def of(name: str, binding: Binding, value: object) -> UsedGlobal:
        """A global with its current value."""
        kept = deepcopy(value) if _may_change(value) else value
        return UsedGlobal(name, binding, kept, value)

    def changed(self) -> bool:
        """Whether the name now refers to another value."""
        now = self.binding.read()
        # Identity first: fingerprints of functions read their source.
        return now is not self.value and _fingerprint(now) != _fingerprint(self.value)


_COMPILED_WITH = "__tilewright_compiled_with__"
"""Attribute of a function: the constants that it was first compiled with. They refer to the module,
and so to the function: a dictionary here would never release them."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """hash: sha256 in hexadecimal over all dependencies of a kernel's tile IR; uses: the constants
    that its callees read, with these functions."""

    hash: str
    used: tuple[UsedGlobal, ...]
    uses: tuple[tuple[FunctionType, UsedGlobal], ...] = ()

    def refuse_conflicts(self) -> None:
        """Check that no callee was compiled by another kernel with another value of a constant.
        Errors: ConflictingGlobal."""
        for function, used in self.uses:
            key = (id(used.binding.holder), used.binding.key)
            known: dict[tuple[int, str], UsedGlobal] = vars(function).setdefault(_COMPILED_WITH, {})
            first = known.setdefault(key, used)
            if first.changed():
                now = first.binding.read()
                raise errors.ConflictingGlobal(first.name, function.__name__, first.value, now)

    def changed(self) -> tuple[UsedGlobal, ...]:
        """The globals that have changed since."""
        return tuple(item for item in self.used if item.changed())


def dependencies(fn: DeviceFunction | constexpr_function[..., Any]) -> Dependencies:
    """The dependencies of a function, transitively. Raises SourceNotAvailable."""
    function = cast("FunctionType", fn.fn)
    collector = _Collector(_package(function))
    collector.function(function)
    used = tuple(collector.used.values())
    return Dependencies(collector.digest.hexdigest(), used, tuple(collector.uses))


class _Collector:
    """Walks functions depth first, in an order that depends on their text only.

    package: the kernel's, whose Python functions are dependencies.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self.digest = hashlib.sha256()
        self.used: dict[tuple[int, str], UsedGlobal] = {}
        self.uses: list[tuple[FunctionType, UsedGlobal]] = []
        self._seen: dict[FunctionType, int] = {}

    @nested
    def function(self, fn: FunctionType) -> None:
        """Add the text of one function and all that it refers to."""
        number = self._seen.get(fn)
        if number is not None:
            # A function met twice adds its number only, which also ends recursion.
            self._add("again", str(number))
            return
        self._seen[fn] = len(self._seen)
        source = source_of(fn)
        self._add("def", source.dedented_text)
        # Line tables hold line numbers. Not names of files: those of notebooks change every day.
        if settings().compilation.line_info:
            self._add("line", str(fn.__code__.co_firstlineno))
        # Defaults are evaluated once, at the definition: equal text may have given other values.
        for default in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()):
            self._add("default", _fingerprint(default))
            if isinstance(default, DeviceFunction | constexpr_function):
                self.function(default.fn)
        environment = Environment(fn)
        for path in _references(source, fn):
            self._reference(fn, environment, path)

    def _reference(self, fn: FunctionType, environment: Environment, path: tuple[str, ...]) -> None:
        binding = environment.binding(path[0])
        if binding is None:
            return
        value: object = binding.read()
        of_language = False
        for attribute in path[1:]:
            if not isinstance(value, ModuleType | type):
                return
            of_language = of_language or value.__name__.startswith(("tilewright.", "triton"))
            # modules may load attributes at the first use, and only then hold them
            getattr(value, attribute, None)
            binding = Binding(value if isinstance(value, type) else vars(value), attribute)
            value = binding.read()
        if value is MISSING or isinstance(value, ModuleType):
            return
        name = ".".join(path)
        self._add(name, _fingerprint(value))
        if isinstance(value, DeviceFunction | constexpr_function):
            self.function(value.fn)
        elif isinstance(value, type) and issubclass(value, user_aggregate):
            self._aggregate(value)
        elif isinstance(value, FunctionType) and not of_language and not is_builtin(value):
            self._python_function(value)
        # The language does not change at run time; other objects are no constants of a kernel.
        if of_language or not isinstance(value, _RECORDED):
            return
        key, used = (
            (id(binding.holder), binding.key),
            UsedGlobal.of(name, binding, cast("object", value)),
        )
        self.used[key] = used
        if isinstance(value, _CONSTANTS) and self._seen[fn]:
            self.uses.append((fn, used))

    def _aggregate(self, cls: type[user_aggregate]) -> None:
        """The fields and methods of a class, and of those that it is derived from."""
        self._add("fields", repr(sorted(cls.aggregate_fields)))
        for owner in cls.__mro__[: cls.__mro__.index(user_aggregate)]:
            for member in (getattr(owner, "aggregate_constructor", None), *vars(owner).values()):
                function = getattr(member, "fn", member)
                if isinstance(function, DeviceFunction | constexpr_function):
                    self.function(function.fn)
                elif isinstance(function, FunctionType):
                    self._python_function(function)

    def _python_function(self, fn: FunctionType) -> None:
        """A function without @jit, which runs at compile time: its text, if available."""
        # Installed libraries do not change while a kernel is developed.
        if _package(fn) != self._package:
            return
        try:
            self.function(fn)
        except errors.SourceNotAvailable:
            self._add("code", fn.__code__.co_code.hex())

    def _add(self, label: str, text: str) -> None:
        # The length separates fields: no text can imitate the end of another.
        self.digest.update(f"{label}\0{len(text)}\0{text}\0".encode())


def _package(fn: FunctionType) -> str:
    return str(fn.__module__ or "").partition(".")[0]


def _references(source: FunctionSource, fn: FunctionType) -> tuple[tuple[str, ...], ...]:
    """The outside names in a function, with attribute paths, sorted."""
    key = ("references", source.tree)
    references = source.facts.get(key)
    if references is None:
        local = frozenset(fn.__code__.co_varnames) | frozenset(fn.__code__.co_cellvars)
        local -= early_reads(source)
        references = tuple(sorted(p for p in _paths(source.tree) if p[0] not in local))
        source.facts[key] = references
    return cast("tuple[tuple[str, ...], ...]", references)


def _paths(tree: ast.FunctionDef) -> set[tuple[str, ...]]:
    paths: set[tuple[str, ...]] = set()
    # Not the defaults of parameters, which are evaluated at the definition.
    stack: list[ast.AST] = [*tree.body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name | ast.Attribute):
            paths.add(_path(node))
        stack += parts_of(node)
    return paths - {()}


def _path(node: ast.AST) -> tuple[str, ...]:
    """`a.b.c` as ('a', 'b', 'c'); () for anything else."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else ()


def _fingerprint(value: object) -> str:
    """A text that is different for values that a kernel treats differently."""
    if isinstance(value, Constexpr):
        return f"constexpr {_fingerprint(cast('object', value.value))}"
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return f"{{{', '.join(f'{_fingerprint(k)}: {_fingerprint(v)}' for k, v in items)}}}"
    if isinstance(value, list):
        return f"list {_fingerprint(tuple(cast('list[object]', value)))}"
    if isinstance(value, tuple):
        return f"({', '.join(_fingerprint(item) for item in cast('tuple[object, ...]', value))})"
    if isinstance(value, DeviceFunction | constexpr_function):
        # By text: a helper that is defined again with the same body changes nothing.
        return f"function {source_of(value.fn).dedented_text}"
    owner = value if callable(value) else type(value)
    return f"{getattr(owner, '__module__', '')}.{getattr(owner, '__qualname__', '')}"
