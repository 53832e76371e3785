"""Declarations and assignments: `float x[16] = 0;`, `x = y`, `*p += 1`, `c += a @ b`, `i++`."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.frontend.c import syntax
from tilewright.frontend.c.lower.activation import (
    Activation,
    Unset,
    Variable,
    expression,
    statement,
)
from tilewright.frontend.c.lower.arithmetic import apply_binary
from tilewright.frontend.c.lower.conversion import adopted, converted, declared_type
from tilewright.frontend.c.lower.expressions import accumulate, read
from tilewright.frontend.c.lower.memory import store
from tilewright.ir.types import DType, TileType
from tilewright.language import constexpr, tensor, unwrap
from tilewright.support import errors


@statement(syntax.Declaration)
def declaration(act: Activation, node: syntax.Declaration) -> None:
    """Variables with or without initial values; a scalar fills a tile."""
    for item in node.variables:
        _declare(act, item)


def _declare(act: Activation, node: syntax.Variable) -> None:
    if node.name in act.scopes[-1]:
        reason = "this block declares it already"
        act.fail(node, errors.InvalidOperation(f"declare '{node.name}'", reason))
    type_ = declared_type(act, node)
    fixed = node.type.is_fixed
    if node.value is None:
        if fixed:
            reason = "a constant needs its value where it is declared"
            act.fail(node, errors.InvalidOperation(f"declare '{node.name}'", reason))
        act.values[act.declare(Variable(node.name, type_))] = Unset()
        return
    value = act.expression(node.value)
    type_ = adopted(type_, value)
    number = unwrap(value) if fixed and not isinstance(value, tensor) else None
    result = _initial(act, node, value, type_)
    wrapped = None
    if isinstance(number, int) and isinstance(type_, DType) and type_.is_integer:
        wrapped = type_.wrap(number)
    variable = Variable(node.name, type_, fixed=fixed, number=wrapped)
    act.set(act.declare(variable), result)


def _initial(act: Activation, node: syntax.Variable, value: object, type_: object) -> tensor:
    assert node.value is not None
    try:
        return converted(act, node.value, value, type_)  # pyright: ignore[reportArgumentType]
    except errors.ShapeMismatch as problem:
        extents = list(type_.shape) if isinstance(type_, TileType) else []
        what = f"a tile of extents {extents}" if extents else "no tile"
        problem.notes = (*problem.notes, f"'{node.name}' is declared as {what}")
        raise problem.with_loc(act.loc(node.value)) from None


@expression(syntax.Assign)
def assignment(act: Activation, node: syntax.Assign) -> object:
    """`target = value`, `target += value`; the value is that of the target afterwards."""
    target = node.target
    if isinstance(target, syntax.Dereference):
        return _assign_memory(act, node, target)
    variable = _target(act, node, target)
    if not node.operator:
        value = act.expression(node.value)
    else:
        value = _combined(act, node, read(act, target, variable))
    return _assign(act, node, variable, value)


def _assign(act: Activation, node: syntax.Expression, variable: Variable, value: object) -> tensor:
    result = converted(act, node, value, variable.type)
    act.set(variable, result)
    return result


def _combined(act: Activation, node: syntax.Assign, before: object) -> object:
    """`before <operator> value`; `c += a @ b` accumulates the product."""
    value = node.value
    if node.operator == "+" and isinstance(value, syntax.Binary) and value.operator == "@":
        return accumulate(act, node, before, value)
    return apply_binary(act, node, node.operator, before, act.expression(value))


def _target(act: Activation, node: syntax.Expression, target: syntax.Expression) -> Variable:
    """The variable that an expression names. Errors: NotAssignable, UndefinedName."""
    if not isinstance(target, syntax.Name):
        error = errors.NotAssignable(f"this {type(target).__name__.lower()} expression")
        if isinstance(target, syntax.Binary) and target.right.span.line > target.left.span.line:
            error.advice = f"is a ';' missing at the end of line {target.left.span.line}?"
        if isinstance(target, syntax.Subscript):
            error.advice = "add to the pointer: *(p + i) = x; tiles change as a whole: c ? a : b"
        act.fail(target, error)
    variable = act.find(target.name)
    if variable is None:
        act.expression(target)
        raise AssertionError(f"{target.name} is read without being declared")
    if variable.fixed:
        act.fail(node, errors.NotAssignable(f"'{variable.name}', which is const", ""))
    return variable


def _assign_memory(act: Activation, node: syntax.Assign, target: syntax.Dereference) -> object:
    if node.operator:
        return store(act, target, lambda: _combined(act, node, act.expression(target)))
    return store(act, target, lambda: act.expression(node.value))


@expression(syntax.Step)
def step(act: Activation, node: syntax.Step) -> object:
    """`++i`, `i--`, also of pointers, tiles, and what a pointer points to."""
    read_target, write = _place(act, node)
    before = read_target()
    after = apply_binary(act, node, node.operator, before, constexpr(1))
    written = write(after)
    return written if node.prefix else before


def _place(
    act: Activation, node: syntax.Step
) -> tuple[Callable[[], object], Callable[[object], object]]:
    target = node.target
    if isinstance(target, syntax.Dereference):
        return lambda: act.expression(target), lambda v: store(act, target, lambda: v)
    variable = _target(act, node, target)
    return lambda: read(act, target, variable), lambda v: _assign(act, node, variable, v)
