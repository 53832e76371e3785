"""Facts about integers and addresses along each dimension: runs, constancy, divisibility.

For a tile and a dimension, with indices along the others fixed:
    contiguity c:  every aligned group of c elements counts up by one (addresses: by one element)
    constancy k:   every aligned group of k elements is equal
    divisibility d: the first element of every contiguous group is a multiple of d (addresses: of d
                    bytes)
All three are powers of two; a scalar has one dimension of extent 1. Example: a 4 x 8 tile of a
matrix with rows of 64 elements,

    start + row * 64 + column      contiguity (1, 8), divisibility (1, 8), constancy (1, 1)

Numbers wrap, and a run counts modulo 2^bits, so it may pass the largest number. Arithmetic is
assumed not to wrap only where a number is widened (to 64 bits, or to an offset of an address), and
in `sign`, which serves addresses only: address arithmetic that wraps is invalid. The groups of
quotients and remainders follow from ranges (integer_ranges.py).

The idea is that of Triton's axis analysis. The rules (alignment_rules.py) are derived from the
definitions above, and tests/property/test_alignment.py checks them by evaluation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import gcd

from tilewright.ir.types import DType, PointerType, Type, element_of, shape_of
from tilewright.ops import Sign
from tilewright.support.data_class import dataclass

LARGEST = 1 << 30
"""The divisibility of zero, and the largest divisor of a fact."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Facts for each dimension, and for all elements.

    value: the number that every element equals, if known; sign: whether an element may be negative,
    provided that sums and products of natural numbers do not wrap; unit: the step of a run (1;
    bytes of an element for addresses).
    """

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    value: int | None = None
    sign: Sign = Sign.UNKNOWN
    unit: int = 1

    @property
    def natural(self) -> bool:
        """Whether no element is negative."""
        return self.sign is Sign.NON_NEGATIVE

    @property
    def dims(self) -> range:
        """The dimensions."""
        return range(len(self.contiguity))

    def each(self, dim: int) -> int:
        """The divisor of every element along `dim`."""
        return self.start(dim, 1)

    @property
    def every(self) -> int:
        """The divisor of every element."""
        return max(self.each(dim) for dim in self.dims)

    def start(self, dim: int, run: int) -> int:
        """The divisor of the first elements of groups of `run` <= contiguity elements."""
        if run == self.contiguity[dim]:
            return self.divisibility[dim]
        return gcd(self.divisibility[dim], run * self.unit)

    def blocks(self, dim: int, limit: int) -> int:
        """The longest group that counts up within a block [i * limit, (i + 1) * limit)."""
        aligned = min(self.divisibility[dim], limit) // self.unit
        return gcd(self.contiguity[dim], max(aligned, 1))


def power_of_two_in(number: int) -> int:
    """The largest power of two that divides a number."""
    return min(number & -number, LARGEST) if number else LARGEST


def extents_of(type_: Type) -> tuple[int, ...]:
    """The shape of a tile; a scalar has one element."""
    return shape_of(type_) or (1,)


def unit_of(type_: Type) -> int:
    """The step of runs of a type."""
    element = element_of(type_)
    return element.element.bytes if isinstance(element, PointerType) else 1


def unknown(type_: Type) -> Alignment:
    """The facts that hold for every value."""
    ones = (1,) * len(extents_of(type_))
    return bounded(type_, Alignment(ones, ones, ones))


def meet(a: Alignment, b: Alignment) -> Alignment:
    """The facts that hold for both."""
    if a == b:
        return a
    runs = tuple(gcd(a.contiguity[d], b.contiguity[d]) for d in a.dims)
    return Alignment(
        runs,
        tuple(gcd(a.start(d, runs[d]), b.start(d, runs[d])) for d in a.dims),
        tuple(gcd(a.constancy[d], b.constancy[d]) for d in a.dims),
        a.value if a.value == b.value else None,
        min(a.sign, b.sign),
        a.unit,
    )


@lru_cache(maxsize=4096)
def bounded(type_: Type, fact: Alignment, sign: Sign = Sign.UNKNOWN) -> Alignment:
    """The claims that a value of the type can satisfy, and `sign`.

    No group is longer than its dimension. A run of integers is at most half as long as their range,
    so that a run whose first number is a multiple of its length never wraps. Floats and bools have
    no runs. A fact about every element is stated for all dimensions.
    """
    element = element_of(type_)
    sizes = [power_of_two_in(n) for n in extents_of(type_)]
    constancy = tuple(gcd(k, n) for k, n in zip(fact.constancy, sizes, strict=True))
    if isinstance(element, DType) and not element.is_integer:
        ones = (1,) * len(sizes)
        return Alignment(ones, ones, constancy, fact.value if element.is_bool else None)
    longest = 1 << (element.bits - 1)
    runs = tuple(gcd(c, n, longest) for c, n in zip(fact.contiguity, sizes, strict=True))
    fact = replace(fact, unit=unit_of(type_))
    starts = [fact.start(d, run) for d, run in enumerate(runs)]
    every = max((s for s, run in zip(starts, runs, strict=True) if run == 1), default=1)
    divisibility = tuple(
        max(s, every) if run == 1 else s for s, run in zip(starts, runs, strict=True)
    )
    signed = isinstance(element, DType) and element.is_signed
    value = None if fact.value is None else _wrapped(fact.value, element.bits, signed)
    if not signed or value is not None:
        sign = Sign.NON_NEGATIVE if not signed or (value or 0) >= 0 else Sign.UNKNOWN
    return Alignment(runs, divisibility, constancy, value, sign, fact.unit)


def _wrapped(value: int, bits: int, signed: bool) -> int:
    """An integer wrapped to a type."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value
