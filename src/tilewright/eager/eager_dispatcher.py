"""Execution of stubs, operators and device functions while a kernel runs as Python.

The semantics are those of the compiler's front ends, applied to an emitter that computes at once.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple, cast

import numpy as np

from tilewright import language
from tilewright.eager.bind_arguments import bind_call
from tilewright.eager.eager_builder import EagerBuilder
from tilewright.eager.host_values import annotations_of
from tilewright.eager.python_constructs import PythonConstructs
from tilewright.eager.python_namespace import Namespaces
from tilewright.eager.rewrite_source import HELPER, functions_in, rewritten
from tilewright.frontend.python import (
    Environment,
    Session,
    apply_operator,
    as_tuple,
    call_signature,
    constant_range,
    inline_call,
    is_tuple,
    refuse_extensions,
    source_of,
    tuple_like,
)
from tilewright.frontend.semantics import (
    Context,
    FrontendOptions,
    TypedInt,
    as_offset,
    call_builtin,
    cast_to,
    check_step,
    compare,
    converted,
    getitem,
    index_dtype,
    integer_bounds,
    materialize,
    offset_dtype,
    truth,
    unary,
)
from tilewright.interp import BOUND, CONDITION, ConcreteValue, Machine, numpy_dtype
from tilewright.ir import Value
from tilewright.language import (
    ACTIVE,
    BINARY_OPERATORS,
    COMPARISON_OPERATORS,
    UNARY_OPERATORS,
    DeviceFunction,
    tensor,
    type_of,
)
from tilewright.ops import Sign
from tilewright.support import errors
from tilewright.support.fresh_stack import nested

_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "index": int}


_SESSION: ContextVar[Session] = ContextVar("session")
"""State of the running program; programs that wait for others have their own contexts."""


class _Runnable(NamedTuple):
    """A device function that is ready to run."""

    fn: FunctionType
    parameters: tuple[inspect.Signature, Mapping[str, object]]


class EagerDispatcher:
    """One launch: the context of the semantics, and the functions that run in it.

    codes: of all kernel functions that have run, with their files, for locations of errors
    """

    def __init__(self, machine: Machine, options: FrontendOptions) -> None:
        self.codes: dict[CodeType, str] = {}
        self._functions: dict[DeviceFunction, _Runnable] = {}
        self._plain: set[CodeType] = set()
        self._context = Context(EagerBuilder(machine), options, _Caller(self))
        constructs = PythonConstructs(self._context, self._indices, self.codes)
        self._namespaces = Namespaces(
            {
                HELPER: constructs,
                "getattr": constructs.attribute,
                "hasattr": constructs.has_attribute,
            }
        )

    @property
    def session(self) -> Session:
        """The functions that run in the program, and the context.

        Shared with inlining in combine regions, since recursion through those is rejected too.
        """
        return _SESSION.get()

    @contextmanager
    def running(self) -> Generator[None]:
        """A program before its first function, with stubs and operators bound to it."""
        tokens = ACTIVE.set(self), _SESSION.set(Session(self._context))
        try:
            yield
        finally:
            ACTIVE.reset(tokens[0])
            _SESSION.reset(tokens[1])

    # --- language.Dispatcher ----------------------------------------------------------------------

    def call(
        self, stub: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        """The result of a language function."""
        values = [self._as_function(arg) for arg in args]
        named = {key: self._as_function(value) for key, value in kwargs.items()}
        return call_builtin(self._context, stub, values, named)

    def argument(self, value: Any) -> Any:
        """An argument of the kernel as its options require: integers perhaps as int64."""
        if isinstance(value, tensor):
            return as_offset(self._context, value)
        if isinstance(value, TypedInt):
            return converted(value, offset_dtype(self._context, value.dtype))
        return tuple_like(value, [*map(self.argument, value)]) if is_tuple(value) else value

    def _as_function(self, arg: object) -> object:
        """A function that the kernel defines as one of the language; other values unchanged."""
        if isinstance(arg, FunctionType) and arg.__code__ in self.codes:
            return _NestedFunction(arg)
        return arg

    def operator(self, name: str, args: tuple[Any, ...]) -> object:
        """The result of a Python operator with a tensor among its operands."""
        ctx = self._context
        if name in BINARY_OPERATORS:
            # kernels treat lists as tuples, in operators as well
            return apply_operator(ctx, name, *map(as_tuple, args))
        if name in COMPARISON_OPERATORS:
            return compare(ctx, name, *args)
        if name in UNARY_OPERATORS:
            return unary(ctx, name, *args)
        if name == "getitem":
            return getitem(ctx, *args)
        if name == "range":
            return self._iterate(*args)
        if name == "bool":
            condition = truth(self._context, args[0])
            elements = _elements(condition)
            self._decide(CONDITION, condition)
            return bool(elements)
        return self._convert(name, args[0])

    @nested
    def call_function(
        self, function: DeviceFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The result of a function written in the language, whose Python code is run."""
        signature = call_signature(args, kwargs)
        self.session.refuse_recursion(function, lambda f: f.__name__, None, signature)
        running = self._runnable(function)
        bound = bind_call(function.__name__, *running.parameters, args, kwargs)
        with self.session.entered(function, signature):
            return running.fn(*bound.args, **bound.kwargs)

    def _runnable(self, function: DeviceFunction) -> _Runnable:
        runnable = self._functions.get(function)
        if runnable is None:
            fn = function.fn
            code, file = rewritten(fn)
            if self._context.options.strict_triton:
                refuse_extensions(source_of(fn), Environment(fn), self._context.options)
            self.codes.update(dict.fromkeys((code, *functions_in(code)), file))
            # not rewritten, since its source is not available: `for` in it has no `T.loop`
            if code is fn.__code__:
                self._plain.add(code)
            parameters = (inspect.signature(fn), annotations_of(fn))
            bound = self._namespaces.bind(fn, code)
            runnable = self._functions[function] = _Runnable(bound, parameters)
        return runnable

    # --- Python's view of scalars -----------------------------------------------------------------

    def _convert(self, name: str, x: tensor) -> Any:
        """Convert a scalar for `int(x)`, `float(x)`, and as an index."""
        elements = _elements(x.handle)
        if elements.size != 1:
            reason = f"it is a tile of shape {elements.shape}"
            instead = "" if name == "index" else "call functions of tl: tl.exp(x), not math.exp(x)"
            raise errors.InvalidOperation(f"convert a tensor with {name}()", reason, instead)
        value = elements.reshape(()).item()
        if name == "index" and not isinstance(value, int):
            reason = f"it is {x.type}, not an integer"
            raise errors.InvalidOperation("use a tensor as an index", reason)
        return _CONVERSIONS[name](value)

    def _decide(self, what: str, value: Value) -> None:
        emitter = self._context.emitter
        if isinstance(emitter, EagerBuilder):
            emitter.decide(what, value)

    def _iterate(self, loop: language.range) -> Iterator[object]:
        """A range outside a `for` statement: constant indices, as for a comprehension.

        In code that is not rewritten this may be a `for` statement, and the indices are tensors.
        """
        # The nearest frame of kernel code decides; frames of stubs and this package are in between.
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame.f_code not in self.codes:
            frame = frame.f_back
        if frame is not None and frame.f_code in self._plain:
            return self._indices(loop)
        return iter(constant_range(self._context, loop))

    def _indices(self, loop: language.range) -> Iterator[tensor]:
        """The indices of a loop of the kernel, in the type that the compiler gives them."""
        ctx = self._context
        # Bounds, checks and index type are those of compiled code; then Python's own range runs.
        start, end, step = integer_bounds(ctx, loop)
        check_step(ctx, step)
        dtype = index_dtype(ctx, start, end, step)
        # The bounds are converted to the index type first, so that they wrap as in compiled loops.
        bounds = [cast_to(ctx, part, type_of(dtype)) for part in (start, end)]
        parts = (*bounds, materialize(ctx, step))
        for part in parts:
            self._decide(BOUND, part.handle)
        first, last, amount = (self._convert("index", part) for part in parts)
        lower = cast("ConcreteValue", bounds[0].handle)
        sign = lower.sign if amount > 0 else Sign.UNKNOWN
        for number in range(first, last, amount):
            index = ConcreteValue(dtype, np.array(number, numpy_dtype(dtype)))
            index.sign, index.work = sign, lower.work
            yield tensor(index)


class _NestedFunction(DeviceFunction):
    """A function inside a kernel as the combine function of a reduction; its code runs already."""


class _Caller:
    """Calls device functions for the semantics, such as combine functions of reductions."""

    def __init__(self, dispatcher: EagerDispatcher) -> None:
        self._dispatcher = dispatcher

    def call(
        self, ctx: Context, fn: DeviceFunction, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """The result of its Python code; inside a region, which is IR, of its syntax tree."""
        # Inside a combine region the emitter is an ordinary builder, whose values have no elements.
        if isinstance(fn, _NestedFunction):
            return fn.fn(*args, **kwargs)
        if isinstance(ctx.emitter, EagerBuilder):
            return self._dispatcher.call_function(fn, tuple(args), kwargs)
        try:
            return inline_call(self._dispatcher.session, fn, args, kwargs)
        except errors.SourceNotAvailable:  # its Python code must have no `if`
            return self._dispatcher.call_function(fn, tuple(args), kwargs)


def _elements(value: Value) -> np.ndarray[Any, np.dtype[Any]]:
    """The elements of a value that has some."""
    if isinstance(value, ConcreteValue):
        return value.data
    raise errors.InvalidOperation(
        "look at a value inside a combine function",
        "it stands for all elements of the reduction at once",
        "select with tl.where",
    )
