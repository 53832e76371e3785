"""Declarations and assignments: `float x[16] = 0;`, `x = y`, `*p += 1`, `c += a @ b`, `i++`."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.frontend.c import syntax
from tilewright.frontend.c.lower.declared_conversions import (
    converted,
    declared_type,
    with_constness_of,
)
from tilewright.frontend.c.lower.dereferences import store
from tilewright.frontend.c.lower.expressions import accumulate, read
from tilewright.frontend.c.lower.function_frame import (
    FunctionFrame,
    Unset,
    Variable,
    expression,
    statement,
)
from tilewright.frontend.c.lower.integer_promotion import apply_binary
from tilewright.ir.types import DType, TileType
from tilewright.language import constexpr, tensor, unwrap
from tilewright.support import errors


@statement(syntax.Declaration)
def declaration(frame: FunctionFrame, node: syntax.Declaration) -> None:
    """Declare variables, with or without initial values; a scalar fills a tile."""
    for item in node.variables:
        _declare(frame, item)


def _declare(frame: FunctionFrame, node: syntax.Variable) -> None:
    # Only the same block: an inner one may shadow, as in C.
    if node.name in frame.scopes[-1]:
        reason = "this block declares it already"
        frame.fail(node, errors.InvalidOperation(f"declare '{node.name}'", reason))
    type_ = declared_type(frame, node)
    fixed = node.type.is_fixed
    if node.value is None:
        if fixed:
            reason = "a constant needs its value where it is declared"
            frame.fail(node, errors.InvalidOperation(f"declare '{node.name}'", reason))
        frame.values[frame.declare(Variable(node.name, type_))] = Unset()
        return
    value = frame.expression(node.value)
    # The initial value may add `const` to a pointer's type.
    type_ = with_constness_of(type_, value)
    # A `const int` with a constant value may be an extent: its value is recorded.
    number = unwrap(value) if fixed and not isinstance(value, tensor) else None
    result = _initial(frame, node, value, type_)
    wrapped = None
    if isinstance(number, int) and isinstance(type_, DType) and type_.is_integer:
        wrapped = type_.wrap(number)
    variable = Variable(node.name, type_, fixed=fixed, number=wrapped)
    frame.set(frame.declare(variable), result)


def _initial(frame: FunctionFrame, node: syntax.Variable, value: object, type_: object) -> tensor:
    assert node.value is not None
    try:
        return converted(frame, node.value, value, type_)  # pyright: ignore[reportArgumentType]
    except errors.ShapeMismatch as problem:
        extents = list(type_.shape) if isinstance(type_, TileType) else []
        what = f"a tile of extents {extents}" if extents else "no tile"
        problem.notes = (*problem.notes, f"'{node.name}' is declared as {what}")
        raise problem.with_loc(frame.loc(node.value)) from None


@expression(syntax.Assign)
def assignment(frame: FunctionFrame, node: syntax.Assign) -> object:
    """`target = value`, `target += value`; the value is that of the target afterwards."""
    target = node.target
    if isinstance(target, syntax.Dereference):
        return _assign_memory(frame, node, target)
    variable = _target(frame, node, target)
    if not node.operator:
        value = frame.expression(node.value)
    else:
        value = _combined(frame, node, read(frame, target, variable))
    return _assign(frame, node, variable, value)


def _assign(
    frame: FunctionFrame, node: syntax.Expression, variable: Variable, value: object
) -> tensor:
    result = converted(frame, node, value, variable.type)
    frame.set(variable, result)
    return result


def _combined(frame: FunctionFrame, node: syntax.Assign, before: object) -> object:
    """`before <operator> value`; `c += a @ b` accumulates the dot."""
    value = node.value
    # `c += a @ b` as one op: a dot with accumulator instead of an addition after it.
    if node.operator == "+" and isinstance(value, syntax.Binary) and value.operator == "@":
        return accumulate(frame, node, before, value)
    return apply_binary(frame, node, node.operator, before, frame.expression(value))


def _target(frame: FunctionFrame, node: syntax.Expression, target: syntax.Expression) -> Variable:
    """The variable that an expression names. Errors: NotAssignable, UndefinedName."""
    if not isinstance(target, syntax.Name):
        error = errors.NotAssignable(f"this {type(target).__name__.lower()} expression")
        if isinstance(target, syntax.Binary) and target.right.span.line > target.left.span.line:
            error.advice = f"is a ';' missing at the end of line {target.left.span.line}?"
        if isinstance(target, syntax.Subscript):
            error.advice = "add to the pointer: *(p + i) = x; tiles change as a whole: c ? a : b"
        frame.fail(target, error)
    variable = frame.find(target.name)
    if variable is None:
        # Reports an undefined name as a read would, so that both have one message.
        frame.expression(target)
        raise AssertionError(f"{target.name} is read without being declared")
    if variable.fixed:
        frame.fail(node, errors.NotAssignable(f"'{variable.name}', which is const", ""))
    return variable


def _assign_memory(frame: FunctionFrame, node: syntax.Assign, target: syntax.Dereference) -> object:
    # The target is read inside: its pointer is evaluated once for the store and once for the load.
    if node.operator:
        return store(frame, target, lambda: _combined(frame, node, frame.expression(target)))
    return store(frame, target, lambda: frame.expression(node.value))


@expression(syntax.Step)
def step(frame: FunctionFrame, node: syntax.Step) -> object:
    """`++i`, `i--`, also of pointers, tiles and dereferences."""
    read_target, write = _assignable(frame, node)
    before = read_target()
    after = apply_binary(frame, node, node.operator, before, constexpr(1))
    written = write(after)
    # C: the value of `i++` is the one before.
    return written if node.prefix else before


def _assignable(
    frame: FunctionFrame, node: syntax.Step
) -> tuple[Callable[[], object], Callable[[object], object]]:
    target = node.target
    if isinstance(target, syntax.Dereference):
        return lambda: frame.expression(target), lambda v: store(frame, target, lambda: v)
    variable = _target(frame, node, target)
    return lambda: read(frame, target, variable), lambda v: _assign(frame, node, variable, v)
