"""Inlining of calls: parameters bound to arguments, the body lowered in place.

Every call of a function written in the language is inlined, also under `noinline`, which affects
code size only.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tilewright.frontend.python.lower.function_frame import (
    FUNCTION_END,
    FunctionFrame,
    Returned,
    Session,
)
from tilewright.frontend.python.lower.language_values import (
    NONE,
    is_tuple,
    static_value,
    wrap,
)
from tilewright.frontend.python.lower.statement_sequence import lower_statements
from tilewright.language import DeviceFunction, aggregate_value, constexpr, dtype, tensor
from tilewright.language import tuple as language_tuple
from tilewright.support import SourceLoc, errors

Parameters = dict[str, object]


def inline(
    session: Session,
    function: DeviceFunction,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    caller: SourceLoc | None,
) -> object:
    """The value that a call returns; its ops are emitted at the caller's insertion point.

    A parameter annotated `constexpr` also takes run-time values: in an inlined function the
    annotation has no effect, and uses that need a compile-time value fail.
    """
    signature = call_signature(args, kwargs)
    session.refuse_recursion(function, lambda called: called.__name__, caller, signature)
    frame = FunctionFrame(session, function, caller)
    arguments = frame.source.tree.args
    bound = bind_arguments(function, arguments, args, kwargs)
    frame.scope.update({name: _as_parameter(value) for name, value in bound.items()})
    value, _ = lower_body(frame, function, signature)
    # Location of the caller again: later ops have the call's line.
    session.ctx.emitter.loc = caller
    return value


def _as_parameter(value: object) -> object:
    """The value of a parameter: a dtype becomes a constexpr, for `d.value` as in Triton."""
    return constexpr(value) if isinstance(value, dtype) else value


def call_signature(args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """Types and compile-time values of a call's arguments, which determine the lowered body."""
    return (
        *map(_static_part, args),
        *((name, _static_part(value)) for name, value in kwargs.items()),
    )


def _static_part(value: object) -> object:
    if isinstance(value, tensor):
        return value.handle.type
    if is_tuple(value):
        return tuple(map(_static_part, value))
    if isinstance(value, aggregate_value):
        return (type(value), *map(_static_part, value.parts()))
    # By text: 1, 1.0 and True are equal.
    plain = static_value(value)
    return plain if callable(plain) else repr(plain)


def lower_body(
    frame: FunctionFrame, function: DeviceFunction, signature: object = None
) -> tuple[object, ast.stmt | None]:
    """Lower the body of a function whose parameters are bound.

    Returns the value, and a `return` statement that returns it, if there is one.
    """
    with frame.session.entered(function, signature):
        outcome = lower_statements(frame, frame.source.tree.body, FUNCTION_END)
    return (outcome.value, outcome.node) if isinstance(outcome, Returned) else (NONE, None)


def bind_arguments(
    function: DeviceFunction,
    arguments: ast.arguments,
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> Parameters:
    """Parameter -> value, defaults included, as Python binds a call."""
    name = function.__name__
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    keyword_only = [a.arg for a in arguments.kwonlyargs]
    # Positional-only names are left out: passed by keyword, they go into **kwargs, as in Python.
    by_name = {a.arg for a in (*arguments.args, *arguments.kwonlyargs)}
    # strict=False: too few arguments are completed by defaults, too many are reported below.
    bound: Parameters = dict(zip(positional, args, strict=False))
    surplus = args[len(positional) :]
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = language_tuple(surplus)
    elif surplus:
        raise errors.ArgumentCount(name, len(positional), len(args))
    further: Parameters = {}
    for key, value in kwargs.items():
        if key in bound and key in by_name:
            raise errors.RepeatedArgument(name, key)
        if key not in by_name and arguments.kwarg is None:
            raise errors.UnknownArgument(name, key, [*positional, *keyword_only])
        (bound if key in by_name else further)[key] = value
    if arguments.kwarg is not None:
        bound[arguments.kwarg.arg] = further
    return with_defaults(function, positional, keyword_only, bound)


def with_defaults(
    function: DeviceFunction, positional: list[str], keyword_only: list[str], bound: Parameters
) -> Parameters:
    """`bound`, completed by the defaults of a function. Errors: MissingArgument."""
    values = function.__defaults__ or ()
    # Defaults belong to the last parameters, hence both reversed.
    defaults: Parameters = dict(zip(reversed(positional), reversed(values), strict=False))
    defaults.update(function.__kwdefaults__ or {})
    missing: list[str] = []
    for parameter in (*positional, *keyword_only):
        if parameter in bound:
            continue
        if parameter in defaults:
            bound[parameter] = wrap(defaults[parameter])
        else:
            missing.append(parameter)
    if missing:
        raise errors.MissingArgument(function.__name__, tuple(missing))
    return bound


def is_constexpr_annotation(annotation: ast.expr) -> bool:
    """Whether an annotation reads `constexpr`, `tl.constexpr`, or either as a string."""
    # `from __future__ import annotations` or quotes leave the annotation as text.
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.rpartition(".")[2].strip() == "constexpr"
    if isinstance(annotation, ast.Attribute):
        return annotation.attr == "constexpr"
    return isinstance(annotation, ast.Name) and annotation.id == "constexpr"
