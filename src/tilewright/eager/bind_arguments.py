"""Binding of arguments to the parameters of a kernel function, with the rules of the compiler."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from tilewright.language import Constexpr, base_value
from tilewright.support import errors

_P = inspect.Parameter
_NAMED = (_P.POSITIONAL_OR_KEYWORD, _P.KEYWORD_ONLY)
_POSITIONAL = (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD)


def bind_call(
    name: str,
    signature: inspect.Signature,
    annotations: Mapping[str, object],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> inspect.BoundArguments:
    """The arguments of a call with defaults; those annotated `constexpr` become constexprs.

    Errors: ArgumentCount, UnknownArgument, RepeatedArgument, MissingArgument.
    """
    try:
        # inspect binds as Python does; only its messages are replaced
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise _wrong_call(name, signature, args, kwargs, str(error)) from None
    bound.apply_defaults()
    for parameter, value in bound.arguments.items():
        if is_constexpr(annotations.get(parameter)):
            bound.arguments[parameter] = _compile_time(value)
    return bound


def is_constexpr(annotation: object) -> bool:
    """Whether an annotation, evaluated or text, is `constexpr`."""
    if isinstance(annotation, str):
        # an annotation may be the text `tl.constexpr` or `constexpr`: the compiler accepts both
        return annotation.rpartition(".")[2].strip() == "constexpr"
    return annotation is Constexpr


def _compile_time(value: Any) -> Any:
    """The value as a constexpr, or its run-time value; None stays None for `is None`."""
    if value is None or isinstance(value, Constexpr | base_value):
        return value
    return Constexpr(value)


def _wrong_call(
    name: str,
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reason: str,
) -> errors.TilewrightError:
    """The error of a call that Python rejects."""
    parameters = signature.parameters.values()
    positional = [p.name for p in parameters if p.kind in _POSITIONAL]
    named = [p.name for p in parameters if p.kind in _NAMED]
    # Python only reports that binding failed; the first mistake that explains it is reported.
    for keyword in kwargs:
        if keyword not in named:
            return errors.UnknownArgument(name, keyword, named)
        if keyword in positional[: len(args)]:
            return errors.RepeatedArgument(name, keyword)
    if len(args) > len(positional):
        return errors.ArgumentCount(name, len(positional), len(args))
    given = {*positional[: len(args)], *kwargs}
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in given]
    return errors.MissingArgument(name, tuple(missing)) if missing else _unexplained(name, reason)


def _unexplained(name: str, reason: str) -> errors.TilewrightError:
    return errors.InvalidOperation(f"call {name}()", reason)
