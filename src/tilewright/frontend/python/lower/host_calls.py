"""Calls of plain Python functions at compile time, on values of the kernel.

    def scaled(x, factor):             # no @jit
        return x * factor              # emits `arith.mul` where the kernel calls it

Python evaluates a function's operations on compile-time values. Its operators and language
functions on run-time values emit ops of the kernel. It cannot branch on run-time values, since it
runs once, when the kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from tilewright.frontend import semantics
from tilewright.frontend.python.lower.function_frame import Session
from tilewright.frontend.python.lower.language_values import on_host, wrap
from tilewright.frontend.python.lower.truth_values import apply_operator, compare_values
from tilewright.language import (
    ACTIVE,
    BINARY_OPERATORS,
    COMPARISON_OPERATORS,
    UNARY_OPERATORS,
    DeviceFunction,
)
from tilewright.support import errors


def call_python(
    session: Session,
    callee: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> object:
    """The result of a Python function as a language value; its exceptions become user errors."""
    name = str(getattr(callee, "__name__", callee))
    token = ACTIVE.set(_CompileTime(session, name))
    loc = session.ctx.loc
    try:
        return wrap(on_host(f"evaluate {name}()", lambda: callee(*args, **kwargs)))
    finally:
        session.ctx.emitter.loc = loc
        ACTIVE.reset(token)


class _CompileTime:
    """A `language.Dispatcher`: emits the ops of a Python function that is called from a kernel."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name

    def call(
        self, stub: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        """The result of a language function."""
        named = {key: wrap(value) for key, value in kwargs.items()}
        return semantics.call_builtin(self._session.ctx, stub, tuple(map(wrap, args)), named)

    def operator(self, name: str, args: tuple[Any, ...]) -> object:
        """The result of a Python operator with a tensor among its operands."""
        ctx = self._session.ctx
        values = tuple(map(wrap, args))
        if name in BINARY_OPERATORS:
            return apply_operator(ctx, name, *values)
        if name in COMPARISON_OPERATORS:
            return compare_values(ctx, name, *values)
        if name in UNARY_OPERATORS:
            return semantics.unary(ctx, name, *values)
        if name == "getitem":
            return semantics.getitem(ctx, *values)
        self._refuse()

    def call_function(
        self, function: DeviceFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        """The result of a function written in the language."""
        ctx = self._session.ctx
        return ctx.functions.call(ctx, function, args, kwargs)

    def _refuse(self) -> NoReturn:
        operation = f"branch on a run-time value in the Python function '{self._name}'"
        reason = "it runs once, when the kernel is compiled"
        raise errors.InvalidOperation(operation, reason, "put @jit above it")
