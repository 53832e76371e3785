"""`+`, `not`, `and`, `or`, comparisons, `is` and `in` in kernels.

Compile-time operands short-circuit as in Python: `False and x` is False, and x is not evaluated.
Run-time operands do not; they combine element by element to int1. The compiler applies this to
syntax trees, the interpreter to the values of running code.
"""

from __future__ import annotations

import ast
from typing import cast

from tilewright.frontend import semantics
from tilewright.frontend.python.lower.language_values import (
    describe,
    is_static,
    is_tuple,
    on_host,
    static_value,
)
from tilewright.frontend.semantics import Context
from tilewright.language import base_value, call_operator, constexpr, user_aggregate
from tilewright.language import tuple as language_tuple
from tilewright.support import errors

COMPARISON_NAMES: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
"""Names of the operators in `compare_values`."""


def apply_operator(ctx: Context, name: str, left: object, right: object) -> object:
    """`left <name> right`, name as in `semantics.binary`; tuples can be joined and repeated."""
    if isinstance(left, user_aggregate) or isinstance(right, user_aggregate):
        return call_operator(name, left, right)
    if not is_tuple(left) and not is_tuple(right):
        return semantics.binary(ctx, name, left, right)
    if name == "add" and is_tuple(left) and is_tuple(right):
        return language_tuple((*left, *right))
    items, count = (right, left) if is_tuple(right) else (left, right)
    repeats = static_value(count) if is_static(count) else None
    if name == "mul" and is_tuple(items) and isinstance(repeats, int):
        return language_tuple(items * repeats)
    reason = f"these are {describe(left)} and {describe(right)}"
    ctx.fail(errors.InvalidOperation, f"apply '{name}' to tuples", reason)


def logical_not(ctx: Context, value: object) -> object:
    """`not value`."""
    if is_static(value):
        return constexpr(not static_value(value))
    return semantics.unary(ctx, "not", value)


def short_circuits(connective: str, value: object) -> bool:
    """Whether the left operand of `and` or `or` is the result, whatever the right one is."""
    return is_static(value) and bool(static_value(value)) != (connective == "and")


def logical_connective(ctx: Context, connective: str, left: object, right: object) -> object:
    """`left and right`, `left or right`, if `left` does not short-circuit."""
    return right if is_static(left) else semantics.logical(ctx, connective, left, right)


def compare_values(ctx: Context, symbol: str, left: object, right: object) -> object:
    """`left <symbol> right`; see COMPARISON_NAMES. Errors: those of `semantics.compare`."""
    # "not in" and "is not" are the negations of "in" and "is".
    plain = symbol.removeprefix("not ").removesuffix(" not")
    if plain == "is":
        return constexpr(_identical(left, right) is (symbol == plain))
    if plain == "in":
        return constexpr(_contained(ctx, left, right) is (symbol == plain))
    if isinstance(left, user_aggregate) or isinstance(right, user_aggregate):
        return call_operator(symbol, left, right)
    if isinstance(left, base_value) or isinstance(right, base_value):
        return semantics.compare(ctx, symbol, left, right)
    # Static tuples compare as Python's do, order included.
    if is_static(left) and is_static(right):
        return semantics.compare(ctx, symbol, left, right)
    if symbol in ("eq", "ne"):
        return _compared_tuples(ctx, symbol, left, right)
    reason = "tuples with run-time values have no order"
    ctx.fail(errors.InvalidOperation, "compare", reason)


def _identical(left: object, right: object) -> bool:
    """`is`, on compile-time values by value; a run-time value is only ever itself."""
    if isinstance(left, base_value) or isinstance(right, base_value):
        return left is right
    a, b = static_value(left), static_value(right)
    # Except callables: equal functions may be different objects. 1 is not True here.
    return a is b or (type(a) is type(b) and not callable(a) and a == b)


def _contained(ctx: Context, item: object, container: object) -> bool:
    if not (is_static(item) and is_static(container)):
        reason = f"{describe(item)} and {describe(container)} are not all compile-time constants"
        ctx.fail(errors.InvalidOperation, "evaluate 'in'", reason, "compare with == and |")
    return on_host(
        "evaluate 'in'", lambda: static_value(item) in cast("list[object]", static_value(container))
    )


def _compared_tuples(ctx: Context, name: str, left: object, right: object) -> object:
    """`==` of tuples with run-time items: all items are equal."""
    equal: object = constexpr(False)
    if is_tuple(left) and is_tuple(right) and len(left) == len(right):
        equal = constexpr(True)
        for a, b in zip(left, right, strict=True):
            equal = logical_connective(ctx, "and", equal, compare_values(ctx, "eq", a, b))
    return equal if name == "eq" else logical_not(ctx, equal)
