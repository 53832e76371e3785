"""Compile-time iteration over tuples, strings, dictionaries, constant ranges."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping
from typing import cast

from tilewright.frontend.python.lower.function_frame import FunctionFrame
from tilewright.frontend.python.lower.language_values import describe, is_static, static_value, wrap
from tilewright.frontend.semantics import Context, check_step
from tilewright.language import base_value, constexpr, range, static_range, unwrap
from tilewright.support import errors


def iterate(frame: FunctionFrame, node: ast.expr, value: object) -> Iterable[object]:
    """The items of a compile-time value, as language values."""
    # Before unwrap: a range object of the language is no constexpr.
    if isinstance(value, range | static_range):
        return [constexpr(i) for i in constant_range(frame.at(node), value)]
    plain = cast("object", unwrap(value))
    if isinstance(plain, tuple | list | str | builtins.range | Mapping):
        return [wrap(item) for item in cast("Iterable[object]", plain)]
    if isinstance(value, base_value):
        instead = "loop over tl.range, or use a reduction such as tl.sum"
        frame.unsupported(node, "iterating over a tensor", instead)
    reason = f"{describe(value)} has no items"
    frame.fail(node, errors.InvalidOperation("iterate", reason, "loop over range or a tuple"))


def constant_range(ctx: Context, loop: range | static_range) -> builtins.range:
    """The indices of a range with constant bounds. Errors: NotConstexpr, InvalidValue."""
    bounds: list[int] = []
    for label, bound in (("start", loop.start), ("end", loop.end), ("step", loop.step)):
        if not is_static(bound):
            ctx.fail(errors.NotConstexpr, f"the {label} of this range", describe(bound))
        value = static_value(bound)
        if not isinstance(value, int):
            ctx.fail(errors.InvalidValue, "range", label, "an integer", describe(bound))
        bounds.append(value)
    # Before Python's range, whose own error for a step of 0 has no source line.
    check_step(ctx, bounds[2])
    return builtins.range(*bounds)
