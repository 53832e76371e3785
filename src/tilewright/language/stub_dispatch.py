"""Language functions are stubs: a call of one goes to the dispatcher that is active.

    @builtin
    def program_id(axis: int | constexpr) -> tensor:
        '''...'''
        ...

A stub has a signature and a docstring, no body. While a kernel is interpreted, `ACTIVE` holds a
`Dispatcher` that passes each call on to the semantics; without one the call is a designed error.
The compiler's front ends do not call stubs: they look them up in the registry of the semantics.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, update_wrapper, wraps
from types import CellType, CodeType, FunctionType
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from tilewright.language.pickle_by_name import PickledByName
from tilewright.support import cached_property, errors, text_of, user_boundary

P = ParamSpec("P")
R = TypeVar("R")

BINARY_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift",
    "rshift", )  # fmt: skip
COMPARISON_OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY_OPERATORS = ("neg", "pos", "invert")
CONVERSIONS = ("bool", "int", "float", "index")
"""Names that `Dispatcher.operator` is called with; the others are "getitem" (tensor, index) and
"range" (a `tl.range` to iterate over; gives an iterator of scalars)."""


class Dispatcher(Protocol):
    """Runs calls of stubs, operators of tensors and calls of device functions."""

    def call(
        self, stub: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        """The result of a language function."""
        ...

    def operator(self, name: str, args: tuple[Any, ...]) -> object:
        """The result of a Python operator with a tensor among its operands."""
        ...

    def call_function(
        self, function: DeviceFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        """The result of a function written in the language."""
        ...


ACTIVE: ContextVar[Dispatcher | None] = ContextVar("tilewright_dispatcher", default=None)
"""The dispatcher of the kernel that this thread interprets, if any."""

STUBS: dict[Callable[..., Any], str] = {}
"""Every stub, with its name in messages."""


IN_A_KERNEL = "call it from a function under @jit, and launch that with kernel[grid](...)"


def active_dispatcher(what: str, instead: str = IN_A_KERNEL) -> Dispatcher:
    """The active dispatcher. what, instead: the operation and the remedy, for the error if there is
    none."""
    dispatcher = ACTIVE.get()
    if dispatcher is None:
        raise errors.InvalidOperation(
            f"use {what} outside of a kernel",
            "it is defined only while a kernel is compiled or interpreted",
            instead,
        )
    return dispatcher


def dispatch_operator(name: str, *args: Any) -> Any:
    """Apply a Python operator to tensors through the active dispatcher."""
    return active_dispatcher(f"the operator '{name}' on a tensor").operator(name, args)


def builtin(fn: Callable[P, R]) -> Callable[P, R]:
    """Make a stub of a signature with a docstring."""

    @wraps(fn)
    def stub(*args: Any, **kwargs: Any) -> Any:
        # A context variable, not an argument: stubs are called by user code.
        dispatcher = ACTIVE.get()
        if dispatcher is not None:
            return dispatcher.call(stub, args, kwargs)
        with user_boundary:
            return active_dispatcher(f"'{fn.__name__}'")

    STUBS[stub] = fn.__name__
    return cast("Callable[P, R]", stub)


def host_builtin(fn: Callable[P, R]) -> Callable[P, R]:
    """Register a function that dispatches its calls itself, since it also works on plain numbers
    outside of a kernel."""
    STUBS[fn] = fn.__name__
    return fn


def must_use_result(x: Any, s: object = True) -> Any:
    """Mark a function whose call as a statement is an error; `s` may be the reason."""
    if isinstance(x, str):
        return partial(must_use_result, s=x)
    x._must_use_result = s
    return x


def unused_result(callee: Any) -> str | None:
    """The reason why a result must be used; None if it need not."""
    marked = getattr(callee, "_must_use_result", False)
    if not marked:
        return None
    return marked if isinstance(marked, str) else "the function is called for its result"


def is_builtin(value: object) -> bool:
    """Whether `value` is a stub of the language."""
    # type() rather than isinstance: this runs for every call in a kernel.
    return type(value) is FunctionType and value in STUBS


class DeviceFunction(PickledByName):
    """A function written in the language: a kernel, or a helper that kernels call.

    fn: the Python function, whose source the front end compiles.
    """

    __name__: str

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = cast("FunctionType", fn)
        text_of(fn)  # as it is now, at the import: the file may change before it is compiled
        update_wrapper(self, fn)

    @property
    def outside(self) -> str:
        """The remedy for a call outside of a kernel."""
        return IN_A_KERNEL

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run as a part of the kernel that is being interpreted."""
        dispatcher = ACTIVE.get()
        if dispatcher is None:
            with user_boundary:
                dispatcher = active_dispatcher(f"'{self.__name__}'", self.outside)
        return dispatcher.call_function(self, args, kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fn.__module__}:{self.fn.__qualname__})"

    def reduce_by_value(self) -> tuple[Any, ...]:
        """By the function itself, which some picklers can do without its name."""
        return type(self), (self.fn,)

    # --- attributes of functions ------------------------------------------------------------------

    @cached_property  # not a property: programs assign to it
    def __globals__(self) -> dict[str, Any]:
        return self.fn.__globals__

    @property
    def __code__(self) -> CodeType:
        return self.fn.__code__

    @property
    def __defaults__(self) -> tuple[Any, ...] | None:
        return self.fn.__defaults__

    @property
    def __kwdefaults__(self) -> dict[str, Any] | None:
        return self.fn.__kwdefaults__

    @property
    def __closure__(self) -> tuple[CellType, ...] | None:
        return self.fn.__closure__


def device_function(fn: Callable[..., Any]) -> DeviceFunction:
    """Decorator of library functions that are written in the language."""
    return DeviceFunction(fn)
