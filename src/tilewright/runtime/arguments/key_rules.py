"""The launch key: which parts of an argument decide the variant of a kernel that is launched.

Each parameter has one `KeyRule`, made from its declaration. Both kinds of launches read it:

    KeyRule.key     Python: argument -> (its element of `BoundCall.key`, the value to pass)
    KeyRule.flags   machine code: how `native_dispatch` describes the argument by words

    part of an argument         in the key (`specialization`)    in the words
    type, dtype, device         Spec.type, Spec.device           type, value
    divisibility by DIVISORS    Spec.divisor                     value; not if UNALIGNED
    sign                        Spec.sign                        value
    equality to 1               the key is 1                     value; not if UNSPECIALIZED
    a compile-time value        constant_key                     value or identity, if CONSTEXPR
    a declared type             Declared.handler                 FLOAT, SIGNED, RANGE, MULTIPLE

The words may separate arguments that have one key, and never unite two: a cache entry holds the
variant that Python has found for the first launch with its words. The property tests of
specialization compare both.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any

from tilewright.ir.types import DType
from tilewright.runtime.arguments.host_arrays import plain
from tilewright.runtime.arguments.kernel_parameters import Declared, KernelParam
from tilewright.runtime.arguments.specialization import (
    HANDLERS,
    Handled,
    Handler,
    Spec,
    annotated_key,
    constant_key,
    integer_key,
)
from tilewright.support.data_class import dataclass

CONSTEXPR, UNSPECIALIZED, UNALIGNED, BY_VALUE, FLOAT, SIGNED, LAYOUT = 1, 2, 4, 8, 16, 32, 64
"""Flags: the argument is a compile-time value; no fact about its value matters; divisibility does
not; numbers decide by their value, although they are passed; integers are passed as floats; the
declared range of integers has a sign; rank, shape and strides of an array decide too."""

RANGE, MULTIPLE = 8, 32
"""First bits of two numbers in the flags: the bits of the declared range of integers, 0 for any
that fits 64 bits; and what integers and addresses must be multiples of, or 0. Python launches what
is outside the range or no multiple, and raises the error."""

_MAX_MULTIPLE = 1 << 32
"""A declared multiple must be below this to fit in the flags."""


@dataclass(frozen=True, slots=True)
class KeyRule:
    """The parts of the arguments of one parameter that decide the variant."""

    key: Handler
    flags: int


def rules_of(params: Sequence[KernelParam], by_value: Collection[str] = ()) -> list[KeyRule]:
    """The rules of parameters; by_value: names of those whose numbers decide by their value."""
    return [
        KeyRule(_handler(param), _flags(param) | (BY_VALUE if param.name in by_value else 0))
        for param in params
    ]


def machine_readable(params: Sequence[KernelParam]) -> bool:
    """Whether flags can describe all parameters, so that machine code can launch the kernel."""
    return sys.implementation.name == "cpython" and not any(
        param.is_keywords
        or param.is_rest
        or (param.declared is not None and param.declared.multiple >= _MAX_MULTIPLE)
        or (param.type is not None and not param.is_constexpr)
        for param in params
    )


def _handler(param: KernelParam) -> Handler:
    if param.is_constexpr:
        return _constant
    if param.declared is not None:
        return param.declared.handler
    if param.type is not None:
        return annotated_key(param.type)
    if param.do_not_specialize:
        return _unspecialized
    if param.do_not_specialize_on_alignment:
        return _unaligned
    return HANDLERS.key_and_value


def _constant(value: object) -> Handled:
    return constant_key(value), plain(value)


def _unspecialized(value: Any) -> Handled:
    # Not through HANDLERS, which make 1 a compile-time constant.
    if type(value) is int:
        return integer_key(value).plain, value
    return _unaligned(value)


def _unaligned(value: Any) -> Handled:
    key, passed = HANDLERS.key_and_value(value)
    return (key.plain if isinstance(key, Spec) else key), passed


def _flags(param: KernelParam) -> int:
    if param.is_constexpr:
        return CONSTEXPR
    declared = 0 if param.declared is None else _declared_flags(param.declared)
    if param.do_not_specialize:
        return declared | UNSPECIALIZED
    return declared | (UNALIGNED if param.do_not_specialize_on_alignment else 0)


def _declared_flags(declared: Declared) -> int:
    """The checks of machine code on an argument of a declared type."""
    type_ = declared.type
    multiple = declared.multiple << MULTIPLE if declared.multiple > 1 else 0
    if not isinstance(type_, DType) or type_.is_bool:
        return multiple
    if type_.is_float:
        return multiple | FLOAT
    if type_.is_signed:
        return multiple | (SIGNED | type_.bits << RANGE if type_.bits < 64 else 0)
    # 63 for u64: Python passes what a signed word cannot hold
    return multiple | min(type_.bits, 63) << RANGE
