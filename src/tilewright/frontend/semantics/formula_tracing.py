"""Tracing of formulas: Python operators and language functions on tensors emit ops.

def sigmoid(x: Any) -> Any:
    return 1 / (1 + tl.exp(-x))

evaluate(ctx, lambda: sigmoid(x))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tilewright import language
from tilewright.frontend.semantics.numeric_operators import binary, compare, unary
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import call, call_builtin, implements
from tilewright.ir.types import element_of
from tilewright.language import (
    ACTIVE,
    COMPARISON_OPERATORS,
    UNARY_OPERATORS,
    DeviceFunction,
    tensor,
)
from tilewright.support import attribute_late

R = TypeVar("R")


class _Tracer:
    """A dispatcher of tensor operators that emits their ops directly, without a syntax tree."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    def call(
        self, stub: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        """A language function."""
        return call_builtin(self.ctx, stub, args, kwargs)

    def operator(self, name: str, args: tuple[Any, ...]) -> object:
        """A Python operator."""
        if name in COMPARISON_OPERATORS:
            return compare(self.ctx, name, *args)
        if name in UNARY_OPERATORS:
            return unary(self.ctx, name, *args)
        return binary(self.ctx, name, *args)

    def call_function(
        self, function: DeviceFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        """A function written in the language."""
        return call(self.ctx, function, args, kwargs)


@implements(language.library_functions.rarely)
def rarely(ctx: Context, condition: tensor, common: tensor, slow: Any, *args: tensor) -> tensor:
    values = tuple(value.handle for value in args)
    types = [element_of(value.type) for value in values]
    block = ctx.region(types, lambda arguments: [slow(*arguments)])
    # at the first use: few kernels have a rare form
    rare = attribute_late("tilewright.transforms.expand.rare_branch:RareOp")
    return ctx.tensor(rare(condition.handle, common.handle, values, block))


def evaluate(ctx: Context, formula: Callable[[], R]) -> R:
    """The result of a formula, whose operators and calls emit ops through `ctx`."""
    # Operators of `tensor` have no context of their own: they find the dispatcher in this variable.
    token = ACTIVE.set(_Tracer(ctx))
    try:
        return formula()
    finally:
        ACTIVE.reset(token)
