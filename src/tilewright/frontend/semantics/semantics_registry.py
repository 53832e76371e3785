"""The registry of implementations: language function -> function of this package.

    @implements(tl.program_id)
    def program_id(ctx: Context, axis: object) -> tensor: ...

A language function is a stub, a signature and a docstring; parameter names and defaults must equal
the stub's, which is checked while the implementations are imported. Compile-time arguments arrive
unwrapped: an implementation never gets a constexpr, except inside a tuple.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from types import FunctionType, MethodType
from typing import Any, NamedTuple, TypeVar, cast

from tilewright import language
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.language import (
    STUBS,
    Constexpr,
    DeviceFunction,
    constexpr_function,
    is_builtin,
    unwrap,
)
from tilewright.support import errors, import_late

F = TypeVar("F", bound=Callable[..., Any])


class Signature(NamedTuple):
    """Parameters of a function."""

    names: tuple[str, ...]
    """Positional parameters."""
    keyword_only: tuple[str, ...]
    required: int
    """Number of positional parameters without a default."""
    variadic: str
    """Name of `*args`, or empty."""
    defaults: tuple[object, ...]
    keyword_defaults: tuple[tuple[str, object], ...]


class Implementation(NamedTuple):
    """Entry of the registry for a stub."""

    fn: Callable[..., Any]
    name: str
    signature: Signature
    keywords: frozenset[str]


_REGISTRY: dict[Callable[..., Any], Implementation] = {}
"""Every implementation that has been imported, by its stub."""

_LIBRARY_CALLS = "tilewright.frontend.semantics.library_operands"
_AT_FIRST_USE = {
    "tilewright.language.extra.libdevice.fast_functions": _LIBRARY_CALLS,
    "tilewright.language.random": "tilewright.frontend.semantics.random_numbers",
}
"""Modules of stubs that few kernels use -> where they are implemented."""


def implementation_of(stub: Callable[..., Any]) -> Implementation | None:
    """The implementation of a stub; None if there is none."""
    if stub in _REGISTRY:
        return _REGISTRY[stub]
    if stub in language.library_functions.LIBRARY:
        return import_late(_LIBRARY_CALLS).implement(stub)
    module = _AT_FIRST_USE.get(stub.__module__)
    if module is not None:
        import_late(module)
    return _REGISTRY.get(stub)


def signature_of(fn: Callable[..., Any], skip: int = 0) -> Signature:
    """Read the parameters of a function from its code, without the first `skip`."""
    # Read from the code object: inspect.signature is far slower, and this runs for every stub.
    function = cast("FunctionType", fn)
    code = function.__code__
    positional, keyword = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    defaults = function.__defaults__ or ()
    variadic = names[positional + keyword] if code.co_flags & 4 else ""  # 4: CO_VARARGS
    return Signature(
        names[skip:positional],
        names[positional : positional + keyword],
        positional - skip - len(defaults),
        variadic,
        defaults,
        tuple(sorted((function.__kwdefaults__ or {}).items())),
    )


def register(
    stub: Callable[..., Any], fn: Callable[..., Any], signature: Signature
) -> Implementation:
    """Make `fn(ctx, ...)` the implementation of a stub."""
    assert stub not in _REGISTRY, f"two implementations of {STUBS[stub]}"
    keywords = frozenset((*signature.names, *signature.keyword_only))
    found = _REGISTRY[stub] = Implementation(fn, STUBS[stub], signature, keywords)
    return found


def implements(stub: Callable[..., Any]) -> Callable[[F], F]:
    """Register the decorated function `fn(ctx, ...)` as the implementation of a stub."""

    def decorate(fn: F) -> F:
        # Stubs are wrapped by their decorator: the inner function has the declared parameters.
        declared = signature_of(getattr(stub, "__wrapped__", stub))
        implemented = signature_of(fn, skip=1)
        assert implemented == declared, (
            f"{STUBS[stub]}: the implementation has {implemented}, the stub {declared}"
        )
        register(stub, fn, declared)
        return fn

    return decorate


def call_builtin(
    ctx: Context, stub: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """The result of a language function, its ops emitted through `ctx`.

    Errors: ArgumentCount, MissingArgument, UnknownArgument, RepeatedArgument.
    """
    implementation = implementation_of(stub)
    if implementation is None:
        name = STUBS[stub]
        ctx.fail(errors.InvalidOperation, f"call {name}", "this front end does not implement it")
    if kwargs:
        kwargs = _by_own_names(stub, implementation, kwargs)
    _check_call(ctx, implementation, args, kwargs)
    # Only the top level: readers of tuples unwrap the constexprs inside.
    plain = [a.value if isinstance(a, Constexpr) else a for a in args]
    # Most calls have no keywords.
    if not kwargs:
        return implementation.fn(ctx, *plain)
    named = {k: v.value if isinstance(v, Constexpr) else v for k, v in kwargs.items()}
    return implementation.fn(ctx, *plain, **named)


_NUMBERED = re.compile(r"arg(\d)")
"""Triton's names of the parameters of libdevice's functions."""


@cache
def _functions_of_libdevice() -> frozenset[Callable[..., Any]]:
    library = language.extra.libdevice
    return frozenset(filter(is_builtin, (getattr(library, name) for name in library.__all__)))


def _by_own_names(
    stub: Callable[..., Any], callee: Implementation, kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Keywords with our names of parameters: `arg1` of a function of libdevice is its second.
    `_semantic`, which functions written for Triton pass on, is ignored."""
    signature = callee.signature
    if "_semantic" in kwargs and "_semantic" not in callee.keywords:
        kwargs = {name: value for name, value in kwargs.items() if name != "_semantic"}
    numbers = {name: int(found[1]) for name in kwargs if (found := _NUMBERED.fullmatch(name))}
    if not numbers or stub not in _functions_of_libdevice():
        return kwargs
    own = {name: signature.names[n] for name, n in numbers.items() if n < len(signature.names)}
    renamed = {own.get(name, name): value for name, value in kwargs.items()}
    # fewer: a parameter is given by both of its names, which is refused as an unknown argument
    return renamed if len(renamed) == len(kwargs) else kwargs


def call(ctx: Context, callee: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a callable of a kernel: a stub, a method, a device or a compile-time function."""
    # A bound stub: `x.to(...)` is `tl.to(x, ...)`.
    if isinstance(callee, MethodType) and is_builtin(callee.__func__):
        return call_builtin(ctx, callee.__func__, (callee.__self__, *args), kwargs)
    if is_builtin(callee):
        return call_builtin(ctx, callee, args, kwargs)
    if isinstance(callee, DeviceFunction):
        return ctx.functions.call(ctx, callee, args, kwargs)
    if isinstance(callee, constexpr_function):
        function = cast("Callable[..., Any]", callee)
        return Constexpr(function(*args, **kwargs))
    ctx.fail(
        errors.InvalidOperation,
        f"call {getattr(callee, '__name__', callee)!r}",
        "it is no function of the language",
        "decorate it with @jit, or with @constexpr_function if it works on compile-time values",
    )


def _check_call(
    ctx: Context, callee: Implementation, args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    signature = callee.signature
    given = len(args)
    if given > len(signature.names) and not signature.variadic:
        ctx.fail(errors.ArgumentCount, callee.name, _expected(signature), given)
    for name in kwargs:
        if name not in callee.keywords:
            ctx.fail(errors.UnknownArgument, callee.name, name, sorted(callee.keywords))
        if name in signature.names[:given]:
            ctx.fail(errors.RepeatedArgument, callee.name, name)
    if given < signature.required:
        missing = [n for n in signature.names[given : signature.required] if n not in kwargs]
        if missing:
            # tl.maximum((a, b)) is a common slip, from functions that take a sequence.
            error = errors.MissingArgument(callee.name, tuple(missing), loc=ctx.loc)
            if missing == ["dtype"]:
                words = ", ".join(signature.names[:given])
                error.advice = f"pass a dtype, such as {callee.name}({words}, dtype=tl.float32)"
            elif given == 1 and isinstance(unwrap(args[0]), tuple | list):
                error.advice = f"pass the items one by one: {callee.name}(a, b)"
            raise error


def _expected(signature: Signature) -> str:
    most, least = len(signature.names), signature.required
    return str(most) if most == least else f"{least} to {most}"
