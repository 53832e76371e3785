"""Operators: arithmetic, comparison, logic. Their meaning is in the semantics; here is syntax."""

from __future__ import annotations

import ast
from typing import cast

from tilewright.frontend import semantics
from tilewright.frontend.python.lower.activation import Activation, expression
from tilewright.frontend.python.lower.values import describe, is_static, is_tuple, on_host, static
from tilewright.language import base_value, constexpr
from tilewright.language import tuple as language_tuple
from tilewright.support import errors

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


@expression(ast.BinOp)
def binary_operator(act: Activation, node: ast.BinOp) -> object:
    """`a + b` and the like."""
    left = act.expression(node.left)
    right = act.expression(node.right)
    return apply_binary(act, node, node.op, left, right)


def apply_binary(
    act: Activation, node: ast.expr | ast.stmt, op: ast.operator, left: object, right: object
) -> object:
    """`left <op> right`, also for `+=`."""
    name = BINARY.get(type(op))
    if name is None:
        act.unsupported(node, "the operator '@'", "call tl.dot")
    ctx = act.at(node)
    if is_tuple(left) or is_tuple(right):
        return _on_tuples(act, node, name, left, right)
    return semantics.binary(ctx, name, left, right)


def _on_tuples(
    act: Activation, node: ast.expr | ast.stmt, name: str, left: object, right: object
) -> object:
    """Tuples can be joined and repeated."""
    if name == "add" and is_tuple(left) and is_tuple(right):
        return language_tuple((*left, *right))
    items, count = (right, left) if is_tuple(right) else (left, right)
    repeats = static(count) if is_static(count) else None
    if name == "mul" and is_tuple(items) and isinstance(repeats, int):
        return language_tuple(items * repeats)
    reason = f"these are {describe(left)} and {describe(right)}"
    act.fail(node, errors.InvalidOperation(f"apply '{name}' to tuples", reason))


@expression(ast.UnaryOp)
def unary_operator(act: Activation, node: ast.UnaryOp) -> object:
    """`-x`, `+x`, `~x`, `not x`."""
    value = act.expression(node.operand)
    ctx = act.at(node)
    if isinstance(node.op, ast.Not):
        if is_static(value):
            return constexpr(not static(value))
        return semantics.unary(ctx, "not", value)
    return semantics.unary(ctx, _UNARY[type(node.op)], value)


@expression(ast.BoolOp)
def logical_operator(act: Activation, node: ast.BoolOp) -> object:
    """`a and b or c`. Compile-time operands decide as in Python, run-time ones do not."""
    name = "and" if isinstance(node.op, ast.And) else "or"
    result = act.expression(node.values[0])
    for operand in node.values[1:]:
        if is_static(result):
            if bool(static(result)) != (name == "and"):
                return result
            result = act.expression(operand)
        else:
            right = act.expression(operand)
            result = semantics.logical(act.at(node), name, result, right)
    return result


@expression(ast.Compare)
def comparison(act: Activation, node: ast.Compare) -> object:
    """`a < b`, `a < b < c` (as `a < b and b < c`), `is`, `in`."""
    left = act.expression(node.left)
    result: object = None
    for op, operand in zip(node.ops, node.comparators, strict=True):
        if result is not None and is_static(result) and not static(result):
            return result
        right = act.expression(operand)
        act.at(node)
        one = _compare(act, node, op, left, right)
        if result is None or is_static(result):
            result = one
        else:
            result = semantics.logical(act.ctx, "and", result, one)
        left = right
    return result


def _compare(
    act: Activation, node: ast.Compare, op: ast.cmpop, left: object, right: object
) -> object:
    if isinstance(op, ast.Is | ast.IsNot):
        return constexpr(_identical(left, right) is isinstance(op, ast.Is))
    if isinstance(op, ast.In | ast.NotIn):
        return constexpr(_contained(act, node, left, right) is isinstance(op, ast.In))
    name = _COMPARISONS[type(op)]
    if isinstance(left, base_value) or isinstance(right, base_value):
        return semantics.compare(act.ctx, name, left, right)
    if not (is_static(left) and is_static(right)):
        if name in ("eq", "ne"):
            return _compare_tuples(act, name, left, right)
        reason = "tuples with run-time values have no order"
        act.fail(node, errors.InvalidOperation("compare", reason))
    return semantics.compare(act.ctx, name, left, right)


def _identical(left: object, right: object) -> bool:
    """`is`, on compile-time values by value; a run-time value is only ever itself."""
    if isinstance(left, base_value) or isinstance(right, base_value):
        return left is right
    a, b = static(left), static(right)
    return a is b or (type(a) is type(b) and not callable(a) and a == b)


def _contained(act: Activation, node: ast.Compare, item: object, container: object) -> bool:
    if not (is_static(item) and is_static(container)):
        reason = f"{describe(item)} and {describe(container)} are not all known at compile time"
        act.fail(node, errors.InvalidOperation("evaluate 'in'", reason, "compare with == and |"))
    return on_host("evaluate 'in'", lambda: static(item) in cast("list[object]", static(container)))


def _compare_tuples(act: Activation, name: str, left: object, right: object) -> object:
    """`==` of tuples with run-time items: all items are equal."""
    equal: object = constexpr(False)
    if is_tuple(left) and is_tuple(right) and len(left) == len(right):
        equal = constexpr(True)
        for a, b in zip(left, right, strict=True):
            equal = semantics.logical(act.ctx, "and", equal, semantics.compare(act.ctx, "eq", a, b))
    return equal if name == "eq" else semantics.unary(act.ctx, "not", equal)
