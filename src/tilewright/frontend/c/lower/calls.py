"""Calls: inlined functions of the source, functions of C, and functions of the language."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from tilewright import language as tl
from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.c_types import scalar_type
from tilewright.frontend.c.lower.declared_conversions import (
    converted,
    declared_type,
    describe,
    named_type,
    with_constness_of,
)
from tilewright.frontend.c.lower.dereferences import check_named_load
from tilewright.frontend.c.lower.expressions import check_cuda
from tilewright.frontend.c.lower.function_frame import (
    STATEMENTS,
    FunctionFrame,
    Session,
    TypedInteger,
    Unset,
    Variable,
    expression,
)
from tilewright.frontend.c.lower.integer_promotion import promote, usual_conversions
from tilewright.frontend.c.lower.statement_sequence import lower_statements
from tilewright.frontend.c.syntax_queries import always_jumps, jump_kinds
from tilewright.frontend.semantics import Context
from tilewright.frontend.semantics.broadcasting import common_shape
from tilewright.ir.types import Scalar, Type, shape_of, u64, with_shape
from tilewright.language import DeviceFunction, constexpr, is_builtin, tensor, type_of, unwrap
from tilewright.support import SourceLoc, errors

_RENAMED: dict[str, Callable[..., Any]] = {
    "get_program_id": tl.program_id,
    "get_num_programs": tl.num_programs,
    "select": tl.where,
    "fabs": tl.abs,
    "fmax": tl.maximum,
    "fmin": tl.minimum,
}
_PAIRWISE: dict[str, Callable[..., Any]] = {"max": tl.maximum, "min": tl.minimum}
"""Functions of C with two arguments; with one, reductions of the language."""

_OF_PAIRS = (tl.maximum, tl.minimum, tl.where)
"""Functions that combine their last two arguments as an operator does."""

_OF_PROMOTED = (tl.abs, tl.cdiv)
"""Functions that compute with integers as an operator does."""

NOT_IN_C = frozenset({"condition", "range", "static_range", "constexpr", "static_print"})
"""Names of the language for which C has syntax."""

# printf's conversions; flags, width and precision are skipped, as the device ignores them.
_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l)?([diouxXeEfFgGcsp%])")


class CDeviceFunction(DeviceFunction):
    """A function of the source as a value: the combine function of a reduction."""

    def __init__(self, function: syntax.Function) -> None:
        self.function = function
        self.__name__ = function.name


class Inliner:
    """The interface by which semantics call a function of the source, as for reductions."""

    session: Session

    def call(
        self, ctx: Context, fn: DeviceFunction, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """The value that the call returns, its ops emitted through `ctx`."""
        assert isinstance(fn, CDeviceFunction) and not kwargs
        return inline(self.session, fn.function, list(args), ctx.loc)


@expression(syntax.Call)
def call_expression(frame: FunctionFrame, node: syntax.Call) -> object:
    """`f(a, b)`; for functions of the language also `f(a, axis = 1)`."""
    # Functions of the source come first: they may have names of the language.
    function = _function(frame, node.function)
    if function is not None:
        args = [frame.expression(_plain(frame, argument)) for argument in node.arguments]
        return inline(frame.session, function, args, frame.loc(node))
    if node.function in _OWN_HANDLERS:
        return _OWN_HANDLERS[node.function](frame, node)
    positional: list[object] = []
    named: dict[str, object] = {}
    for argument in node.arguments:
        # `axis = 1` parses as an assignment; no call of the language needs a real one there.
        if isinstance(argument, syntax.Assign) and isinstance(argument.target, syntax.Name):
            named[argument.target.name] = _argument(frame, argument.value)
        else:
            positional.append(_argument(frame, argument))
    stub = _stub(frame, node, len(positional))
    positional = _promoted(frame, node, stub, positional)
    if stub is tl.load and positional:
        check_named_load(frame, node, _plain(frame, node.arguments[0]))
    return _wrapped(semantics.call_builtin(frame.at(node), stub, positional, named))


def _promoted(
    frame: FunctionFrame, node: syntax.Call, stub: Callable[..., Any], args: list[object]
) -> list[object]:
    """Arguments of functions that compute as operators do, promoted as for operators."""
    if stub in _OF_PAIRS and len(args) >= 2:
        # select(c, a, b): the condition is not converted with its operands.
        return [*args[:-2], *usual_conversions(frame, node, *args[-2:])]
    if stub in _OF_PROMOTED:
        return [promote(frame, node, arg) for arg in args]
    return args


def _wrapped(value: object) -> object:
    if value is None or isinstance(value, tensor | tl.tuple):
        return value
    return tl.tuple(cast("Sequence[Any]", value)) if isinstance(value, tuple) else constexpr(value)


def _function(frame: FunctionFrame, name: str) -> syntax.Function | None:
    return next((f for f in frame.session.program.functions if f.name == name), None)


def _plain(frame: FunctionFrame, node: syntax.Expression | syntax.TypeName) -> syntax.Expression:
    # Types and braces are arguments of the language's functions only.
    if isinstance(node, syntax.TypeName | syntax.Braces):
        actual = "a type" if isinstance(node, syntax.TypeName) else "several in braces"
        frame.fail(node, errors.CSyntaxError("a value", actual))
    return node


def _argument(frame: FunctionFrame, node: syntax.Expression | syntax.TypeName) -> object:
    """A value, a type, the name of a function of the source, or several in braces."""
    if isinstance(node, syntax.Braces):
        return tl.tuple([_argument(frame, item) for item in node.items])
    if isinstance(node, syntax.TypeName):
        return type_of(named_type(frame, node))
    # A variable hides a function of the same name, as in C.
    if isinstance(node, syntax.Name) and frame.find(node.name) is None:
        function = _function(frame, node.name)
        if function is not None:
            return CDeviceFunction(function)
        if node.name == "None":
            return constexpr(None)
    return frame.expression(node)


def _stub(frame: FunctionFrame, node: syntax.Call, count: int) -> Callable[..., Any]:
    """The function of the language with a name. Errors: UndefinedName."""
    name = node.function
    if count >= 2 and name in _PAIRWISE:
        return _PAIRWISE[name]
    function: object = _RENAMED.get(name)
    if function is None and name not in NOT_IN_C:
        function = getattr(tl, name, None)
    if is_builtin(function):
        return cast("Callable[..., Any]", function)
    if frame.find(name) is not None:
        frame.fail(node, errors.InvalidOperation(f"call '{name}'", "it is a variable"))
    check_cuda(frame, node, name)
    function_names = [f.name for f in frame.session.program.functions]
    function_names += [*_RENAMED, *(n for n in tl.__all__ if is_builtin(getattr(tl, n)))]
    frame.fail(node, errors.UndefinedName(name, function_names))


# --- functions of the source ----------------------------------------------------------------------


def inline(
    session: Session,
    function: syntax.Function,
    args: list[object],
    caller: SourceLoc | None,
) -> object:
    """The value that a call returns; its ops are emitted in the caller."""
    name = function.name
    session.refuse_recursion(name, str, caller)
    if len(args) != len(function.parameters):
        raise errors.ArgumentCount(name, len(function.parameters), len(args), loc=caller)
    inner = FunctionFrame(session, function, caller)
    # Constants are declared in each frame: a frame has no access to its caller's variables.
    declare_constants(inner)
    inner.scopes.append({})
    for parameter, arg in zip(function.parameters, args, strict=True):
        type_ = parameter_type(inner, parameter, arg)
        # Arguments convert like assignments to the parameters (C17 6.5.2.2).
        value = converted(inner, parameter, arg, type_)
        variable = Variable(parameter.name, type_, fixed=parameter.type.is_fixed)
        inner.values[inner.declare(variable)] = value
    result = lower_body(inner, _common_shape(inner, args))
    # Ops that follow belong to the caller's line again.
    session.ctx.emitter.loc = caller
    return result


def _common_shape(frame: FunctionFrame, args: Sequence[object]) -> tuple[int, ...]:
    """The shape that the arguments of a call broadcast to."""
    shape: tuple[int, ...] = ()
    for arg in args:
        if isinstance(arg, tensor):
            shape = common_shape(frame.ctx, "call with", shape, shape_of(arg.handle.type))
    return shape


def parameter_type(frame: FunctionFrame, node: syntax.Parameter, arg: object) -> Type:
    """The type of a device function's parameter: without extents it accepts tiles of any shape, and
    scalars."""
    if node.extents:
        return with_constness_of(declared_type(frame, node), arg)
    element = named_type(frame, node.type)
    shape = shape_of(arg.handle.type) if isinstance(arg, tensor) else ()
    return with_constness_of(with_shape(element, shape), arg)


def lower_body(frame: FunctionFrame, shape: tuple[int, ...] = ()) -> object:
    """Lower the body of a function whose parameters are bound; returns its result.

    The result has the shape of the returned value; with several `return`s, that of the arguments,
    which is `shape`.
    """
    function = frame.function
    type_ = scalar_type(function.type)
    body = function.body.body
    if type_ is not None and not always_jumps(function.body):
        reason = "not every path through it returns one"
        operation = f"take the value of {function.name}()"
        frame.fail(function, errors.InvalidOperation(operation, reason, "end it with a return"))
    # No jump has happened yet; the flag is assigned only where one may happen.
    frame.values[frame.returned] = Unset()
    with frame.session.entered(function.name), frame.scope():
        # The common case: the result needs no variable, and keeps its own shape.
        if type_ is not None and _single_return(body):
            lower_statements(frame, body[:-1])
            return _returned(frame, cast("syntax.Jump", body[-1]), type_)
        if type_ is not None:
            frame.result = Variable("result", with_shape(type_, shape), hidden=True)
            frame.values[frame.result] = Unset()
        lower_statements(frame, body)
    return None if frame.result is None else frame.values[frame.result]


def _single_return(body: Sequence[syntax.Statement]) -> bool:
    """Whether the only `return` is the last statement."""
    last = body[-1] if body else None
    simple = isinstance(last, syntax.Jump) and last.value is not None
    return simple and not any("return" in jump_kinds(node) for node in body[:-1])


def _returned(frame: FunctionFrame, node: syntax.Jump, type_: Scalar) -> tensor:
    assert node.value is not None
    value = frame.expression(node.value)
    shape = shape_of(value.handle.type) if isinstance(value, tensor) else ()
    return converted(frame, node.value, value, with_constness_of(with_shape(type_, shape), value))


def declare_constants(frame: FunctionFrame) -> None:
    """Declare the constants outside of all functions."""
    for constant in frame.session.program.constants:
        STATEMENTS[type(constant)](frame, constant)


# --- functions of C's library ---------------------------------------------------------------------


def _printf(frame: FunctionFrame, node: syntax.Call) -> object:
    """`printf("x = %d", x)`: the device's print, which chooses the format by the type."""
    if not node.arguments or not isinstance(node.arguments[0], syntax.Text):
        expected, actual = "a string", "something else" if node.arguments else "nothing"
        frame.fail(node, errors.InvalidValue("printf", "format", expected, actual))
    text = node.arguments[0].value
    conversions = [kind for kind in _CONVERSION.findall(text) if kind != "%"]
    values = [frame.expression(_plain(frame, argument)) for argument in node.arguments[1:]]
    if len(conversions) != len(values):
        frame.fail(node, errors.ArgumentCount("printf", f"{len(conversions) + 1}", len(values) + 1))
    prefix = _CONVERSION.sub(lambda m: "%" if m[1] == "%" else "", text)
    # One flag for the whole print: hexadecimal only if all conversions are.
    options = {"hex": bool(conversions) and all(kind in "xXp" for kind in conversions)}
    # The device's print writes `prefix: value` itself.
    prefix = " ".join(prefix.split()).rstrip(" =:")
    semantics.call_builtin(frame.at(node), tl.device_print, [prefix, *values], options)
    return None


def _assert(frame: FunctionFrame, node: syntax.Call) -> object:
    """`assert(condition)`, `assert(condition, "message")`."""
    if not 1 <= len(node.arguments) <= 2:
        frame.fail(node, errors.ArgumentCount("assert", "1 or 2", len(node.arguments)))
    args = [frame.expression(_plain(frame, argument)) for argument in node.arguments]
    if len(args) == 2 and not isinstance(unwrap(args[1]), str):
        actual = describe(args[1])
        frame.fail(node, errors.InvalidValue("assert", "message", "a string", actual))
    # Run-time conditions are checked on the device, compile-time ones now.
    if isinstance(args[0], tensor):
        semantics.call_builtin(frame.at(node), tl.device_assert, args, {})
    elif not unwrap(args[0]):
        detail = str(unwrap(args[1])) if len(args) == 2 else "the condition is false"
        frame.fail(node, errors.CompileTimeAssertionFailure(detail))
    return None


def _size_of(frame: FunctionFrame, node: syntax.Call) -> object:
    """`sizeof(float)`."""
    if len(node.arguments) != 1 or not isinstance(node.arguments[0], syntax.TypeName):
        frame.fail(node, errors.CSyntaxError("sizeof(type)", "another argument"))
    # size_t is unsigned and has 64 bits.
    return TypedInteger(named_type(frame, node.arguments[0]).bytes, u64)


# Looked up before the language's functions, after those of the source.
_OWN_HANDLERS: dict[str, Callable[[FunctionFrame, syntax.Call], object]] = {
    "printf": _printf,
    "assert": _assert,
    "sizeof": _size_of,
}
