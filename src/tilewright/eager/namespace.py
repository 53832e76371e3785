"""Python's own functions as kernels mean them: `range`, `min`, `max`, `len`, `abs`, `isinstance`.

A kernel function runs with its own code object, closure and globals, so that debuggers and
tracebacks show the user's file; only its builtins differ.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, cast

from tilewright import language
from tilewright.language import base_value, constexpr, tensor, unwrap
from tilewright.support import errors

Globals = dict[str, Any]


def _range(*bounds: Any) -> language.range:
    """A loop over scalars, as the compiler sees it, and not over Python's integers."""
    return language.range(*bounds)


def _extreme(python: Callable[..., Any], stub: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(*args: Any, **kwargs: Any) -> Any:
        operands = tuple(args[0]) if len(args) == 1 else args
        if not any(isinstance(x, tensor) for x in operands):
            return python(*[unwrap(x) for x in operands], **kwargs)
        result = operands[0]
        for operand in operands[1:]:
            result = stub(result, operand)
        return result

    return apply


def _abs(x: Any) -> Any:
    return language.abs(x) if isinstance(x, tensor) else builtins.abs(unwrap(x))


def _len(x: Any) -> int:
    if not isinstance(x, tensor):
        return builtins.len(x)
    if not x.shape:
        raise errors.InvalidOperation("take the length of a tensor", "a scalar has no length")
    return int(x.shape[0])


def _isinstance(value: Any, classes: Any) -> bool:
    """A literal counts as a constexpr, and a constexpr as the value inside."""
    kinds = cast("Sequence[type]", classes if isinstance(classes, tuple) else (classes,))
    if builtins.isinstance(value, tuple(kinds)):
        return True
    if isinstance(value, constexpr):
        return builtins.isinstance(value.value, tuple(kinds))
    return constexpr in kinds and not isinstance(value, base_value | tuple)


OVERRIDES: dict[str, Callable[..., Any]] = {
    "abs": _abs,
    "isinstance": _isinstance,
    "len": _len,
    "max": _extreme(builtins.max, language.maximum),
    "min": _extreme(builtins.min, language.minimum),
    "range": _range,
}


class Namespaces:
    """Makes functions that see the overrides; one copy of each module's globals per launch."""

    def __init__(self) -> None:
        self._globals: dict[int, Globals] = {}
        self._builtins = vars(builtins) | OVERRIDES

    def bind(self, fn: FunctionType) -> FunctionType:
        """`fn` with the same code, closure and defaults."""
        key = id(fn.__globals__)
        if key not in self._globals:
            self._globals[key] = fn.__globals__ | {"__builtins__": self._builtins}
        bound = FunctionType(
            fn.__code__, self._globals[key], fn.__name__, fn.__defaults__, fn.__closure__
        )
        bound.__kwdefaults__ = fn.__kwdefaults__
        return bound
