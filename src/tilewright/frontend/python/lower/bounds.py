"""Bounds of a run-time loop as operands of `cf.for`, whose step is positive.

A loop that counts down becomes one that counts up: `index = start - t` for t in [0, start - end).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import reduce

from tilewright.frontend import semantics
from tilewright.frontend.promotion import RESULTS, literal_dtype
from tilewright.frontend.python.lower.activation import Activation
from tilewright.frontend.python.lower.values import describe, is_static, static
from tilewright.ir import Value
from tilewright.ir.types import DType, i32, i64
from tilewright.language import range, tensor, type_of
from tilewright.support import errors


@dataclass(frozen=True, slots=True)
class Bounds:
    """Operands of the loop. start: where a loop that counts down begins, else None."""

    lower: Value
    upper: Value
    step: Value
    start: Value | None

    def index(self, act: Activation, node: ast.expr, counter: Value) -> tensor:
        """The value of Python's loop variable."""
        if self.start is None:
            return tensor(counter)
        return semantics.binary(act.at(node), "sub", tensor(self.start), tensor(counter))


def loop_bounds(act: Activation, node: ast.expr, loop: range) -> Bounds:
    """Emit the bounds of a loop in the type of its index: i32, or wider if a bound is."""
    parts = [
        _integer(act, node, label, bound)
        for label, bound in (("start", loop.start), ("end", loop.end), ("step", loop.step))
    ]
    step = parts[2]
    descending = isinstance(step, int) and step < 0
    if isinstance(step, int) and step == 0:
        act.fail(node, errors.InvalidValue("range", "step", "a number other than 0", 0))
    index = reduce(lambda a, b: RESULTS["add"][a, b], map(_dtype, parts), i32)
    if descending and not index.is_signed:
        index = i64
    ctx = act.at(node)
    dtype = type_of(index)
    start, end = (semantics.cast_to(ctx, part, dtype) for part in parts[:2])
    size = semantics.cast_to(ctx, -step if isinstance(step, int) and descending else step, dtype)
    if not descending:
        return Bounds(start.handle, end.handle, size.handle, None)
    span = semantics.binary(ctx, "sub", start, end)
    zero = semantics.cast_to(ctx, 0, dtype)
    return Bounds(zero.handle, span.handle, size.handle, start.handle)


def _integer(act: Activation, node: ast.expr, label: str, bound: object) -> tensor | int:
    """A bound, if it is an integer scalar."""
    if isinstance(bound, tensor):
        type_ = bound.handle.type
        if isinstance(type_, DType) and not type_.is_float:
            return bound
    elif is_static(bound):
        value = static(bound)
        if isinstance(value, int):
            return int(value)
    act.fail(node, errors.InvalidValue("range", label, "an integer scalar", describe(bound)))


def _dtype(part: tensor | int) -> DType:
    found = part.handle.type if isinstance(part, tensor) else literal_dtype(part)
    assert isinstance(found, DType)
    return found
