"""`triton.language.core.builtin`: Python functions that kernels call at compile time.

    @builtin
    def is_known(value, _semantic=None):
        return isinstance(value, tl.constexpr)

The function is passed tensors, and compile-time values as constexprs. Language functions that it
calls become part of the kernel. `_semantic` is None: there is no MLIR builder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from tilewright.language import Constexpr, base_value


def builtin(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function callable by kernels at compile time."""

    @wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        named = {name: _known(value) for name, value in kwargs.items() if name != "_semantic"}
        return fn(*map(_known, args), **named)

    return called


def _known(value: Any) -> Any:
    """A compile-time value as a constexpr; tensors, and sequences of values, as they are."""
    is_language_value = isinstance(value, (base_value, Constexpr, tuple, list))
    return cast("Any", value) if is_language_value else Constexpr(value)
