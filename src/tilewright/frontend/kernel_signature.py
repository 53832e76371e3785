"""The arguments of a kernel at its compilation: types, constants, facts."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal

from tilewright.ir.types import PointerType, Type, i32, i64
from tilewright.support.data_class import dataclass

ArgKind = Literal["value", "constexpr", "tuple", "descriptor"]


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """One argument of a launch, bound to the parameter `name`.

    kind: a run-time `value` of scalar type `type`; a `constexpr` with its Python `value`, which is
    a scalar of `type` in the kernel if that is given (an integer argument that is 1); a `tuple`
    of further arguments in `items`, where `value` may be the named-tuple class to keep; or a tensor
    `descriptor`, whose items are the pointer, the extents and all strides but the last, and whose
    value is (shape of blocks, padding).
    facts: properties of every value passed: `aligned` (bytes, of a pointer), `multiple_of`.
    """

    name: str
    kind: ArgKind
    type: Type | None = None
    value: object = None
    facts: dict[str, int] = field(default_factory=dict[str, int])
    items: tuple[ArgSpec, ...] = ()


_LINE = 16
"""Bytes that the address and the strides of a host's descriptor are multiples of."""


def descriptor_spec(
    name: str,
    pointer: PointerType,
    block_shape: tuple[int, ...],
    padding: str,
    even_rows: bool = False,
) -> ArgSpec:
    """A tensor descriptor of the host; even_rows: the last extent is a multiple of 16 bytes."""
    rank, natural = len(block_shape), {"non_negative": 1}
    even = {**natural, "multiple_of": max(_LINE // pointer.element.bytes, 1)}
    address = ArgSpec(name, "value", pointer, facts={"aligned": _LINE, "descriptor": rank})
    extents = [ArgSpec(f"{name}_shape_{d}", "value", i32, facts=natural) for d in range(rank)]
    if even_rows:
        extents[-1] = replace(extents[-1], facts=even)
    strides = [ArgSpec(f"{name}_stride_{d}", "value", i64, facts=even) for d in range(rank - 1)]
    items = (address, *extents, *strides)
    return ArgSpec(name, "descriptor", value=(block_shape, padding), items=items)


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """The arguments of a kernel in the order of its parameters.

    Keyword arguments that fill `**META` follow the parameters; each is a constexpr. A parameter
    that is not mentioned takes its default. The IR function takes the run-time values in this
    order, tuples flattened.
    """

    args: tuple[ArgSpec, ...]
