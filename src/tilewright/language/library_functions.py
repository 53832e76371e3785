"""Library functions: a stub of the language together with the tile code that computes it.

    @library_function(Operands.FLOATS, ulp=(2.5, 2))
    def cosh(x: tensor) -> tensor:
        '''Hyperbolic cosine.'''
        e = tl.exp(tl.abs(x))
        return 0.5 * e + 0.5 / e

    @fp32_form(cosh)
    def cosh_fp32(x: tensor) -> tensor: ...

The decorated name is a stub. A kernel that calls it runs the body once, on tensors: operators and
calls of language functions emit ops. Python's own control flow (tuples, loops over coefficients,
helper functions) is evaluated then and costs nothing in the kernel. A loop with a run-time bound is
a `device_function`, which the body may call. docs/howto/add-a-math-function.md walks through one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol, TypeVar, cast, overload

from tilewright.language.core import Operand
from tilewright.language.dtypes import dtype
from tilewright.language.stub_dispatch import builtin
from tilewright.language.tensors import tensor

Body = Callable[..., tensor]
Unary = Callable[[Operand], tensor]
Binary = Callable[[Operand, Operand], tensor]
Ternary = Callable[[Operand, Operand, Operand], tensor]
Quaternary = Callable[[Operand, Operand, Operand, Operand], tensor]


class Operands(Enum):
    """The dtypes in which a body receives its operands, and the dtype of the result.

    Operands have one shape. Unless stated otherwise, floats are converted to one dtype, and the
    result is rounded to the common dtype of the operands as the kernel passes them.
    """

    FLOATS = auto()
    """Floats as fp64 if that is their common dtype, else as fp32."""
    FP64 = auto()
    """Floats as fp64."""
    FLOATS_UNROUNDED = auto()
    """As `FLOATS`; the result keeps the dtype that the body gives it."""
    FP64_UNROUNDED = auto()
    """As `FP64`; the result keeps the dtype that the body gives it."""
    COMMON_DTYPE = auto()
    """Floats in their common dtype; the result keeps the dtype that the body gives it."""
    FP64_AND_INTEGER = auto()
    """A float as fp64, and an integer as int32."""
    INTEGER_AND_FP64 = auto()
    """An integer as int32, and a float as fp64."""
    INTEGERS = auto()
    """Integers in their common dtype, of at least 32 bits; the result keeps the body's dtype."""
    POWER = auto()
    """As `FLOATS`; an exponent that is an integer may take a form of its own (`Form`)."""


class Form(Enum):
    """Bodies that replace the one under `library_function` for some operands."""

    FP32 = auto()
    """The result has less than 64 bits."""
    LITERAL_EXPONENT = auto()
    """`POWER`: the exponent is a small whole literal, which is passed as an `int`."""
    INTEGER_EXPONENT = auto()
    """`POWER`: the exponent is a tensor of integers, and the result has less than 64 bits. The
    operands are those of the call, not converted."""


class LibraryFunction(NamedTuple):
    """operands: a rule, or the dtype of each, which the result does not follow. op: the function of
    `ops.MATH_FUNCTIONS` that replaces the body. ulp: largest errors of fp32 and of fp64."""

    operands: Operands | tuple[dtype, ...]
    body: Body
    forms: dict[Form, Body]
    op: str | None
    ulp: tuple[float, float] | None


LIBRARY: dict[Callable[..., Any], LibraryFunction] = {}
"""The library functions whose modules have been imported, by stub."""


class _Declare(Protocol):
    @overload
    def __call__(self, body: Callable[[tensor], tensor], /) -> Unary: ...
    @overload
    def __call__(self, body: Callable[[tensor, tensor], tensor], /) -> Binary: ...
    @overload
    def __call__(self, body: Callable[[tensor, tensor, tensor], tensor], /) -> Ternary: ...
    @overload
    def __call__(
        self, body: Callable[[tensor, tensor, tensor, tensor], tensor], /
    ) -> Quaternary: ...


def library_function(
    operands: Operands | tuple[dtype, ...],
    *,
    op: str | None = None,
    ulp: tuple[float, float] | None = None,
) -> _Declare:
    """Decorator: a stub with its body. The parameters are as in `LibraryFunction`.

    ulp: None for a function that is exact, or whose error docs/libdevice.md states in words.
    """

    def declare(body: Body) -> Body:
        stub = builtin(body)
        LIBRARY[stub] = LibraryFunction(operands, body, {}, op, ulp)
        return stub

    return cast("_Declare", declare)


B = TypeVar("B", bound=Body)


def form(stub: Callable[..., tensor], kind: Form) -> Callable[[B], B]:
    """Decorator: a body of a library function for some operands. The body itself is returned."""

    def declare(body: B) -> B:
        LIBRARY[stub].forms[kind] = body
        return body

    return declare


def fp32_form(stub: Callable[..., tensor]) -> Callable[[B], B]:
    """Decorator: the body for results of less than 64 bits, which computes in fp32."""
    return form(stub, Form.FP32)


@builtin
def rarely(condition: tensor, common: tensor, slow: Body, *args: tensor) -> tensor:
    """`slow(*args)` where `condition` holds, else `common`; a branch around `slow`.

    `slow` is evaluated for single elements; it may use its arguments and literals only.
    """
    ...
