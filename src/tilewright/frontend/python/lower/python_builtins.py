"""Python's own functions inside a kernel: min, max, len, range, isinstance, print ..."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any, cast

from tilewright import language
from tilewright.frontend import semantics
from tilewright.frontend.python.captured_names import MISSING
from tilewright.frontend.python.lower.expressions import attribute_of
from tilewright.frontend.python.lower.function_frame import FunctionFrame
from tilewright.frontend.python.lower.iterables import iterate
from tilewright.frontend.python.lower.language_values import (
    describe,
    is_static,
    on_host,
    static_value,
    wrap,
)
from tilewright.frontend.python.lower.operators import apply_binary
from tilewright.frontend.typed_numbers import joined
from tilewright.language import Constexpr
from tilewright.language import tuple as language_tuple
from tilewright.support import errors

Arguments = tuple[object, ...]
Keywords = dict[str, object]
Handler = Callable[[FunctionFrame, ast.Call, Arguments, Keywords], object]

BUILTINS: dict[Callable[..., object], Handler] = {}


def at_compile_time(callee: Callable[..., object], args: Arguments, kwargs: Keywords) -> object:
    """Run a host function on compile-time values."""
    name = str(getattr(callee, "__name__", "the function"))
    labelled: list[tuple[object, object]] = [*enumerate(args, 1), *kwargs.items()]
    for label, value in labelled:
        if not is_static(value):
            what = f"argument {label} of {name}()"
            raise errors.NotConstexpr(what, describe(value), advice=for_tensors(name))
    plain = [static_value(value) for value in args]
    named = {key: static_value(value) for key, value in kwargs.items()}
    return wrap(on_host(f"evaluate {name}()", lambda: callee(*plain, **named)))


def for_tensors(name: str) -> str | None:
    """The hint that names the function of the language with a host function's name, if any."""
    return f"tl.{name} works on tensors" if name in language.__all__ else None


def refuse_reduction(name: str, iterable: object) -> None:
    """Refuse a tensor as the iterable of Python's max, min or sum.

    Errors: UnsupportedLanguageConstruct.
    """
    if isinstance(iterable, language.tensor):
        what, instead = f"Python's {name}() of a tensor", f"reduce it by tl.{name}(x)"
        raise errors.UnsupportedLanguageConstruct(what, instead)


def _builtin(
    function: Callable[..., object], least: int, most: int, *keywords: str
) -> Callable[[Handler], Handler]:
    """Decorator: the implementation of a Python builtin in kernels.

    It takes `least` to `most` arguments by position, and those named `keywords` by keyword.
    """

    def register(handler: Handler) -> Handler:
        def checked(
            frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords
        ) -> object:
            name = function.__name__
            if not least <= len(args) <= most:
                expected = least if least == most else f"{least} to {most}"
                frame.fail(node, errors.ArgumentCount(name, expected, len(args)))
            for keyword in kwargs:
                if keyword not in keywords:
                    frame.fail(node, errors.UnknownArgument(name, keyword, keywords))
            return handler(frame, node, args, kwargs)

        BUILTINS[function] = checked
        return handler

    return register


# No limit; a number, so that one comparison checks every function.
_MANY = 1 << 30


@_builtin(
    builtins.range, 1, 3, "num_stages", "loop_unroll_factor", "disallow_acc_multi_buffer",
    "flatten", "warp_specialize", "disable_licm",
)  # fmt: skip
def _range(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    """A loop, or at compile time a sequence. Hints are those of `tl.range`, which Triton accepts
    here and ignores."""
    bounds = [cast("int", static_value(a) if is_static(a) else a) for a in args]
    first, second, third = (*bounds, None, None)[:3]
    assert first is not None
    hints = cast("dict[str, Any]", {name: static_value(value) for name, value in kwargs.items()})
    return language.range(first, second, third, **hints)


@_builtin(builtins.min, 1, _MANY, "key", "propagate_nan")
def _min(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    """`min(a, b, ...)`: element-wise if any of them is a tensor."""
    return _extreme(frame, node, args, kwargs, builtins.min, language.minimum)


@_builtin(builtins.max, 1, _MANY, "key", "propagate_nan")
def _max(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    """`max(a, b, ...)`: element-wise if any of them is a tensor."""
    return _extreme(frame, node, args, kwargs, builtins.max, language.maximum)


def _extreme(
    frame: FunctionFrame,
    node: ast.Call,
    args: Arguments,
    kwargs: Keywords,
    python: Callable[..., object],
    stub: Callable[..., object],
) -> object:
    # Python's min takes one iterable or several operands.
    if len(args) == 1:
        refuse_reduction(python.__name__, args[0])
    operands = tuple(iterate(frame, node, args[0])) if len(args) == 1 else args
    # Compile-time operands follow Python, also in the choice between equal operands.
    if is_static(operands):
        chosen = static_value(at_compile_time(python, operands, kwargs))
        return wrap(joined(chosen, map(static_value, operands)))
    result = operands[0]
    for operand in operands[1:]:
        result = semantics.call_builtin(frame.ctx, stub, (result, operand), kwargs)
    return result


@_builtin(builtins.abs, 1, 1)
def _abs(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    if is_static(args[0]):
        return at_compile_time(builtins.abs, args, kwargs)
    return semantics.call_builtin(frame.ctx, language.abs, args, kwargs)


@_builtin(builtins.len, 1, 1)
def _len(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    """Number of items of a tuple; first extent of a tile."""
    (value,) = args
    if isinstance(value, language.tensor):
        if not value.shape:
            reason = "a scalar has no length"
            frame.fail(node, errors.InvalidOperation("take the length of a tensor", reason))
        return value.shape[0]
    return Constexpr(len(list(iterate(frame, node, value))))


@_builtin(builtins.isinstance, 2, 2)
def _isinstance(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    """Whether a value is a tensor, a constexpr, or a constexpr of a Python type."""
    value, classes = args[0], cast("type", static_value(args[1]))
    frame.at(node)

    def holds() -> bool:
        # isinstance(N, int) must hold for a constexpr parameter N, which Triton code tests.
        is_static_instance = isinstance(value, Constexpr) and isinstance(
            static_value(value), classes
        )
        return is_static_instance or isinstance(value, classes)

    return Constexpr(on_host("evaluate isinstance()", holds))


@_builtin(builtins.getattr, 2, 3)
def _getattr(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    try:
        return attribute_of(frame, node, args[0], str(static_value(args[1])))
    except errors.UnknownAttribute:
        if len(args) < 3:
            raise
        return args[2]


@_builtin(builtins.hasattr, 2, 2)
def _hasattr(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    value = _getattr(frame, node, (*args, MISSING), kwargs)
    return Constexpr(value is not MISSING)


@_builtin(builtins.print, 0, _MANY, "hex")
def _print(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    """`tl.device_print`, with the leading string as its prefix."""
    prefixed = bool(args) and is_static(args[0]) and isinstance(static_value(args[0]), str)
    # device_print needs a prefix first; Python's print does not.
    whole = args if prefixed else (Constexpr(""), *args)
    return wrap(semantics.call_builtin(frame.ctx, language.device_print, whole, kwargs))


@_builtin(builtins.tuple, 0, 1)
@_builtin(builtins.list, 0, 1)
def _tuple(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    return language_tuple(iterate(frame, node, args[0]) if args else ())


@_builtin(builtins.sum, 1, 2, "start")
def _sum(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    """The sum of the items of a tuple."""
    refuse_reduction("sum", args[0])
    result = _start(frame, node, "sum", args, kwargs)
    for item in iterate(frame, node, args[0]):
        result = apply_binary(frame, node, ast.Add(), result, item)
    return result


@_builtin(builtins.zip, 0, _MANY, "strict")
def _zip(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    columns = [tuple(iterate(frame, node, arg)) for arg in args]
    strict = bool(_static(frame, node, "the argument strict of zip()", kwargs.get("strict", False)))
    rows = on_host("zip tuples", lambda: list(zip(*columns, strict=strict)))
    return language_tuple(language_tuple(row) for row in rows)


@_builtin(builtins.enumerate, 1, 2, "start")
def _enumerate(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    start = _start(frame, node, "enumerate", args, kwargs)
    first = cast("int", _static(frame, node, "the start of enumerate()", start))
    items = tuple(iterate(frame, node, args[0]))
    pairs = on_host("enumerate a tuple", lambda: list(enumerate(items, first)))
    return language_tuple(language_tuple([Constexpr(i), item]) for i, item in pairs)


def _start(
    frame: FunctionFrame, node: ast.Call, name: str, args: Arguments, kwargs: Keywords
) -> object:
    """The second argument of `sum` and `enumerate`, by position or name; 0 if there is none."""
    if len(args) == 2 and kwargs:
        frame.fail(node, errors.RepeatedArgument(name, "start"))
    return args[1] if len(args) == 2 else kwargs.get("start", Constexpr(0))


def _static(frame: FunctionFrame, node: ast.Call, what: str, value: object) -> object:
    """The value of a compile-time argument. Errors: NotConstexpr."""
    if not is_static(value):
        frame.fail(node, errors.NotConstexpr(what, describe(value)))
    return static_value(value)


@_builtin(builtins.reversed, 1, 1)
def _reversed(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    return language_tuple(reversed(tuple(iterate(frame, node, args[0]))))


@_builtin(builtins.int, 1, 2, "base")
def _int(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    return _convert(frame, node, args, kwargs, builtins.int, "tl.int32")


@_builtin(builtins.float, 1, 1)
def _float(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    return _convert(frame, node, args, kwargs, builtins.float, "tl.float32")


@_builtin(builtins.bool, 1, 1)
def _bool(frame: FunctionFrame, node: ast.Call, args: Arguments, kwargs: Keywords) -> object:
    return _convert(frame, node, args, kwargs, builtins.bool, "tl.int1")


def _convert(
    frame: FunctionFrame,
    node: ast.Call,
    args: Arguments,
    kwargs: Keywords,
    python: type,
    dtype: str,
) -> object:
    # Python's int() of a tensor would have to give a compile-time number.
    if not is_static(args):
        what = f"calling {python.__name__}() on a run-time value"
        frame.unsupported(node, what, f"write x.to({dtype})")
    return at_compile_time(python, args, kwargs)


def _plain(function: Callable[..., object]) -> None:
    """A Python function for compile-time values only."""
    BUILTINS[function] = lambda frame, node, args, kwargs: at_compile_time(function, args, kwargs)


for _function in (
    builtins.all, builtins.any, builtins.callable, builtins.divmod, builtins.pow, builtins.repr,
    builtins.round, builtins.sorted, builtins.str,
):  # fmt: skip
    _plain(cast("Callable[..., object]", _function))
