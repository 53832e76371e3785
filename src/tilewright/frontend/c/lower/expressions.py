"""Expressions: literals, names, operators, casts, ranges, subscripts.

The meaning of operators is in the semantics that all front ends share."""

from __future__ import annotations

from typing import NoReturn, TypeGuard, cast

from tilewright import language as tl
from tilewright.frontend import semantics
from tilewright.frontend.c import cuda_names, syntax
from tilewright.frontend.c.lower.branches import lower_choice
from tilewright.frontend.c.lower.declared_conversions import (
    constant_integer,
    named_type,
    wrapped_integer,
)
from tilewright.frontend.c.lower.function_frame import (
    FunctionFrame,
    TypedInteger,
    Unset,
    Variable,
    call,
    expression,
)
from tilewright.frontend.c.lower.integer_promotion import apply_binary, apply_unary
from tilewright.frontend.c.syntax_queries import is_pure, walk
from tilewright.ir.types import DType, shape_of
from tilewright.language import constexpr, tensor, type_of, unwrap
from tilewright.support import errors

# Not macros: a variable of the same name hides them.
_NAMED_CONSTANTS = {
    "true": True,
    "false": False,
    "NULL": 0,
    "INFINITY": float("inf"),
    "NAN": float("nan"),
}


@expression(syntax.Number)
def number(frame: FunctionFrame, node: syntax.Number) -> object:
    """A literal: an integer of its type, or a float that takes the type of the other operand."""
    # Floats have no C type of their own here: `x * 0.5` stays half for a half x.
    if node.type is None:
        return constexpr(node.value)
    return TypedInteger(int(node.value), node.type)


@expression(syntax.Text)
def text(frame: FunctionFrame, node: syntax.Text) -> object:
    """A string, for functions that take one."""
    return constexpr(node.value)


@expression(syntax.Name)
def name(frame: FunctionFrame, node: syntax.Name) -> object:
    """A variable; `true`, `false`, `NULL`, `INFINITY`, `NAN`."""
    variable = frame.find(node.name)
    if variable is None:
        if node.name in _NAMED_CONSTANTS:
            return constexpr(_NAMED_CONSTANTS[node.name])
        _undefined(frame, node)
    # A constant integer is folded, with the type of its declaration.
    if variable.number is not None:
        assert isinstance(variable.type, DType)
        return TypedInteger(variable.number, variable.type)
    return read(frame, node, variable)


def read(frame: FunctionFrame, node: syntax.Expression, variable: Variable) -> tensor:
    """The value of a variable. Errors: PossiblyUndefined."""
    value = frame.values[variable]
    if not isinstance(value, Unset):
        return value
    if value.construct:
        frame.fail(node, errors.PossiblyUndefined(variable.name, value.construct))
    reason, instead = "it has no value yet", "give it one where it is declared"
    frame.fail(node, errors.InvalidOperation(f"read '{variable.name}'", reason, instead))


def _undefined(frame: FunctionFrame, node: syntax.Name) -> NoReturn:
    check_cuda(frame, node, node.name)
    names = [name for scope in frame.scopes for name in scope]
    functions = [f.name for f in frame.session.program.functions]
    later = [v.span.line for v in walk(frame.function) if _declares(v, node)]
    if later:
        error = errors.UndefinedName(node.name, names)
        error.advice = f"it is declared further down, on line {later[0]}"
        frame.fail(node, error)
    close = errors.did_you_mean(node.name, names)
    # Capitals are most likely a macro that -D should define.
    if close is None and node.name.isupper():
        frame.fail(node, errors.MissingDefine(node.name))
    error = errors.UndefinedName(node.name, names)
    if node.name in functions or hasattr(tl, node.name):
        error.advice = f"'{node.name}' is a function: call it"
    frame.fail(node, error)


def check_cuda(frame: FunctionFrame, node: syntax.Expression, name: str) -> None:
    """Errors: UnsupportedLanguageConstruct for a name that only CUDA has."""
    instead = cuda_names.replacement_of(name)
    if instead is not None:
        frame.fail(node, errors.UnsupportedLanguageConstruct(f"'{name}' of CUDA", instead))


def _declares(node: syntax.Node, name: syntax.Name) -> TypeGuard[syntax.Variable]:
    """Whether a node declares a name that is used before."""
    declares = isinstance(node, syntax.Variable) and node.name == name.name
    return declares and (node.span.line, node.span.col) > (name.span.line, name.span.col)


# --- operators ------------------------------------------------------------------------------------


@expression(syntax.Binary)
def binary(frame: FunctionFrame, node: syntax.Binary) -> object:
    """`a + b`; `a + b @ c` is a dot with accumulator. Sums of any length are lowered in a loop."""
    chain: list[syntax.Binary] = []
    first: syntax.Expression = node
    # In a loop, not recursively: a sum of thousands of terms must not exhaust the stack.
    while isinstance(first, syntax.Binary):
        chain.append(first)
        first = first.left
    value = frame.expression(first)
    for link in reversed(chain):
        value = _continued(frame, link, value)
    return value


def _continued(frame: FunctionFrame, node: syntax.Binary, left: object) -> object:
    """The value of an operator whose left side has been evaluated."""
    if node.operator in ("&&", "||"):
        return _logical(frame, node, left)
    if node.operator == "+" and _is_dot(node.right):
        return accumulate(frame, node, left, cast("syntax.Binary", node.right))
    return apply_binary(frame, node, node.operator, left, frame.expression(node.right))


def _is_dot(node: syntax.Expression) -> bool:
    return isinstance(node, syntax.Binary) and node.operator == "@"


def accumulate(
    frame: FunctionFrame, node: syntax.Expression, before: object, factors: syntax.Binary
) -> object:
    """`before + a @ b`: one dot, if `before` has the type of an accumulator."""
    # A scalar or a vector is no accumulator.
    if isinstance(before, tensor) and len(shape_of(before.handle.type)) >= 2:
        left, right = frame.expression(factors.left), frame.expression(factors.right)
        try:
            return call(frame, factors, tl.dot, left, right, before)
        except (errors.DTypeMismatch, errors.ShapeMismatch):
            # Other dtypes or a shape that broadcasts: a dot, then an addition.
            result = call(frame, factors, tl.dot, left, right)
    else:
        result = frame.expression(factors)
    return apply_binary(frame, node, "+", before, result)


@expression(syntax.Unary)
def unary(frame: FunctionFrame, node: syntax.Unary) -> object:
    """`-x`, `+x`, `~x`, `!x`; `^x` is the transposition."""
    value = frame.expression(node.operand)
    if node.operator == "^":
        return call(frame, node, tl.trans, value)
    return apply_unary(frame, node, node.operator, value)


def _logical(frame: FunctionFrame, node: syntax.Binary, left: object) -> object:
    """`&&`, `||`: of tiles element by element; a scalar on the left decides whether the right side
    is evaluated, if that could make a difference."""
    connective = "and" if node.operator == "&&" else "or"
    if not isinstance(left, tensor):
        decided = bool(unwrap(left)) != (connective == "and")
        right = constexpr(connective == "or") if decided else frame.expression(node.right)
        return (
            constexpr(bool(unwrap(right)))
            if not isinstance(right, tensor)
            else _as_bool(frame, node, right)
        )
    # Without effects both sides can be evaluated: no branch, and tiles work too.
    if is_pure(node.right) or shape_of(left.handle.type):
        return semantics.logical(frame.at(node), connective, left, frame.expression(node.right))
    test = semantics.truth(frame.at(node.left), left)

    def evaluate() -> tensor:
        return _as_bool(frame, node.right, frame.tensor(node.right))

    def settle() -> tensor:
        return semantics.cast_to(frame.at(node), connective == "or", tl.int1)

    # `a && b`: b where a is true, else false; `a || b`: true where a is true, else b.
    return lower_choice(
        frame, node, test, *((evaluate, settle) if connective == "and" else (settle, evaluate))
    )


def _as_bool(frame: FunctionFrame, node: syntax.Expression, value: tensor) -> tensor:
    return tensor(semantics.as_condition(frame.at(node), value))


@expression(syntax.Comma)
def comma(frame: FunctionFrame, node: syntax.Comma) -> object:
    """`a, b`."""
    return [frame.expression(item) for item in node.items][-1]


@expression(syntax.Cast)
def cast_expression(frame: FunctionFrame, node: syntax.Cast) -> object:
    """`(half) x`, of tiles element by element."""
    target = named_type(frame, node.type)
    value = frame.expression(node.operand)
    if not isinstance(value, tensor) and isinstance(target, DType) and target.is_integer:
        return TypedInteger(wrapped_integer(frame, node, value, target), target)
    return semantics.cast_to(frame.at(node), value, type_of(target))


@expression(syntax.Range)
def range_expression(frame: FunctionFrame, node: syntax.Range) -> object:
    """`0 ... 16`: the int32 tile of the numbers from the first up to, but excluding, the last."""
    first = constant_integer(frame, node.first, "the beginning of a range")
    last = constant_integer(frame, node.last, "the end of a range")
    return call(frame, node, tl.arange, first, last)
