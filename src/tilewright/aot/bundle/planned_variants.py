"""Variants of a bundle from specs."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.aot.bundle.bundle_kernel import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    MULTIPLE,
    Fact,
    PlannedVariant,
)
from tilewright.aot.spec import KernelSpec
from tilewright.compiler import StatedArgument
from tilewright.ir.types import DType, PointerType, Scalar
from tilewright.support import errors


def planned_variant(spec: KernelSpec) -> PlannedVariant:
    """The variant of a spec. Errors: InvalidBundle for tuples and tensor descriptors."""
    name = spec.kernel.__name__
    arguments: dict[str, Scalar] = {}
    facts: list[Fact] = []
    for argument, stated in spec.stated.items():
        if not isinstance(stated.type, DType | PointerType):
            problem = (
                f"'{argument}' is a tuple or a tensor descriptor; pass pointer, shape, strides"
            )
            raise errors.InvalidBundle(name, problem)
        arguments[argument] = stated.type
        facts += _facts(argument, stated)
    return PlannedVariant(name, arguments, facts, spec.constexprs, spec.grid, spec.compile)


def _facts(argument: str, stated: StatedArgument) -> Iterator[Fact]:
    if stated.is_constant:
        assert isinstance(stated.value, int)
        yield Fact(argument, EQUAL, stated.value)
        return
    if stated.divisor > 1:
        yield Fact(argument, MULTIPLE, stated.divisor)
    if stated.low is not None:
        yield Fact(argument, AT_LEAST, stated.low)
    if stated.high is not None:
        yield Fact(argument, AT_MOST, stated.high - 1)
