"""Lane values: the elements of a tile value in the lanes of one vector step of a loop nest.

`Lanes` is uniform (one scalar for all lanes), affine (base + stride * lane, represented by the
scalar base) or a vector. Affine integers make accesses contiguous: an address whose offset is
affine with stride 1 is one vector load. They are closed under the addition and multiplication of
index arithmetic, and decay to a vector elsewhere. As in the GPU back end, address arithmetic is
assumed not to wrap.
"""

from __future__ import annotations

from math import gcd

from tilewright.llvm import Code, Val, integer_literal, zero_of
from tilewright.support.data_class import dataclass

# Every number divides 0: large enough for all tests, and the cap of multiples.
_ANY_MULTIPLE = 1 << 30


@dataclass(frozen=True, slots=True)
class Lanes:
    """A value per lane.

    base: scalar operand if uniform or affine, else vector operand
    stride: 0 uniform, n affine, None vector
    multiple: a divisor of `base` (of an integer before it wraps: only its power of two divides a
        number that may have wrapped)
    """

    base: Val
    stride: int | None = 0
    multiple: int = 1

    @property
    def is_uniform(self) -> bool:
        return self.stride == 0

    @property
    def is_vector(self) -> bool:
        return self.stride is None

    @property
    def is_affine(self) -> bool:
        return self.stride is not None and self.stride != 0


@dataclass(frozen=True, slots=True)
class Address:
    """Addresses per lane: a scalar base plus an offset in elements (None: the base in every lane).

    Uniform offsets are added to the base, at their own loop level.
    """

    base: Val
    offset: Lanes | None = None


def uniform(base: Val) -> Lanes:
    """The same scalar in every lane."""
    constant = base.constant
    multiple = 1 if constant is None else abs(constant) or _ANY_MULTIPLE
    return Lanes(base, 0, multiple)


def holds(condition: Lanes) -> bool:
    """Whether a condition is known to be true in every lane."""
    return condition.is_uniform and condition.base.constant == 1


def literal(value: int, type_: str = "i32") -> Lanes:
    """An integer constant."""
    return uniform(integer_literal(value, type_))


class LaneMath:
    """Arithmetic on lane values of one width."""

    __slots__ = ("code", "vectors", "width")

    def __init__(self, code: Code, width: int) -> None:
        self.code = code
        self.width = width
        self.vectors: dict[Lanes, Val] = {}

    def vector(self, value: Lanes) -> Val:
        """The value as an LLVM vector (as a scalar if the width is 1); made once."""
        if value.stride is None:
            return value.base
        vector = self.vectors.get(value)
        if vector is None:
            vector = self.vectors[value] = self._make_vector(value.base, value.stride)
        return vector

    def _make_vector(self, base: Val, stride: int) -> Val:
        splat = self.code.splat(base, self.width)
        if stride == 0 or self.width == 1:
            return splat
        steps = self.code.step_vector(base.type, self.width, stride)
        return self.code.binary("add", splat, steps)

    def wrap(self, value: Val) -> Lanes:
        """A lane value of a full vector; of width 1 it is uniform."""
        return Lanes(value, 0 if self.width == 1 else None)

    def add(self, x: Lanes, y: Lanes, instruction: str = "add") -> Lanes:
        """x + y (or x - y) of integers of one type."""
        if x.stride is None or y.stride is None:
            return self.wrap(self.code.binary(instruction, self.vector(x), self.vector(y)))
        stride = x.stride + y.stride if instruction == "add" else x.stride - y.stride
        base = self.code.binary(instruction, x.base, y.base)
        return Lanes(base, stride, gcd(x.multiple, y.multiple))

    def multiply(self, x: Lanes, y: Lanes) -> Lanes:
        """x * y of integers of one type."""
        if x.is_uniform and not y.is_uniform:
            x, y = y, x
        if x.stride is None or not y.is_uniform:
            return self.wrap(self.code.binary("mul", self.vector(x), self.vector(y)))
        factor = y.base.constant
        # A stride has to be a number: it becomes the literal step vector.
        if x.stride != 0 and factor is None:
            return self.wrap(self.code.binary("mul", self.vector(x), self.vector(y)))
        multiple = min(x.multiple * y.multiple, _ANY_MULTIPLE)
        if factor == 1:
            return x
        if factor == 0:
            return literal(0, x.base.type)
        base = self.code.binary("mul", x.base, y.base)
        return Lanes(base, x.stride * (factor or 0), multiple)

    def divide(self, x: Lanes, divisor: int) -> tuple[Lanes, Lanes]:
        """Quotient and remainder of non-negative indices by a positive constant."""
        return self.quotient(x, divisor), self.remainder(x, divisor)

    def quotient(self, x: Lanes, divisor: int) -> Lanes:
        """The quotient of non-negative indices by a positive constant."""
        if divisor == 1:
            return x
        if self._has_one_quotient(x, divisor):
            by = integer_literal(divisor, x.base.type)
            return Lanes(self.code.binary("udiv", x.base, by), 0)
        return self._divided("udiv", x, divisor)

    def remainder(self, x: Lanes, divisor: int) -> Lanes:
        """The remainder of non-negative indices by a positive constant."""
        if divisor == 1:
            return literal(0, x.base.element)
        if self._has_one_quotient(x, divisor):
            by = integer_literal(divisor, x.base.type)
            multiple = gcd(x.multiple, divisor)
            return Lanes(self.code.binary("urem", x.base, by), x.stride, multiple)
        return self._divided("urem", x, divisor)

    def _has_one_quotient(self, x: Lanes, divisor: int) -> bool:
        """Whether all lanes have the quotient of lane 0: a step is within one block of the power of
        two that it spans, which the divisor does not divide."""
        if x.is_uniform:
            return True
        return self.counts_up(x) and divisor % self._step_block(x) == 0

    def _divided(self, instruction: str, x: Lanes, divisor: int) -> Lanes:
        vector = self.vector(x)
        by = self.code.splat(integer_literal(divisor, vector.element), self.width)
        return self.wrap(self.code.binary(instruction, vector, by))

    def counts_up(self, x: Lanes) -> bool:
        """Whether an affine number does not wrap within a step.

        It does not if it starts at a multiple of a power of two that is at least the step.
        """
        if x.stride is None or x.stride < 0:
            return False
        block = min(x.multiple & -x.multiple, 1 << (int(x.base.type[1:]) - 1))
        return block >= self._step_block(x)

    def _step_block(self, x: Lanes) -> int:
        """The least power of two above all numbers that a step adds to an affine number."""
        return 1 << ((x.stride or 0) * (self.width - 1)).bit_length()

    def widen(self, x: Lanes, signed: bool, element: str) -> Lanes:
        """Extend an integer; an affine index is assumed not to wrap."""
        instruction = "sext" if signed else "zext"
        constant = x.base.constant if x.stride is not None else None
        if constant is not None:
            if not signed:
                # Literals are signed text; zero extension takes the value modulo 2^bits.
                constant %= 1 << int(x.base.type[1:])
            return Lanes(integer_literal(constant, element), x.stride, x.multiple)
        return Lanes(self.code.convert(instruction, x.base, element), x.stride, x.multiple)

    def coordinate(self, x: Lanes, signed: bool) -> Lanes:
        """An index of any integer type as an i32, which holds every coordinate of a tile."""
        bits = int(x.base.element[1:])
        if bits == 32:
            return x
        if bits < 32:
            return self.widen(x, signed, "i32")
        if x.stride is not None and x.base.constant is not None:
            return Lanes(integer_literal(x.base.constant, "i32"), x.stride, x.multiple)
        return Lanes(self.code.convert("trunc", x.base, "i32"), x.stride, x.multiple)

    def offset(self, address: Address, offset: Lanes, signed: bool, element: str) -> Address:
        """The addresses plus `offset` elements of LLVM memory type `element`."""
        # A lone signed vector stays narrow: getelementptr extends it, and gathers take i32 indices.
        if offset.stride is not None or address.offset is not None or not signed:
            offset = self.widen(offset, signed, "i64")
        if offset.is_uniform:
            base = self.code.element_address(address.base, offset.base, element)
            return Address(base, address.offset)
        if address.offset is None:
            return Address(address.base, offset)
        return Address(address.base, self.add(self.widen(address.offset, True, "i64"), offset))

    def first(self, address: Address, element: str) -> Val:
        """The address of lane 0 of a uniform or affine address."""
        if address.offset is None:
            return address.base
        return self.code.element_address(address.base, address.offset.base, element)

    def addresses(self, address: Address, element: str) -> Val:
        """One address per lane, as a vector."""
        if address.offset is None:
            return self.code.splat(address.base, self.width)
        return self.code.element_address(address.base, self.vector(address.offset), element)

    def all_lanes(self) -> Val:
        """The mask that is true everywhere."""
        return self.code.splat(integer_literal(1, "i1"), self.width)

    def undefined(self, element: str) -> Val:
        """An arbitrary value in every lane, for lanes whose content does not matter."""
        # Not poison, which would propagate to all results of such a lane.
        zero = zero_of(element)
        return self.code.splat(zero, self.width)
