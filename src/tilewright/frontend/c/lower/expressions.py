"""Expressions: literals, names, operators, casts, ranges, subscripts. Their meaning is in the
semantics that all front ends share; here is syntax."""

from __future__ import annotations

from typing import NoReturn, TypeGuard, cast

from tilewright import language as tl
from tilewright.frontend import semantics
from tilewright.frontend.c import cuda, syntax
from tilewright.frontend.c.jumps import is_plain, walk
from tilewright.frontend.c.lower.activation import (
    Activation,
    Integer,
    Unset,
    Variable,
    call,
    expression,
)
from tilewright.frontend.c.lower.arithmetic import apply_binary, apply_unary
from tilewright.frontend.c.lower.branches import choose
from tilewright.frontend.c.lower.conversion import constant_integer, named_type, whole
from tilewright.ir.types import DType, shape_of
from tilewright.language import constexpr, tensor, type_of, unwrap
from tilewright.support import errors

_WORDS = {"true": True, "false": False, "NULL": 0, "INFINITY": float("inf"), "NAN": float("nan")}


@expression(syntax.Number)
def number(act: Activation, node: syntax.Number) -> object:
    """A literal: an integer of its type, or a float that takes the type of the float beside it."""
    if node.type is None:
        return constexpr(node.value)
    return Integer(int(node.value), node.type)


@expression(syntax.Text)
def text(act: Activation, node: syntax.Text) -> object:
    """A string, for functions that take one."""
    return constexpr(node.value)


@expression(syntax.Name)
def name(act: Activation, node: syntax.Name) -> object:
    """A variable; `true`, `false`, `NULL`, `INFINITY`, `NAN`."""
    variable = act.find(node.name)
    if variable is None:
        if node.name in _WORDS:
            return constexpr(_WORDS[node.name])
        _undefined(act, node)
    if variable.number is not None:
        assert isinstance(variable.type, DType)
        return Integer(variable.number, variable.type)
    return read(act, node, variable)


def read(act: Activation, node: syntax.Expression, variable: Variable) -> tensor:
    """What a variable holds. Errors: PossiblyUndefined."""
    value = act.values[variable]
    if not isinstance(value, Unset):
        return value
    if value.construct:
        act.fail(node, errors.PossiblyUndefined(variable.name, value.construct))
    reason, instead = "it has no value yet", "give it one where it is declared"
    act.fail(node, errors.InvalidOperation(f"read '{variable.name}'", reason, instead))


def _undefined(act: Activation, node: syntax.Name) -> NoReturn:
    check_cuda(act, node, node.name)
    known = [name for scope in act.scopes for name in scope]
    functions = [f.name for f in act.session.program.functions]
    later = [v.span.line for v in walk(act.function) if _declares(v, node)]
    if later:
        error = errors.UndefinedName(node.name, known)
        error.advice = f"it is declared further down, on line {later[0]}"
        act.fail(node, error)
    close = errors.did_you_mean(node.name, known)
    if close is None and node.name.isupper():
        act.fail(node, errors.MissingDefine(node.name))
    error = errors.UndefinedName(node.name, known)
    if node.name in functions or hasattr(tl, node.name):
        error.advice = f"'{node.name}' is a function: call it"
    act.fail(node, error)


def check_cuda(act: Activation, node: syntax.Expression, name: str) -> None:
    """Errors: UnsupportedLanguageConstruct for a name that has its meaning in CUDA only."""
    instead = cuda.instead_of(name)
    if instead is not None:
        act.fail(node, errors.UnsupportedLanguageConstruct(f"'{name}' of CUDA", instead))


def _declares(node: syntax.Node, name: syntax.Name) -> TypeGuard[syntax.Variable]:
    """Whether a node declares a name that is used before."""
    declares = isinstance(node, syntax.Variable) and node.name == name.name
    return declares and (node.span.line, node.span.col) > (name.span.line, name.span.col)


# --- operators ------------------------------------------------------------------------------------


@expression(syntax.Binary)
def binary(act: Activation, node: syntax.Binary) -> object:
    """`a + b`; `a + b @ c` accumulates the product. A sum of any length is gone through here."""
    chain: list[syntax.Binary] = []
    first: syntax.Expression = node
    while isinstance(first, syntax.Binary):
        chain.append(first)
        first = first.left
    value = act.expression(first)
    for link in reversed(chain):
        value = _continued(act, link, value)
    return value


def _continued(act: Activation, node: syntax.Binary, left: object) -> object:
    """The value of an operator whose left side is known."""
    if node.operator in ("&&", "||"):
        return _logical(act, node, left)
    if node.operator == "+" and _is_product(node.right):
        return accumulate(act, node, left, cast("syntax.Binary", node.right))
    return apply_binary(act, node, node.operator, left, act.expression(node.right))


def _is_product(node: syntax.Expression) -> bool:
    return isinstance(node, syntax.Binary) and node.operator == "@"


def accumulate(
    act: Activation, node: syntax.Expression, before: object, factors: syntax.Binary
) -> object:
    """`before + a @ b`: one operation where the accumulator has a type that products sum in."""
    if isinstance(before, tensor) and len(shape_of(before.handle.type)) >= 2:
        left, right = act.expression(factors.left), act.expression(factors.right)
        try:
            return call(act, factors, tl.dot, left, right, before)
        except (errors.DTypeMismatch, errors.ShapeMismatch):
            result = call(act, factors, tl.dot, left, right)
    else:
        result = act.expression(factors)
    return apply_binary(act, node, "+", before, result)


@expression(syntax.Unary)
def unary(act: Activation, node: syntax.Unary) -> object:
    """`-x`, `+x`, `~x`, `!x`; `^x` is the transposition."""
    value = act.expression(node.operand)
    if node.operator == "^":
        return call(act, node, tl.trans, value)
    return apply_unary(act, node, node.operator, value)


def _logical(act: Activation, node: syntax.Binary, left: object) -> object:
    """`&&`, `||`: of tiles element by element; a scalar on the left decides whether the right side
    is evaluated, if that could make a difference."""
    word = "and" if node.operator == "&&" else "or"
    if not isinstance(left, tensor):
        decided = bool(unwrap(left)) != (word == "and")
        right = constexpr(word == "or") if decided else act.expression(node.right)
        return (
            constexpr(bool(unwrap(right)))
            if not isinstance(right, tensor)
            else _as_bool(act, node, right)
        )
    if is_plain(node.right) or shape_of(left.handle.type):
        return semantics.logical(act.at(node), word, left, act.expression(node.right))
    test = semantics.truth(act.at(node.left), left)

    def evaluate() -> tensor:
        return _as_bool(act, node.right, act.tensor(node.right))

    def settle() -> tensor:
        return semantics.cast_to(act.at(node), word == "or", tl.int1)

    return choose(act, node, test, *((evaluate, settle) if word == "and" else (settle, evaluate)))


def _as_bool(act: Activation, node: syntax.Expression, value: tensor) -> tensor:
    return tensor(semantics.as_condition(act.at(node), value))


@expression(syntax.Comma)
def comma(act: Activation, node: syntax.Comma) -> object:
    """`a, b`."""
    return [act.expression(item) for item in node.items][-1]


@expression(syntax.Cast)
def cast_expression(act: Activation, node: syntax.Cast) -> object:
    """`(half) x`, of tiles element by element."""
    target = named_type(act, node.type)
    value = act.expression(node.operand)
    if not isinstance(value, tensor) and isinstance(target, DType) and target.is_integer:
        return Integer(whole(act, node, value, target), target)
    return semantics.cast_to(act.at(node), value, type_of(target))


@expression(syntax.Range)
def range_expression(act: Activation, node: syntax.Range) -> object:
    """`0 ... 16`: the int32 tile of the numbers from the first up to, without it, the last."""
    first = constant_integer(act, node.first, "the beginning of a range")
    last = constant_integer(act, node.last, "the end of a range")
    return call(act, node, tl.arange, first, last)
