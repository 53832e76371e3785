"""Python's builtins with their meaning in kernels: `range`, `min`, `len`, `isinstance` and so on.

A kernel function runs with its own closure and globals. Its builtins differ, and so does the code
where Python's constructs do, see `rewrite_source`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any, cast

from tilewright import language
from tilewright.frontend.python import at_compile_time, refuse_reduction
from tilewright.frontend.semantics import joined
from tilewright.language import Constexpr, base_value, tensor, unwrap, unwrap_deep
from tilewright.support import errors

Globals = dict[str, Any]


def _range(*bounds: Any, **hints: Any) -> language.range:
    """A loop over scalars, as in compiled code, instead of Python's integers."""
    if not 1 <= len(bounds) <= 3:
        raise errors.ArgumentCount("range", "1 to 3", len(bounds))
    return language.range(*bounds, **hints)


def _extreme(python: Callable[..., Any], stub: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1:
            refuse_reduction(python.__name__, args[0])
        # One argument is an iterable of operands, as for Python's min and max.
        operands = tuple(args[0]) if len(args) == 1 else args
        if not any(isinstance(x, tensor) for x in operands):
            plain = [unwrap(x) for x in operands]
            return joined(python(*plain, **kwargs), plain)
        result = operands[0]
        for operand in operands[1:]:
            result = stub(result, operand)
        return result

    return apply


def _abs(x: Any) -> Any:
    return language.abs(x) if isinstance(x, tensor) else builtins.abs(unwrap(x))


def _len(x: Any) -> int:
    # Ranges of the language have no __len__, as their bounds may be tensors.
    if isinstance(x, language.range | language.static_range):
        return builtins.len(list(x))
    if not isinstance(x, tensor):
        return builtins.len(x)
    if not x.shape:
        raise errors.InvalidOperation("take the length of a tensor", "a scalar has no length")
    return int(x.shape[0])


def _isinstance(value: Any, classes: Any) -> bool:
    """`isinstance` for kernels: a literal counts as a constexpr, and a constexpr as its value."""
    kinds = _python_types(unwrap_deep(classes))
    # A kernel may test for the Python type of a constant or for `tl.constexpr`; both hold.
    if builtins.isinstance(value, kinds) or builtins.isinstance(unwrap(value), kinds):
        return True
    is_value = isinstance(value, base_value | tuple)
    # Tuples are not constants of the language, whatever they contain.
    return not is_value and builtins.isinstance(Constexpr(value), kinds)


def _python_types(classes: Any) -> Any:
    """Classes, with Python's types in place of the functions that replace them in kernels."""
    if isinstance(classes, tuple):
        return tuple(_python_types(kind) for kind in cast("tuple[Any, ...]", classes))
    # `int` in a kernel may be the override: the class that it replaces is meant
    name = next((name for name, function in OVERRIDES.items() if function is classes), None)
    return classes if name is None else getattr(builtins, name)


def _on_host_values(python: Callable[..., Any]) -> Callable[..., Any]:
    """A function that receives constexprs as their values."""

    def apply(*args: Any, **kwargs: Any) -> Any:
        named = {name: unwrap_deep(value) for name, value in kwargs.items()}
        return python(*map(unwrap_deep, args), **named)

    return apply


def _at_compile_time(python: Callable[..., Any]) -> Callable[..., Any]:
    """A function that accepts compile-time values only. Errors: NotConstexpr."""
    return lambda *args, **kwargs: unwrap(at_compile_time(python, args, kwargs))


def _sum(items: Any, *args: Any, **kwargs: Any) -> Any:
    refuse_reduction("sum", items)
    return builtins.sum(items, *args, **kwargs)


def _reversed(items: Any) -> Any:
    return tuple(reversed(tuple(items)))


_OF_HOST_VALUES = (builtins.all, builtins.any, builtins.repr, builtins.str)
_OF_CONSTANTS = (builtins.divmod, builtins.pow, builtins.round, builtins.sorted)

OVERRIDES: dict[str, Callable[..., Any]] = {
    "abs": _abs,
    "isinstance": _isinstance,
    "len": _len,
    "max": _extreme(builtins.max, language.maximum),
    "min": _extreme(builtins.min, language.minimum),
    "range": _range,
    "reversed": _reversed,
    "sum": _sum,
    **{function.__name__: _on_host_values(function) for function in _OF_HOST_VALUES},
    **{function.__name__: _at_compile_time(function) for function in _OF_CONSTANTS},
}


class Namespaces:
    """Builds functions with the overrides; one copy of each module's globals per launch."""

    def __init__(self, more: Mapping[str, object]) -> None:
        self._globals: dict[int, Globals] = {}
        self._builtins: dict[str, object] = {**vars(builtins), **OVERRIDES, **more}

    def bind(self, fn: FunctionType, code: CodeType) -> FunctionType:
        """A function with other code, but the globals, closure and defaults of `fn`."""
        # By identity: equal dictionaries of two modules must not share a copy.
        key = id(fn.__globals__)
        if key not in self._globals:
            # A copy: the module itself must keep Python's own builtins.
            self._globals[key] = fn.__globals__ | {"__builtins__": self._builtins}
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        # In the order of the new code, which may list its free variables differently.
        closure = tuple(cells[name] for name in code.co_freevars)
        bound = FunctionType(code, self._globals[key], fn.__name__, fn.__defaults__, closure)
        bound.__kwdefaults__ = fn.__kwdefaults__
        return bound
