"""Arithmetic on IR: one method per op, and operators on values.

    b.add(x, 1)                    # a number becomes a constant of the other operand's type
    b.select(b.lt(x, n), x, 0)
    (b.expr(x) * 2 + y).value      # the same with Python's operators + - * // % &

`ArithmeticBuilder` is the base class of all consumers of ops: `Builder`, the contexts of rewrite
rules and of the front ends' semantics, the interpreter. The op classes are declared in
`tilewright.ops`, a layer above, and found here by opcode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.core import OPS, Op, Value
from tilewright.ir.types import DType, Type, element_of, shape_of, with_element

Number = int | float


class ArithmeticBuilder:
    """Methods that emit arithmetic ops. A subclass defines their destination (`value`)."""

    __slots__ = ()

    def value(self, op: Op) -> Value:
        """Emit an op and return its only result."""
        raise NotImplementedError

    def constant(self, value: Number, type_: Type) -> Value:
        """A number, in every element if the type is a tile."""
        element = element_of(type_)
        is_float = isinstance(element, DType) and element.is_float
        return self._emit("arith.constant", float(value) if is_float else value, type_)

    def like(self, x: Operand, other: Operand) -> Value:
        """`x` as a value; a number becomes a constant of the type of `other`."""
        if not isinstance(x, (int, float)):
            return plain(x)
        assert not isinstance(other, (int, float)), "two numbers have no type"
        return self.constant(x, other.type)

    def expr(self, x: Value) -> Expr:
        """`x` with Python's operators, which emit ops to this builder."""
        return Expr(self, x)

    def _emit(self, opcode: str, *fields: Any) -> Value:
        return self.value(OPS[opcode](*fields))

    def _pair(self, opcode: str, x: Operand, y: Operand, *attrs: object) -> Value:
        # Most operands are values: the test saves half the time of an op.
        if type(x) is not Value or type(y) is not Value:
            x, y = self.like(x, y), self.like(y, x)
        op: Any = OPS[opcode]
        return self.value(op(x, y, *attrs) if attrs else op(x, y))

    def add(self, x: Operand, y: Operand) -> Value:
        """x + y"""
        return self._pair("arith.add", x, y)

    def sub(self, x: Operand, y: Operand) -> Value:
        """x - y"""
        return self._pair("arith.sub", x, y)

    def mul(self, x: Operand, y: Operand) -> Value:
        """x * y"""
        return self._pair("arith.mul", x, y)

    def mul_high(self, x: Operand, y: Operand) -> Value:
        """The high half of the full product of two integers."""
        return self._pair("arith.mul_high", x, y)

    def div(self, x: Operand, y: Operand, rounding: str = "by_use") -> Value:
        """x / y, truncated for integers; rounding: see `DivOp`."""
        return self._pair("arith.div", x, y, rounding)

    def rem(self, x: Operand, y: Operand) -> Value:
        """x - trunc(x / y) * y"""
        return self._pair("arith.rem", x, y)

    def bit_and(self, x: Operand, y: Operand) -> Value:
        """x & y"""
        return self._pair("arith.and", x, y)

    def bit_or(self, x: Operand, y: Operand) -> Value:
        """x | y"""
        return self._pair("arith.or", x, y)

    def bit_xor(self, x: Operand, y: Operand) -> Value:
        """x ^ y"""
        return self._pair("arith.xor", x, y)

    def shl(self, x: Operand, y: Operand) -> Value:
        """x << y"""
        return self._pair("arith.shl", x, y)

    def shr(self, x: Operand, y: Operand) -> Value:
        """x >> y, copying a signed type's sign."""
        return self._pair("arith.shr", x, y)

    def min(self, x: Operand, y: Operand, nan: bool = False) -> Value:
        """The minimum; of a NaN and a number the number, or the NaN if `nan`."""
        return self._pair("arith.min", x, y, nan)

    def max(self, x: Operand, y: Operand, nan: bool = False) -> Value:
        """The maximum; of a NaN and a number the number, or the NaN if `nan`."""
        return self._pair("arith.max", x, y, nan)

    def neg(self, x: Value | Expr) -> Value:
        """-x"""
        return self._emit("arith.neg", plain(x))

    def abs(self, x: Value | Expr) -> Value:
        """|x|"""
        return self._emit("arith.abs", plain(x))

    def math(self, function: str, x: Value | Expr) -> Value:
        """A function of one float: one of `MATH_FUNCTIONS`."""
        return self._emit("arith.math", plain(x), function)

    def compare(self, x: Operand, y: Operand, predicate: str) -> Value:
        """x <predicate> y as i1; predicate: one of `COMPARISONS`."""
        return self._pair("arith.compare", x, y, predicate)

    def eq(self, x: Operand, y: Operand) -> Value:
        """x == y"""
        return self.compare(x, y, "eq")

    def ne(self, x: Operand, y: Operand) -> Value:
        """x != y"""
        return self.compare(x, y, "ne")

    def lt(self, x: Operand, y: Operand) -> Value:
        """x < y"""
        return self.compare(x, y, "lt")

    def le(self, x: Operand, y: Operand) -> Value:
        """x <= y"""
        return self.compare(x, y, "le")

    def gt(self, x: Operand, y: Operand) -> Value:
        """x > y"""
        return self.compare(x, y, "gt")

    def ge(self, x: Operand, y: Operand) -> Value:
        """x >= y"""
        return self.compare(x, y, "ge")

    def select(self, condition: Operand, x: Operand, y: Operand) -> Value:
        """x where the condition holds, else y."""
        condition = self.like(condition, condition)
        return self._emit("arith.select", condition, self.like(x, y), self.like(y, x))

    def cast(
        self, x: Value | Expr, type_: Type, rounding: str = "rtne", in_range: bool = False
    ) -> Value:
        """`x` cast to the element type of `type_`; `x` itself if it has that type."""
        x = plain(x)
        target = with_element(x.type, element_of(type_))
        if target is x.type:
            return x
        return self._emit("arith.cast", x, target, rounding, in_range)

    def bitcast(self, x: Value | Expr, type_: Type) -> Value:
        """The bits of `x` as the element type of `type_`."""
        x = plain(x)
        return self._emit("arith.bitcast", x, with_element(x.type, element_of(type_)))

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a * b + c, rounded once."""
        a, b = self.like(a, b), self.like(b, a)
        return self._emit("arith.fma", a, b, self.like(c, a))

    def arange(self, start: int, end: int) -> Value:
        """start, start + 1, ..., end - 1 as a tile of i32."""
        return self._emit("tile.range", start, end)

    def along(self, line: Value, axis: int, shape: tuple[int, ...]) -> Value:
        """A tile of one dimension along `axis` of a shape, and repeated along the others."""
        for dim in range(len(shape)):
            if dim != axis:
                line = self._emit("tile.expand_dims", line, dim)
        return line if shape_of(line.type) == shape else self._emit("tile.broadcast", line, shape)

    def splat(self, x: Value | Expr, shape: tuple[int, ...]) -> Value:
        """A scalar in every element of a tile."""
        return self._emit("tile.splat", plain(x), shape)


class Expr:
    """A value with Python's operators for counts. `==` is identity; equality is `b.eq`."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: ArithmeticBuilder, value: Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def type(self) -> Type:
        """The type of the value."""
        return self.value.type

    def __add__(self, other: Operand) -> Expr:
        return self._of(self.builder.add, other)

    def __sub__(self, other: Operand) -> Expr:
        return self._of(self.builder.sub, other)

    def __mul__(self, other: Operand) -> Expr:
        return self._of(self.builder.mul, other)

    def __floordiv__(self, other: Operand) -> Expr:
        """Truncating division, as in the IR; equal to Python's if no integer is negative."""
        return self._of(self.builder.div, other)

    def __mod__(self, other: Operand) -> Expr:
        """The remainder with the sign of the dividend, as in the IR."""
        return self._of(self.builder.rem, other)

    def __and__(self, other: Operand) -> Expr:
        return self._of(self.builder.bit_and, other)

    def _of(self, method: Callable[[Operand, Operand], Value], other: Operand) -> Expr:
        return Expr(self.builder, method(self, other))


def plain(x: Value | Expr) -> Value:
    """The value of an expression."""
    return x.value if isinstance(x, Expr) else x


Operand = Value | Number | Expr
"""A value, an expression, or a number, which takes the type of the other operand."""
