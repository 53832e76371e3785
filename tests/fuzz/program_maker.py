"""What all makers of statements share: choices, the block being filled, variables, conversions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from math import prod
from random import Random
from typing import Any, TypeVar

from tests.fuzz.program_dtypes import (
    BOOL,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    Shape,
    Type,
    argument_dtype,
    is_pointer,
    largest_exact,
    limits,
    literal_dtype,
)
from tests.fuzz.program_tree import (
    ArrayArg,
    Bounds,
    ConstantArg,
    Expr,
    Let,
    NumberArg,
    Program,
    Stmt,
    var,
)

T = TypeVar("T")
Test = Callable[[Expr], bool]
Fill = Callable[["Maker", int], None]
"""Adds some statements to the block; bodies of loops are filled by what fills the kernel."""
MAX_ELEMENTS = 512


class Maker:
    """Fills a program.

    rows, columns: extents of its usual tile; depth: of the block being filled; reserved: arrays
    that one statement has for itself.
    """

    def __init__(
        self, program: Program, random: Random, rows: int, columns: int, fill: Fill
    ) -> None:
        self.program, self.random, self.fill = program, random, fill
        self.rows, self.columns = rows, columns
        self.block: list[Stmt] = program.body
        self.known: list[Expr] = []
        self.depth = 0
        self.reserved: set[str] = set()
        self.in_function = False
        self._names = 0

    # ---- choices ---------------------------------------------------------------------------------

    def pick(self, items: Sequence[T]) -> T:
        return items[self.random.randrange(len(items))]

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def weighted(self, rows: Sequence[tuple[int, T]]) -> T:
        """An item of (weight, item) rows."""
        place = self.random.randrange(sum(weight for weight, _ in rows))
        for weight, item in rows:
            place -= weight
            if place < 0:
                return item
        raise AssertionError

    # ---- statements ------------------------------------------------------------------------------

    def emit(self, statement: Stmt) -> None:
        self.block.append(statement)

    def name(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def let(self, value: Expr, prefix: str = "v") -> Expr:
        """A new variable."""
        found = var(self.name(prefix), value.type, value.bounds)
        self.emit(Let((found.data[0],), (value,)))
        self.known.append(found)
        return found

    def assign(self, target: Expr, value: Expr) -> None:
        self.emit(Let((target.data[0],), (value,)))

    @contextmanager
    def inside(self, body: list[Stmt]) -> Generator[None]:
        """Fill an inner block; its variables are unknown afterwards."""
        outer, count = self.block, len(self.known)
        self.block = body
        self.depth += 1
        try:
            yield
        finally:
            self.block = outer
            self.depth -= 1
            del self.known[count:]

    # ---- arguments -------------------------------------------------------------------------------

    def array(
        self, dtype: str, size: int, contents: Any, region: int = 0, same_as: str = ""
    ) -> Expr:
        """A new array, as a pointer."""
        arrays = self.program.arrays()
        name = f"a{len(arrays)}"
        self.program.args.insert(
            len(arrays), ArrayArg(name, dtype, size, contents, region, same_as)
        )
        return Expr("pointer", (), Type(f"*{name}"), (name,))

    def argument(self, value: Any, prefix: str = "n") -> Expr:
        """A scalar argument; an integer has its value as bounds."""
        for arg in self.program.args:
            if isinstance(arg, NumberArg) and repr(arg.value) == repr(value) and self.chance(0.8):
                return self._argument_var(arg)
        arg = NumberArg(self.name(prefix), argument_dtype(value), value)
        self.program.args.append(arg)
        return self._argument_var(arg)

    @staticmethod
    def _argument_var(arg: NumberArg) -> Expr:
        bounds = _whole(arg.value) if not isinstance(arg.value, float) else None
        return var(arg.name, Type(arg.dtype), bounds)

    def constant(self, value: Any) -> Expr:
        """A constexpr parameter."""
        name = self.name("C")
        self.program.args.append(ConstantArg(name, value))
        return Expr("constant", (), Type(_literal_type(value)), (name, value), _whole(value))

    # ---- variables -------------------------------------------------------------------------------

    def variable(self, test: Test = lambda _: True) -> Expr | None:
        """A number in scope, rather a new one."""
        found = [v for v in self.known if not is_pointer(v.dtype) and test(v)]
        if not found:
            return None
        size = len(found)
        return found[max(self.random.randrange(size), self.random.randrange(size))]

    @staticmethod
    def assignable(v: Expr) -> bool:
        """Whether a variable may change: not indices, counters, and what statements rely on."""
        return v.op == "var" and v.data[0][0] in "vc" and not is_pointer(v.dtype)

    def tile(self, test: Test = lambda _: True) -> Expr:
        """A variable with a shape; there always is one."""
        found = self.variable(lambda v: bool(v.shape) and test(v))
        return found if found is not None else self.index_tile()

    def index_tile(self) -> Expr:
        """A tile that no memory holds."""
        shape = self.pick(((self.rows, self.columns), (self.columns,), (self.rows,)))
        return self.synthetic(shape)

    def synthetic(self, shape: Shape) -> Expr:
        """A tile made of indices, or of one number."""
        if self.chance(0.4) or not shape:
            return self.filled(shape, self.pick(NUMBERS))
        return self.counting(shape)

    def counting(self, shape: Shape) -> Expr:
        """Row-major numbers of a tile's elements, or of one of its dimensions."""
        size = prod(shape)
        start = self.pick((0, 0, 1, 5))
        flat = Expr("arange", (), Type("int32", (size,)), (start, start + size),
                    (start, start + size - 1))  # fmt: skip
        return flat if len(shape) == 1 else self.reshape(flat, shape)

    def filled(self, shape: Shape, dtype: str) -> Expr:
        number = self.literal_for(dtype)
        kind = Type(dtype, shape)
        if number.data[0] == 0 and shape and self.chance(0.5):
            return Expr("zeros", (), kind, (dtype,), (0, 0))
        return Expr("full", (number,), kind, (dtype,), number.bounds)

    # ---- literals --------------------------------------------------------------------------------

    def literal(self, value: Any) -> Expr:
        return Expr("literal", (), Type(_literal_type(value)), (value,), _whole(value))

    def literal_for(self, dtype: str) -> Expr:
        """A literal that takes a dtype."""
        if dtype == BOOL:
            return self.literal(self.pick((True, False)))
        if dtype in FLOATS:
            return self.literal(self.pick((0.0, 1.0, 2.0, -1.0, 3.0, 0.5, -0.0, 7.0)))
        low, high = limits(dtype)
        numbers = (0, 1, 2, 3, 5, 7, 8, 13, 16, 31, 100, -1, -2, -3, -8, -100)
        extremes = (low, high, high - 1) if self.chance(0.1) else ()
        return self.literal(self.pick([n for n in (*numbers, *extremes) if low <= n <= high]))

    # ---- conversions -----------------------------------------------------------------------------

    def reshape(self, x: Expr, shape: Shape) -> Expr:
        if x.shape == shape:
            return x
        return Expr("reshape", (x,), Type(x.dtype, shape), (), x.bounds)

    def cast(self, x: Expr, dtype: str) -> Expr:
        """A conversion that is defined for every value."""
        if x.dtype == dtype:
            return x
        if x.dtype in FLOATS and dtype in INTEGERS:
            x = self.bounded(x, 100 if dtype in SIGNED else 0, 100)
        if x.op in ("literal", "constant"):
            x = Expr("full", (x,), Type(literal_dtype(x.data[-1])), (literal_dtype(x.data[-1]),),
                     x.bounds)  # fmt: skip
        bounds = (0, 1) if dtype == BOOL else fitting(x.bounds, dtype)
        if x.dtype == BOOL:
            bounds = (0, 1)
        return Expr("cast", (x,), Type(dtype, x.shape), (dtype,), bounds)

    def bounded(self, x: Expr, below: int, above: int) -> Expr:
        """Integers from -below to above, of any number."""
        if x.bounds is not None and -below <= x.bounds[0] and x.bounds[1] <= above:
            return x
        if x.dtype == BOOL:
            return x
        if x.dtype in FLOATS:
            limited = Expr("clamp", (x, self.literal(float(-below)), self.literal(float(above))),
                           x.type)  # fmt: skip
            return Expr("floor", (self.unsigned_zero(limited),), x.type, (), (-below, above))
        size = 1 << ((above + 1).bit_length() - 1)
        low = Expr("and", (x, self.literal(size - 1)), x.type, (), (0, size - 1))
        if not below or not self.chance(0.5):
            return low
        shift = min(below, size // 2)
        if x.dtype not in SIGNED or not shift:
            return low
        return Expr("sub", (low, self.literal(shift)), x.type, (), (-shift, size - 1 - shift))

    def unsigned_zero(self, x: Expr) -> Expr:
        """`x + 0.0` of floats: zeros whose sign may be either become +0.0."""
        if x.dtype not in FLOATS:
            return x
        return Expr("add", (x, self.literal(0.0)), x.type, (), x.bounds)

    def spread(self, x: Expr, shape: Shape) -> Expr:
        """`x` in a shape that broadcasts to `shape`."""
        if not x.shape or x.shape == shape:
            return x
        if len(x.shape) == 1 and len(shape) == 2 and x.shape[0] in shape:
            rows = x.shape[0] == shape[0] and (x.shape[0] != shape[1] or self.chance(0.5))
            if rows:
                kind = Type(x.dtype, (shape[0], 1))
                return Expr("expand", (x,), kind, ("[:, None]",), x.bounds)
            kind = Type(x.dtype, (1, shape[1]))
            return Expr("expand", (x,), kind, ("[None, :]",), x.bounds)
        if len(x.shape) == 2 and x.shape[::-1] == shape:
            return Expr("trans", (x,), Type(x.dtype, shape), (), x.bounds)
        if prod(x.shape) == prod(shape):
            return self.reshape(x, shape)
        return self.scalar_of(x)

    def scalar_of(self, x: Expr) -> Expr:
        """One number that depends on all elements."""
        if not x.shape:
            return x
        if x.dtype in INTEGERS:
            return Expr("xor_sum", (x,), Type(x.dtype), (None, False))
        wide = x.dtype if x.dtype in ("float32", "float64") else (
            "int32" if x.dtype == BOOL else "float32")  # fmt: skip
        return self.unsigned_zero(Expr("max", (x,), Type(wide), (None, False), x.bounds))

    def shaped(self, x: Expr, shape: Shape) -> Expr:
        """`x` in exactly a shape."""
        if x.shape == shape:
            return x
        if not shape:
            return self.scalar_of(x)
        found = self.spread(x, shape)
        if found.shape == shape:
            return found
        return Expr("broadcast_to", (found,), Type(found.dtype, shape), (), found.bounds)

    def coerced(self, x: Expr, like: Expr) -> Expr:
        """`x` in the type of a variable, and within its bounds."""
        found = self.cast(self.shaped(x, like.shape), like.dtype)
        if like.bounds is not None:
            low, high = like.bounds
            found = self.bounded(found, max(-low, 0), max(high, 0))
        return found


def _literal_type(value: Any) -> str:
    return type(value).__name__


def _whole(value: Any) -> Bounds | None:
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value), int(value)


def fitting(bounds: Bounds | None, dtype: str) -> Bounds | None:
    """The bounds, if a type holds all of their integers."""
    if bounds is None:
        return None
    low, high = bounds
    if dtype in FLOATS:
        return bounds if max(-low, high) <= largest_exact(dtype) else None
    least, most = limits(dtype)
    return bounds if least <= low and high <= most else None
