"""Operators: arithmetic, comparison, logic, by the semantics and `truth_values`."""

from __future__ import annotations

import ast

from tilewright.frontend import semantics
from tilewright.frontend.python.lower.function_frame import FunctionFrame, expression
from tilewright.frontend.python.lower.host_calls import call_python
from tilewright.frontend.python.lower.language_values import is_static
from tilewright.frontend.python.lower.operator_precedence import misread_chain, warn_of_precedence
from tilewright.frontend.python.lower.truth_values import (
    COMPARISON_NAMES,
    apply_operator,
    compare_values,
    logical_connective,
    logical_not,
    short_circuits,
)
from tilewright.language import COMPARISON_OPERATORS, call_operator, user_aggregate

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}


@expression(ast.BinOp)
def binary_operator(frame: FunctionFrame, node: ast.BinOp) -> object:
    """`a + b` and the like."""
    left = frame.expression(node.left)
    right = frame.expression(node.right)
    return apply_binary(frame, node, node.op, left, right)


def apply_binary(
    frame: FunctionFrame, node: ast.expr | ast.stmt, op: ast.operator, left: object, right: object
) -> object:
    """`left <op> right`, also for `+=`."""
    name = BINARY.get(type(op))
    if name is None:
        frame.unsupported(node, "the operator '@'", "call tl.dot")
    ctx = frame.at(node)
    if isinstance(left, user_aggregate) or isinstance(right, user_aggregate):
        return call_python(frame.session, call_operator, (name, left, right), {})
    return apply_operator(ctx, name, left, right)


@expression(ast.UnaryOp)
def unary_operator(frame: FunctionFrame, node: ast.UnaryOp) -> object:
    """`-x`, `+x`, `~x`, `not x`."""
    value = frame.expression(node.operand)
    ctx = frame.at(node)
    if isinstance(value, user_aggregate) and not isinstance(node.op, ast.Not):
        return call_python(frame.session, call_operator, (_UNARY[type(node.op)], value), {})
    if isinstance(node.op, ast.Not):
        return logical_not(ctx, value)
    return semantics.unary(ctx, _UNARY[type(node.op)], value)


@expression(ast.BoolOp)
def logical_operator(frame: FunctionFrame, node: ast.BoolOp) -> object:
    """`a and b or c`."""
    connective = "and" if isinstance(node.op, ast.And) else "or"
    result = frame.expression(node.values[0])
    for operand in node.values[1:]:
        if short_circuits(connective, result):
            return result
        right = frame.expression(operand)
        result = logical_connective(frame.at(node), connective, result, right)
    return result


def _compared(
    frame: FunctionFrame, node: ast.Compare, symbol: str, left: object, right: object
) -> object:
    ctx = frame.at(node)
    aggregates = isinstance(left, user_aggregate) or isinstance(right, user_aggregate)
    if aggregates and symbol in COMPARISON_OPERATORS:
        return call_python(frame.session, call_operator, (symbol, left, right), {})
    return compare_values(ctx, symbol, left, right)


@expression(ast.Compare)
def comparison(frame: FunctionFrame, node: ast.Compare) -> object:
    """`a < b`, `a < b < c` (as `a < b and b < c`), `is`, `in`."""
    left = frame.expression(node.left)
    result: object = None
    for op, operand in zip(node.ops, node.comparators, strict=True):
        # Python evaluates no further operand once one comparison of a chain is false.
        if result is not None and short_circuits("and", result):
            return result
        right = frame.expression(operand)
        one = _compared(frame, node, COMPARISON_NAMES[type(op)], left, right)
        result = one if result is None else logical_connective(frame.ctx, "and", result, one)
        left = right
    # A chain of constants is evaluated; the warning is for run-time operands.
    message = None if is_static(result) else misread_chain(frame.source, node)
    if message is not None:
        warn_of_precedence(message, frame.loc(node))
    return result
