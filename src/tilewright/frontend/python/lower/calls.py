"""Calls: language functions, inlined functions, compile-time functions, Python's own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import NoReturn, cast

from tilewright import language
from tilewright.frontend import semantics
from tilewright.frontend.python.lower.expressions import items
from tilewright.frontend.python.lower.function_frame import FunctionFrame, expression
from tilewright.frontend.python.lower.host_calls import call_python
from tilewright.frontend.python.lower.inlining import inline
from tilewright.frontend.python.lower.iterables import iterate
from tilewright.frontend.python.lower.language_values import (
    describe,
    is_static,
    on_host,
    static_value,
    wrap,
)
from tilewright.frontend.python.lower.python_builtins import BUILTINS, at_compile_time, for_tensors
from tilewright.language import (
    DeviceFunction,
    constexpr,
    constexpr_function,
    dtype,
    user_aggregate,
)
from tilewright.support import errors

Arguments = tuple[object, ...]
Keywords = dict[str, object]

DEBUGGERS = frozenset({"bdb", "debugpy", "ipdb", "pdb", "pdbpp", "pudb", "IPython"})
"""Modules of debuggers."""

_VALUE_CLASSES: tuple[type, ...] = (
    dtype, language.pointer_type, language.block_type, language.range, language.static_range, slice,
    language.condition, language.constexpr_type, language.tuple_type,
)  # fmt: skip
_OTHER_ARRAYS = ("math", "numpy", "torch")
_PLAIN_OWNERS = (str, int, float, bytes, tuple, list, dict, dtype)


@expression(ast.Call)
def call(frame: FunctionFrame, node: ast.Call) -> object:
    """`f(a, *b, c=d, **e)`."""
    callee = frame.expression(node.func)
    args = tuple(items(frame, node.args))
    kwargs = _keywords(frame, node) if node.keywords else {}
    # Arguments have changed the location; the call's own op has that of the call.
    frame.at(node)
    return apply(frame, node, callee, args, kwargs)


def _keywords(frame: FunctionFrame, node: ast.Call) -> Keywords:
    kwargs: Keywords = {}
    for keyword in node.keywords:
        value = frame.expression(keyword.value)
        spread = {keyword.arg: value} if keyword.arg is not None else value
        if not isinstance(spread, Mapping):
            reason = f"it is {describe(value)}"
            frame.fail(keyword.value, errors.InvalidOperation("spread '**' of this", reason))
        for name, item in cast("Mapping[str, object]", spread).items():
            if name in kwargs:
                frame.fail(keyword.value, errors.RepeatedArgument("the call", name))
            kwargs[name] = item
    return kwargs


def apply(
    frame: FunctionFrame, node: ast.Call, callee: object, args: Arguments, kwargs: Keywords
) -> object:
    """The result of calling a language value."""
    callee = cast("object", language.unwrap(callee))
    if language.is_builtin(callee):
        stub = cast("Callable[..., object]", callee)
        return wrap(semantics.call_builtin(frame.ctx, stub, args, kwargs))
    if isinstance(callee, DeviceFunction):
        return inline(frame.session, callee, args, kwargs, frame.loc(node))
    if isinstance(callee, constexpr_function):
        return at_compile_time(cast("Callable[..., object]", callee), args, kwargs)
    # Types before other callables: int and float are classes and have handlers.
    if isinstance(callee, BuiltinFunctionType | type):
        handler = BUILTINS.get(cast("Callable[..., object]", callee))
        if handler is not None:
            return handler(frame, node, args, kwargs)
    if isinstance(callee, BuiltinFunctionType | MethodType):
        return _method(frame, node, callee, args, kwargs)
    if isinstance(callee, type):
        return _construct(frame, node, cast("type[object]", callee), args, kwargs)
    _refuse_unless_plain(frame, node, callee, args, kwargs)
    return call_python(frame.session, cast("Callable[..., object]", callee), args, kwargs)


def _refuse_unless_plain(
    frame: FunctionFrame, node: ast.Call, callee: object, args: Arguments, kwargs: Keywords
) -> None:
    """Refuse functions other than the user's unless all arguments are compile-time values."""
    if not callable(callee) or is_debugger(callee) or _of_decorator(frame, node, callee):
        _refuse(frame, node, callee)
    static = is_static((*args, *kwargs.values()))
    if not static and (not isinstance(callee, FunctionType) or _package(callee) in _OTHER_ARRAYS):
        _refuse(frame, node, callee)


def _package(callee: object) -> str:
    return str(getattr(callee, "__module__", "") or "").partition(".")[0]


def _of_decorator(frame: FunctionFrame, node: ast.Call, callee: object) -> bool:
    decorated = isinstance(getattr(callee, "__wrapped__", None), DeviceFunction)
    return decorated or _is_wrapper(frame, node)


def _method(
    frame: FunctionFrame,
    node: ast.Call,
    callee: BuiltinFunctionType | MethodType,
    args: Arguments,
    kwargs: Keywords,
) -> object:
    """A method: of a tensor (a stub), or of a compile-time value; or a function of `math`."""
    owner = cast("object", callee.__self__)
    function = getattr(callee, "__func__", None)
    if language.is_builtin(function):
        stub = cast("Callable[..., object]", function)
        return wrap(semantics.call_builtin(frame.ctx, stub, (owner, *args), kwargs))
    if isinstance(owner, user_aggregate):
        if isinstance(function, DeviceFunction):
            return inline(frame.session, function, (owner, *args), kwargs, frame.loc(node))
        return call_python(frame.session, cast("Callable[..., object]", callee), args, kwargs)
    # Built-in functions of a module have the module as `__self__`.
    plain_module = isinstance(owner, ModuleType) and owner.__name__ == "math"
    # Methods of plain values are evaluated at compile time.
    if plain_module or isinstance(owner, _PLAIN_OWNERS):
        return at_compile_time(cast("Callable[..., object]", callee), args, kwargs)
    _refuse_unless_plain(frame, node, callee, args, kwargs)
    return call_python(frame.session, cast("Callable[..., object]", callee), args, kwargs)


def _construct(
    frame: FunctionFrame, node: ast.Call, callee: type[object], args: Arguments, kwargs: Keywords
) -> object:
    """Classes that make compile-time values, ranges and tuples."""
    if issubclass(callee, user_aggregate):
        return call_python(frame.session, callee, args, kwargs)
    if callee is constexpr:
        return _to_constexpr(frame, node, args)
    if callee is language.tuple:
        return language.tuple(iterate(frame, node, args[0]) if args else ())
    operation = f"make a {callee.__name__}"
    if callee in _VALUE_CLASSES or issubclass(callee, Enum):
        # These classes take plain numbers, not constexprs, but may be given run-time bounds.
        plain = [static_value(a) if is_static(a) else a for a in args]
        named = {k: static_value(v) if is_static(v) else v for k, v in kwargs.items()}
        return on_host(operation, lambda: callee(*plain, **named))
    # Named tuples keep their run-time items, so they are called with unconverted values.
    if hasattr(callee, "_fields"):
        return on_host(operation, lambda: callee(*args, **kwargs))
    _refuse(frame, node, callee)


def _to_constexpr(frame: FunctionFrame, node: ast.Call, args: Arguments) -> object:
    if len(args) != 1:
        frame.fail(node, errors.ArgumentCount("constexpr", 1, len(args)))
    # A run-time value remains one, as under the annotation: uses that need a constant fail.
    return constexpr(static_value(args[0])) if is_static(args[0]) else args[0]


def _refuse(frame: FunctionFrame, node: ast.Call, callee: object) -> NoReturn:
    """Raise the error for a value that cannot be called, with a remedy."""
    name = str(getattr(callee, "__qualname__", getattr(callee, "__name__", callee)))
    module = str(getattr(callee, "__module__", "") or "")
    if is_debugger(callee):
        refuse_debugger(frame, node)
    if isinstance(callee, dtype):
        reason = "a dtype is not a function"
        frame.fail(node, errors.InvalidOperation(f"call {callee}", reason, "write x.to(dtype)"))
    if not callable(callee):
        reason = "it is not a function"
        frame.fail(node, errors.InvalidOperation(f"call {describe(callee)}", reason))
    instead = "put @jit above it, or @constexpr_function if it computes constants"
    if module == "builtins":
        instead = "kernels know min, max, abs, len, range, isinstance, print and a few more"
    if _package(callee) in _OTHER_ARRAYS:
        last = name.rpartition(".")[2]
        instead = for_tensors(last) or "the functions of tilewright.language work on tensors"
    if isinstance(getattr(callee, "__wrapped__", None), DeviceFunction):
        instead = "remove the decorator above its @jit: kernels call what @jit gives"
    elif _is_wrapper(frame, node):
        instead = "this is a decorator's wrapper: put @jit innermost, right above the 'def'"
    frame.unsupported(node, f"calling the Python function '{name}'", instead)


def is_debugger(callee: object) -> bool:
    """Whether a function starts a debugger."""
    name = str(getattr(callee, "__qualname__", ""))
    return callee is breakpoint or name.endswith("set_trace") or _package(callee) in DEBUGGERS


def _is_wrapper(frame: FunctionFrame, node: ast.Call) -> bool:
    """Whether the current function takes any arguments and calls a function of its closure."""
    fn = getattr(frame.session.stack[-1], "fn", None)  # functions inside functions have none
    outside = () if fn is None else fn.__code__.co_freevars
    is_outside = isinstance(node.func, ast.Name) and node.func.id in outside
    # The wrapper of a decorator takes *args and closes over the function that it decorates.
    return is_outside and frame.source.tree.args.vararg is not None


def refuse_debugger(frame: FunctionFrame, node: ast.expr | ast.stmt) -> NoReturn:
    """Raise the error for a debugger, which cannot stop in compiled code."""
    instead = "run it in the interpreter: @jit(interpret=True), or TILEWRIGHT_INTERPRET=1"
    frame.unsupported(node, "stopping compiled code in a debugger", instead)
