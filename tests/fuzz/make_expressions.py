"""Element-wise expressions: arithmetic of mixed types, comparisons, logic, choices, conversions."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.program_dtypes import (
    BOOL,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    UNSIGNED,
    Shape,
    Type,
    bits,
    dtype_beside,
    is_literal,
    limits,
    promote,
    signed,
)
from tests.fuzz.program_maker import MAX_ELEMENTS, Maker, fitting
from tests.fuzz.program_tree import Bounds, Expr

NUMBERS_OF_HOSTS = (
    0, 1, 1, 2, 3, 16, -1, -5, 100, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63, True, False, 0.5, 1.0,
    -2.0, 0.1, -0.0, 1e10, 1e-40, 3e38, 1e300, float("inf"), float("nan"),
)  # fmt: skip
"""Arguments: those that count as constants elsewhere (1), and those that their types round."""
LITERAL_OPS = ("literal", "constant")


def expression(m: Maker, depth: int = 2) -> Expr:
    """A number, most often a tile."""
    make = m.weighted(MAKERS)
    return make(m, depth)


def operand(m: Maker, depth: int) -> Expr:
    """A tensor: a variable, or a smaller expression."""
    if depth > 0 and m.chance(0.28):
        return expression(m, depth - 1)
    if m.chance(0.12):
        return m.synthetic(m.pick(((m.rows, m.columns), (m.columns,), (m.rows,), ())))
    if m.chance(0.75):
        return m.tile()
    return m.variable() or m.index_tile()


def beside(m: Maker, x: Expr, depth: int, literals: bool = True) -> Expr:
    """A second operand that broadcasts with `x`; a literal only beside a tensor."""
    if m.chance(0.06):
        return m.argument(m.pick(NUMBERS_OF_HOSTS))
    if literals and m.chance(0.25) and not is_literal(x.dtype):
        number = m.literal_for(x.dtype)
        if m.chance(0.15) and _fits_constant(x):
            return m.constant(number.data[0])
        return number
    y = operand(m, depth)
    if _broadcasts(x.shape, y.shape) and m.chance(0.9):
        return y
    return m.spread(y, x.shape)


def _fits_constant(x: Expr) -> bool:
    return x.dtype in NUMBERS


def _broadcasts(a: Shape, b: Shape) -> bool:
    """Whether two shapes have a common one that is not too large."""
    found = common_shape(a, b)
    size = 1
    for extent in found or ():
        size *= extent
    return found is not None and size <= MAX_ELEMENTS


def common_shape(a: Shape, b: Shape) -> Shape | None:
    if len(a) < len(b):
        a, b = b, a
    b = (1,) * (len(a) - len(b)) + b if b else (1,) * len(a)
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
        return None
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def shape_of_all(*exprs: Expr) -> Shape:
    shape: Shape = ()
    for expr in exprs:
        found = common_shape(shape, expr.shape)
        assert found is not None, (shape, expr.shape)
        shape = found
    return shape


def _value(x: Expr) -> object:
    return x.data[-1] if x.op in LITERAL_OPS else None


def common(x: Expr, y: Expr) -> str:
    """The dtype in which two operands meet."""
    a = dtype_beside(x.dtype, _value(x), y.dtype)
    b = dtype_beside(y.dtype, _value(y), x.dtype)
    return promote(a, b)


# ---- arithmetic ----------------------------------------------------------------------------------


def _bounds(name: str, x: Expr, y: Expr) -> Bounds | None:
    if x.bounds is None or y.bounds is None:
        return None
    (a, b), (c, d) = x.bounds, y.bounds
    if name == "add":
        return a + c, b + d
    if name == "sub":
        return a - d, b - c
    if name == "mul":
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if name in ("maximum", "python_max"):
        return max(a, c), max(b, d)
    if name in ("minimum", "python_min"):
        return min(a, c), min(b, d)
    return None


def combined(m: Maker, name: str, x: Expr, y: Expr) -> Expr:
    """`x <name> y` of operands that broadcast; at least one is a tensor."""
    dtype = common(x, y)
    bounds = fitting(_bounds(name, x, y), dtype)
    if dtype == BOOL:
        bounds = (0, 1)
    found = Expr(name, (x, y), Type(dtype, shape_of_all(x, y)), (), bounds)
    return m.unsigned_zero(found) if "m" in name[:2] and "i" in name else found


def arithmetic(m: Maker, depth: int) -> Expr:
    x = operand(m, depth)
    y = beside(m, x, depth)
    name = m.pick(("add", "add", "sub", "mul", "mul", "maximum", "minimum"))
    if not x.shape and not y.shape and m.chance(0.2) and not is_literal(y.dtype):
        name = m.pick(("python_max", "python_min"))
    return combined(m, name, *swapped(m, x, y))


def swapped(m: Maker, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return (y, x) if m.chance(0.25) else (x, y)


def integer(m: Maker, x: Expr) -> Expr:
    """`x`, or a conversion of it to integers."""
    if x.dtype in INTEGERS:
        return x
    return m.cast(x, m.pick(INTEGERS))


def bitwise(m: Maker, depth: int) -> Expr:
    x = operand(m, depth)
    if x.dtype != BOOL:
        x = integer(m, x)
    y = beside(m, x, depth)
    if y.dtype in FLOATS:
        y = m.cast(y, m.pick(INTEGERS))
    return combined(m, m.pick(("and", "or", "xor")), *swapped(m, x, y))


def shift(m: Maker, depth: int) -> Expr:
    """Of and by integers of any two types; the amount is below the smaller width."""
    return _shifted(m, integer(m, operand(m, depth)), depth)


def _shifted(m: Maker, x: Expr, depth: int) -> Expr:
    if m.chance(0.35):
        amount: Expr = m.literal(m.random.randrange(bits(x.dtype)))
    else:
        y = integer(m, beside(m, x, depth, literals=False))
        most = min(bits(x.dtype), bits(y.dtype)) - 1
        amount = Expr("and", (y, m.literal(most)), y.type, (), (0, most))
    name = m.pick(("shl", "shr", "shr"))
    right = dtype_beside(amount.dtype, _value(amount), x.dtype)
    return Expr(name, (x, amount), Type(promote(x.dtype, right), shape_of_all(x, amount)))


def divisor(m: Maker, dtype: str, like: Expr, depth: int) -> Expr:
    """In types of the signedness of `dtype`; some are 0 or -1."""
    positive = (1, 2, 3, 5, 7, 8, 10, 16, 41, 100)
    if m.chance(0.4):
        negative = tuple(-n for n in positive[1:]) if signed(dtype) else ()
        return m.literal(m.pick((*positive, *positive, *negative)))
    y = m.cast(
        beside(m, like, depth, literals=False), m.pick(SIGNED if signed(dtype) else UNSIGNED)
    )
    if m.chance(0.1):
        return y
    low = Expr("and", (y, m.literal(7)), y.type, (), (0, 7))
    if m.chance(0.2):
        return low
    if signed(dtype) and m.chance(0.25):
        more = Expr("add", (low, m.literal(2)), y.type, (), (2, 9))
        return Expr("neg", (more,), y.type, (), (-9, -2))
    return Expr("add", (low, m.literal(1)), y.type, (), (1, 8))


def division(m: Maker, depth: int) -> Expr:
    return _divided(m, integer(m, operand(m, depth)), depth)


def _divided(m: Maker, x: Expr, depth: int) -> Expr:
    y = divisor(m, x.dtype, x, depth)
    name = m.pick(("floordiv", "mod"))
    bounds = None
    if name == "mod" and y.bounds is not None:
        most = max(abs(n) for n in y.bounds) - 1
        bounds = (-most if signed(x.dtype) else 0, most)
    dtype = common(x, y)
    return Expr(name, (x, y), Type(dtype, shape_of_all(x, y)), (), fitting(bounds, dtype))


def wrapping(m: Maker, depth: int) -> Expr:
    """A sum or product that leaves its type, and what is made of it."""
    m.program.features.add("wrapping")
    x = integer(m, operand(m, depth)) if m.chance(0.5) else m.index_tile()
    x = x if x.dtype in INTEGERS else m.cast(x, m.pick(INTEGERS))
    for _ in range(m.pick((1, 1, 2))):
        x = combined(m, m.pick(("mul", "mul", "add", "sub")), x, _large(m, x))
    way = m.random.randrange(5)
    if way == 0:
        y = beside(m, x, depth)
        return Expr(m.pick(_ORDER), (x, y), Type(BOOL, shape_of_all(x, y)), (), (0, 1))
    if way == 1:
        return combined(m, m.pick(("maximum", "minimum")), x, beside(m, x, depth))
    return _shifted(m, x, depth) if way == 2 else _divided(m, x, depth)


def _large(m: Maker, x: Expr) -> Expr:
    """A number by which sums and products wrap: a literal, or an argument."""
    high = limits(x.dtype)[1]
    if m.chance(0.4):
        return m.argument(m.pick((2147483632, 1103515245, 100000007, 2**31 - 1)))
    return m.literal(m.pick((high, high - 15, high // 2 + 1, high // 3 | 1, 1103515245 % high)))


def exact_quotient(m: Maker, depth: int) -> Expr:
    """`(q * d) / d`: what a device must get right although it may multiply by a reciprocal."""
    dtype = "float64"
    if m.program.seed % 4 == 0:
        m.program.features.add("quotient")
        m.program.skip |= {"nvidia", "emulated"}  # whose division of fp32 is off by two units
        dtype = m.pick(("float32", "float32", "float32", "int32"))
    q = m.cast(m.bounded(operand(m, depth), 200, 200), dtype)
    q = m.let(q, "q")
    numbers = (41, 47, 55, 61, 97, 107, 3, 7, 10, 13, 23, 29)
    way = m.random.randrange(4)
    if way == 0:
        number = m.pick(numbers)
        d = m.literal(float(number) if dtype in FLOATS else number)
    elif way == 1:
        number = m.pick(numbers)
        d = m.argument(float(number) if dtype in FLOATS else number)
    else:
        y = beside(m, q, depth, literals=False)
        small = m.cast(m.bounded(y, 0, 63), "int32")
        d = m.cast(
            Expr("add", (small, m.literal(m.pick((1, 41)))), Type("int32", small.shape)), dtype
        )
    d = Expr(d.op, d.args, d.type, d.data, (1, 107))
    product = m.let(combined(m, "mul", q, d), "x")
    wide = "float64" if dtype == "float64" else "float32"
    return Expr("truediv", (product, d), Type(wide, product.shape), (), q.bounds)


def rounded_quotient(m: Maker, depth: int) -> Expr:
    """Quotients that every device rounds correctly."""
    x = m.cast(operand(m, depth), "float32")
    y = m.cast(beside(m, x, depth, literals=False), "float32")
    return Expr("div_rn", (x, y), Type("float32", shape_of_all(x, y)))


def high_product(m: Maker, depth: int) -> Expr:
    dtype = m.pick(("int32", "uint32", "int64", "uint64"))
    x = m.cast(operand(m, depth), dtype)
    y = m.cast(beside(m, x, depth, literals=False), dtype)
    shape = shape_of_all(x, y)
    return Expr("umulhi", (m.shaped(x, shape), m.shaped(y, shape)), Type(dtype, shape))


# ---- one operand ---------------------------------------------------------------------------------


def unary(m: Maker, depth: int) -> Expr:
    x = operand(m, depth)
    if x.dtype == BOOL:
        return Expr(m.pick(("invert", "not")), (x,), x.type, (), (0, 1))
    names = ["neg", "abs", "pos"]
    names += ["floor", "ceil"] if x.dtype in FLOATS else ["invert"]
    name = m.pick(names)
    bounds = x.bounds
    if bounds is not None and name in ("neg", "abs", "invert"):
        size = max(abs(n) for n in bounds)
        bounds = fitting((-size if name == "neg" else 0, size), x.dtype)
        bounds = None if name == "invert" or x.dtype in UNSIGNED else bounds
    return Expr(name, (x,), x.type, (), bounds)


def conversion(m: Maker, depth: int) -> Expr:
    x = operand(m, depth)
    if m.chance(0.25) and x.dtype != BOOL and (x.dtype in INTEGERS or x.bounds is not None):
        same = [d for d in NUMBERS if bits(d) == bits(x.dtype) and d != x.dtype]
        if same:
            target = m.pick(same)
            return Expr("bitcast", (x,), Type(target, x.shape), (target,))
    target = m.pick((*NUMBERS, BOOL))
    if x.dtype in FLOATS and target in INTEGERS and x.op not in LITERAL_OPS and m.chance(0.5):
        # beyond the ends of bytes, or of all integers
        x = combined(m, "mul", x, m.literal(m.pick((1.0, 100.0, 1e9, -1e15))))
        return Expr("cast", (x,), Type(target, x.shape), (target,))
    return m.cast(x, target)


# ---- conditions ----------------------------------------------------------------------------------

_ORDER = ("<", "<=", ">", ">=", "==", "!=")


def comparison(m: Maker, depth: int) -> Expr:
    x = operand(m, depth)
    y = beside(m, x, depth)
    if m.chance(0.25):
        z = beside(m, x, depth)
        # Comparisons may hold literals only beside a tensor, and both share the middle.
        ends = [e if not is_literal(e.dtype) or not is_literal(x.dtype) else x for e in (y, z)]
        data = (m.pick(_ORDER), m.pick(_ORDER))
        if common_shape(ends[0].shape, ends[1].shape) is not None:
            shape = shape_of_all(ends[0], x, ends[1])
            return Expr("chain", (ends[0], x, ends[1]), Type(BOOL, shape), data, (0, 1))
    a, b = swapped(m, x, y)
    return Expr(m.pick(_ORDER), (a, b), Type(BOOL, shape_of_all(a, b)), (), (0, 1))


def condition(m: Maker, depth: int) -> Expr:
    """An expression of int1."""
    found = m.variable(lambda v: v.dtype == BOOL and bool(v.shape))
    return found if found is not None and m.chance(0.4) else comparison(m, depth)


def logic(m: Maker, depth: int) -> Expr:
    """`and`, `or` and `not`; of numbers, too, which count as `!= 0`."""
    m.program.features.add("logic")
    x = condition(m, depth) if m.chance(0.7) else operand(m, depth)
    if m.chance(0.3):
        return Expr("not", (x,), Type(BOOL, x.shape), (), (0, 1))
    y = beside(m, x, depth)
    # A compile-time number on the left decides as in Python, and is no tensor then.
    a, b = (x, y) if is_literal(y.dtype) else swapped(m, x, y)
    return Expr(m.pick(("land", "lor")), (a, b), Type(BOOL, shape_of_all(a, b)), (), (0, 1))


def choice(m: Maker, depth: int) -> Expr:
    """`tl.where`, of a condition that need not be int1."""
    x = operand(m, depth)
    y = beside(m, x, depth)
    test = condition(m, depth) if m.chance(0.8) else operand(m, depth)
    shape = shape_of_all(x, y)
    if not _broadcasts(test.shape, shape):
        test = m.spread(test, shape)
    bounds = None
    if x.bounds is not None and y.bounds is not None:
        bounds = (min(x.bounds[0], y.bounds[0]), max(x.bounds[1], y.bounds[1]))
    a, b = swapped(m, x, y)
    dtype = common(a, b)
    return Expr("where", (test, a, b), Type(dtype, shape_of_all(test, a, b)), (),
                fitting(bounds, dtype))  # fmt: skip


def limited(m: Maker, depth: int) -> Expr:
    x = operand(m, depth)
    if x.dtype == BOOL:
        x = m.cast(x, "int32")
    low, high = (0, 5) if x.dtype in UNSIGNED else (-3, 5)
    ends = [float(low), float(high)] if x.dtype in FLOATS else [low, high]
    found = Expr("clamp", (x, *map(m.literal, ends)), x.type, (),
                 (low, high) if x.dtype in INTEGERS else None)  # fmt: skip
    return m.unsigned_zero(found)


MAKERS: tuple[tuple[int, Callable[[Maker, int], Expr]], ...] = (
    (30, arithmetic), (10, bitwise), (12, shift), (12, division), (10, wrapping),
    (5, exact_quotient), (2, rounded_quotient), (2, high_product), (8, unary), (12, conversion),
    (8, comparison), (7, logic), (8, choice), (4, limited),
)  # fmt: skip


# ---- scalars -------------------------------------------------------------------------------------


def scalar(m: Maker) -> Expr:
    """An integer scalar that is known at run time only."""
    found = m.variable(lambda v: not v.shape and v.dtype in ("int32", "int64"))
    if found is not None and m.chance(0.6):
        return found
    return m.argument(m.pick((0, 1, 2, 3, 5, 16, 32, -1, -7, 100)))


def scalar_condition(m: Maker) -> Expr:
    """What `if` and `while` take: comparisons of scalars, joined by `and`, `or`, `not`."""
    way = m.random.randrange(8)
    if way == 0:
        x = m.variable(lambda v: not v.shape) or scalar(m)
        return x if x.dtype in (*INTEGERS, BOOL) else Expr(">", (x, m.literal(0.0)), Type(BOOL))
    if way in (1, 2):
        m.program.features.add("logic")
        x, y = _plain_condition(m), _plain_condition(m)
        return Expr(m.pick(("land", "lor")), (x, y), Type(BOOL), (), (0, 1))
    if way == 3:
        m.program.features.add("logic")
        x = _plain_condition(m) if m.chance(0.5) else scalar(m)
        return Expr("not", (x,), Type(BOOL), (), (0, 1))
    if way == 4:
        low, high = sorted(m.pick((0, 1, 2, 3, 5, 16, -1)) for _ in range(2))
        data = (m.pick(("<", "<=")), m.pick(("<", "<=")))
        return Expr("chain", (m.literal(low), scalar(m), m.literal(high)), Type(BOOL), data, (0, 1))
    return _plain_condition(m)


def _plain_condition(m: Maker) -> Expr:
    x = scalar(m)
    y = m.literal(m.pick((0, 1, 2, 3, 5, -1))) if m.chance(0.7) else scalar(m)
    return Expr(m.pick(_ORDER), (x, y), Type(BOOL), (), (0, 1))
