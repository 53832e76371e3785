"""The parts of a random tile program: what is known of values, arrays, scopes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from random import Random

from tilewright.ir import Block, Builder, Function, Op, Value
from tilewright.ir.types import (
    DType,
    PointerType,
    Type,
    bf16,
    dtype_of,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    shape_of,
    u8,
    u32,
    with_element,
)
from tilewright.ops import AbsOp, CastOp, ConstantOp, MaxOp, MinOp, RemOp, SplatOp

REGION = 2048
"""Elements of each array for one program instance."""

ELEMENTS = 1024
FLOATS = (f32, f32, f32, f16, bf16, f64)
INTEGERS = (i32, i32, i8, i16, i64, u8, u32)
COUNTS_TO = {f64: 2.0**40, f32: 2.0**22, f16: 1024.0, bf16: 128.0}
"""Integers up to here are exact, and so is one addition or fused product of them."""

ARRAY_BOUND = 8
"""Size of the floats in arrays."""

CARRIED_BOUND = 32


@dataclass(frozen=True, slots=True)
class Known:
    """A value; no element is larger than `bound` or wrong by more than `error`."""

    value: Value
    bound: float
    error: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.value.type)

    @property
    def element(self) -> DType:
        return dtype_of(self.value.type)

    @property
    def is_exact(self) -> bool:
        return self.error == 0


@dataclass(slots=True)
class Array:
    """An array parameter. `error`: what its elements may be wrong by; then it is never read."""

    value: Value
    element: DType
    result_only: bool = False
    error: float = 0.0


@dataclass(slots=True)
class TileProgram:
    """A function, its array parameters in order, and the scalars after them."""

    function: Function
    arrays: list[Array]
    sizes: list[int]
    grid: tuple[int, ...]


@dataclass(slots=True)
class Scope:
    """What a block can use."""

    block: Block
    pool: list[Known] = field(default_factory=list[Known])


class ProgramBase(ABC):
    """What a program under construction has, and how values are picked and made."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.scope = Scope(Block())
        self.arrays: list[Array] = []
        self.sizes: list[int] = []
        self.size_values: list[Value] = []
        self.start: Value | None = None

    @abstractmethod
    def _load(self, shape: tuple[int, ...] | None, element: DType | None) -> Known:
        """A tile of an array, of this shape and element type where they are given."""

    def _parameters(self) -> None:
        main = self.random.choice((f32, f32, i32, f16))
        others = [self.random.choice((*FLOATS, *INTEGERS, i1)) for _ in range(2)]
        for number, element in enumerate([main, main, *others, f32]):
            arg = self.scope.block.add_arg(PointerType(element), f"p{number}")
            if self.random.random() < 0.6:
                arg.facts = {"aligned": 64}
            self.arrays.append(Array(arg, element, result_only=number == 4))
        for number in range(2):
            arg = self.scope.block.add_arg(i32, f"n{number}")
            self.sizes.append(self.random.choice((0, 1, 5, 16, 33, 64, 100, 777, 1024)))
            if self.sizes[-1] % 16 == 0 and self.random.random() < 0.6:
                arg.facts = {"multiple_of": 16}
            self.size_values.append(arg)

    # --- building blocks ----------------------------------------------------------------------

    def _emit(self, op: Op) -> Op:
        return Builder(self.scope.block).emit(op)

    def _value(self, op: Op) -> Value:
        return self._emit(op).result

    def _keep(self, known: Known) -> Known:
        self.scope.pool.append(known)
        return known

    def _pick(self, test: Callable[[Known], bool] = lambda k: True) -> Known:
        """A random value of the pool, rather a new or an unused one; else one from memory."""
        found = [k for k in self.scope.pool if test(k)]
        unused = [k for k in found if not k.value.uses]
        if unused and self.random.random() < 0.6:
            return self.random.choice(unused)
        if found:
            count = len(found)
            return found[max(self.random.randrange(count), self.random.randrange(count))]
        return self._load(None, None)

    def _exact(self) -> Known:
        return self._pick(lambda k: k.is_exact and k.shape != ())

    def _constant(self, number: float, type_: Type) -> Value:
        element = dtype_of(type_)
        return self._value(ConstantOp(float(number) if element.is_float else int(number), type_))

    def _bounded(self, x: Known, bound: float) -> Known:
        """The value, clamped if it may be larger than `bound`."""
        if x.bound <= bound:
            return x
        type_ = x.value.type
        if x.element.is_float:
            low = self._value(MaxOp(x.value, self._constant(-bound, type_)))
            return replace(x, value=self._value(MinOp(low, self._constant(bound, type_))),
                           bound=bound)  # fmt: skip
        divisor = self._constant(min(int(bound) + 1, x.element.max_int), type_)
        return replace(x, value=self._value(RemOp(x.value, divisor)), bound=bound)

    def _result(self, op: Op, bound: float, error: float = 0.0) -> Known:
        """A result whose integers may have wrapped."""
        value = self._value(op)
        element = dtype_of(value.type)
        if not element.is_float and bound > element.max_int:
            bound = -element.min_int or element.max_int
        return Known(value, bound, error)

    def _room(self, x: Known, share: Callable[[float], float] = lambda limit: limit / 2) -> Known:
        """The value, small enough that an op on it stays exact: below share(limit)."""
        limit = COUNTS_TO.get(x.element, inf)
        return self._bounded(x, share(limit)) if x.element.is_float else x

    def _of_type(self, type_: Type) -> Known:
        """An exact value of some type: one that is there, converted, or a constant."""
        shape, element = shape_of(type_), dtype_of(type_)
        choice = self.random.random()
        same = [k for k in self.scope.pool if k.value.type is type_ and k.is_exact]
        if same and choice < 0.6:
            return self.random.choice(same)
        shaped = [k for k in self.scope.pool if k.shape == shape and k.is_exact]
        if shaped and choice < 0.75:
            return self._converted(self.random.choice(shaped), element)
        scalars = [k for k in self.scope.pool if not k.shape and k.is_exact]
        if shape and scalars and choice < 0.85:
            scalar = self._converted(self.random.choice(scalars), element)
            return replace(scalar, value=self._value(SplatOp(scalar.value, shape=shape)))
        if shape and choice < 0.92:
            return self._load(shape, element)
        number = self.random.choice((0, 1, 2, 3, 5, -1, -3))
        number = number if element.is_float or element.min_int <= number else 1
        number = min(number, 1) if element is i1 else number
        return Known(self._constant(number, type_), max(abs(number), 1))

    def _converted(self, x: Known, element: DType) -> Known:
        """A cast that is exact (integers may wrap)."""
        if x.element is element:
            return x
        if element.is_float:
            x = self._bounded(x, COUNTS_TO[element])
        elif x.element.is_float and element is not i1:
            x = self._bounded(x, min(element.max_int, 100))
            if not element.is_signed:
                x = replace(x, value=self._value(AbsOp(x.value)))
        bound = 1 if element is i1 else x.bound
        if not element.is_float and not element.is_signed and x.element.is_signed:
            bound = element.max_int
        return self._result(CastOp(x.value, with_element(x.value.type, element)), bound)

    # --- steps --------------------------------------------------------------------------------
