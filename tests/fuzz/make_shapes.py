"""Statements that move elements, and those that fold them: reductions, scans, small products."""

from __future__ import annotations

from math import prod

from tests.fuzz.make_expressions import common, operand
from tests.fuzz.program_dtypes import (
    BOOL,
    FLOATS,
    INTEGERS,
    UNSIGNED,
    Shape,
    Type,
    largest_exact,
)
from tests.fuzz.program_maker import MAX_ELEMENTS, Maker, fitting
from tests.fuzz.program_tree import Expr, Unpack, var


def movable(m: Maker) -> Expr:
    """A tile from memory, or one that comes from indices, numbers or reductions alone."""
    if m.chance(0.4):
        found = m.synthetic(m.pick(((m.rows, m.columns), (m.columns,), (m.rows,))))
        if m.chance(0.3):
            total = Expr("sum", (m.counting((m.columns,)),), Type("int32"), (None, False))
            found = Expr("broadcast_to", (total,), Type("int32", found.shape))
        return found
    return operand(m, 1)


def move(m: Maker) -> None:
    x = movable(m)
    ways = [_flip, _reshape, _gather] if x.shape else []
    ways += [_join, _interleave] if prod(x.shape) * 2 <= MAX_ELEMENTS else []
    ways += [_cat] if x.shape and prod(x.shape) * 2 <= MAX_ELEMENTS else []
    ways += [_turn, _turn] if len(x.shape) > 1 else []
    ways += [_split] if prod(x.shape) > 1 else []
    m.pick(ways)(m, x)


def _flip(m: Maker, x: Expr) -> None:
    m.let(Expr("flip", (x,), x.type, (m.random.randrange(len(x.shape)),), x.bounds))


def _factors(m: Maker, size: int) -> Shape:
    """A shape of that many elements."""
    rank = m.pick((1, 2, 2, 3))
    shape: list[int] = []
    for _ in range(rank - 1):
        extent = 1 << m.random.randrange(size.bit_length())
        shape.append(extent)
        size //= extent
    return (*shape, size)


def _reshape(m: Maker, x: Expr) -> None:
    if m.chance(0.2):
        m.let(Expr("ravel", (x,), Type(x.dtype, (prod(x.shape),)), (), x.bounds))
    else:
        m.let(Expr("reshape", (x,), Type(x.dtype, _factors(m, prod(x.shape))), (), x.bounds))


def _turn(m: Maker, x: Expr) -> None:
    rank = len(x.shape)
    if m.chance(0.4):
        kind = Type(x.dtype, (*x.shape[:-2], x.shape[-1], x.shape[-2]))
        m.let(Expr("trans", (x,), kind, (), x.bounds))
        return
    order = list(range(rank))
    m.random.shuffle(order)
    kind = Type(x.dtype, tuple(x.shape[d] for d in order))
    m.let(Expr("permute", (x,), kind, (tuple(order),), x.bounds))


def _partner(m: Maker, x: Expr) -> Expr:
    """A tile of the shape of `x`."""
    if m.chance(0.3):
        return m.synthetic(x.shape)
    return m.shaped(operand(m, 1), x.shape)


def _paired(m: Maker, x: Expr, name: str, shape: Shape) -> Expr:
    y = _partner(m, x)
    a, b = (x, y) if m.chance(0.5) else (y, x)
    bounds = None
    if a.bounds is not None and b.bounds is not None:
        bounds = (min(a.bounds[0], b.bounds[0]), max(a.bounds[1], b.bounds[1]))
    dtype = common(a, b)
    return Expr(name, (a, b), Type(dtype, shape), (), fitting(bounds, dtype))


def _join(m: Maker, x: Expr) -> None:
    m.program.features.add("join")
    m.let(_paired(m, x, "join", (*x.shape, 2)))


def _interleave(m: Maker, x: Expr) -> None:
    m.program.features.add("join")
    shape = (*x.shape[:-1], 2 * x.shape[-1]) if x.shape else (2,)
    m.let(_paired(m, x, "interleave", shape))


def _cat(m: Maker, x: Expr) -> None:
    axis = m.random.randrange(len(x.shape))
    y = m.cast(_partner(m, x), x.dtype)
    shape = tuple(n * 2 if d == axis else n for d, n in enumerate(x.shape))
    m.let(Expr("cat", (x, y), Type(x.dtype, shape), (axis,)))


def _gather(m: Maker, x: Expr) -> None:
    axis = m.random.randrange(len(x.shape))
    index = m.cast(_partner(m, x), m.pick(("int32", "int64", "uint8", "int32")))
    low = Expr("and", (index, m.literal(x.shape[axis] - 1)), index.type)
    m.let(Expr("gather", (x, low), x.type, (axis,), x.bounds))


def _split(m: Maker, x: Expr) -> None:
    """Of a tile whose last extent is made 2; of a pair it gives scalars."""
    m.program.features.add("split")
    size = prod(x.shape)
    if size > 2 and m.chance(0.25):
        x = m.synthetic((2,)) if m.chance(0.3) else _two_sums(m, x)
        size = 2
    if x.shape[-1] != 2:
        x = m.reshape(x, (*_factors(m, size // 2), 2) if size > 2 else (2,))
    kind = Type(x.dtype, x.shape[:-1])
    names = (m.name(), m.name())
    m.emit(Unpack(names, (Expr("split", (x,), kind),)))
    m.known += [var(name, kind, x.bounds) for name in names]


def _two_sums(m: Maker, x: Expr) -> Expr:
    """Of the elements at even and at odd places."""
    x = integers(m, x)
    pairs = m.reshape(x, (prod(x.shape) // 2, 2))
    return Expr("sum", (pairs,), Type(_summed(x.dtype), (2,)), (0, False))


def integers(m: Maker, x: Expr) -> Expr:
    return x if x.dtype in INTEGERS else m.cast(x, "int32")


# ---- folds ---------------------------------------------------------------------------------------


def _summed(dtype: str) -> str:
    if dtype in FLOATS or dtype[-2:] in ("32", "64"):
        return dtype
    return "uint32" if dtype in UNSIGNED or dtype == BOOL else "int32"


def _widest(dtype: str) -> str:
    """What `max` and `min` give."""
    if dtype[-2:] in ("32", "64"):
        return dtype
    return "float32" if dtype in FLOATS else "int32"


_FOLDS = ("larger", "total", "parity", "product", "total_in_steps", "parity_while")


def mapped(m: Maker) -> None:
    """Each element put through a function that loops."""
    m.program.features.add("map")
    x = m.cast(integers(m, m.tile()), m.pick(("int32", "int64", "int32")))
    m.let(Expr("map", (x,), x.type, (m.pick(("climbed", "summed_up")),)))


def reduce(m: Maker) -> None:
    x = operand(m, 1)
    if not x.shape:
        x = m.tile()
    axis = m.pick((None, *range(len(x.shape)), *range(len(x.shape))))
    keep = m.chance(0.2)
    if m.chance(0.3):
        m.pick((_custom, _pair))(m, x, axis or 0, keep)
    else:
        m.pick((_sum, _sum, _extremum, _extremum, _index, _bits))(m, x, axis, keep)


def folded(x: Expr, axis: int | None, keep: bool) -> Shape:
    if axis is None:
        return (1,) * len(x.shape) if keep else ()
    kept = (1,) if keep else ()
    return (*x.shape[:axis], *kept, *x.shape[axis + 1 :])


def _sum(m: Maker, x: Expr, axis: int | None, keep: bool) -> None:
    count = prod(x.shape) if axis is None else x.shape[axis]
    if x.dtype in FLOATS:
        most = min(largest_exact(x.dtype) // count, 100)
        x = m.bounded(x, most, most)
    dtype = _summed(x.dtype)
    bounds = fitting(x.bounds and (min(0, x.bounds[0] * count), max(0, x.bounds[1] * count)), dtype)
    kind = Type(dtype, folded(x, axis, keep))
    m.let(m.unsigned_zero(Expr("sum", (x,), kind, (axis, keep), bounds)))


def _extremum(m: Maker, x: Expr, axis: int | None, keep: bool) -> None:
    kind = Type(_widest(x.dtype), folded(x, axis, keep))
    found = Expr(m.pick(("max", "min")), (x,), kind, (axis, keep), x.bounds)
    m.let(m.unsigned_zero(found))


def _index(m: Maker, x: Expr, axis: int | None, keep: bool) -> None:
    if x.dtype in FLOATS:
        x = m.unsigned_zero(m.bounded(x, 50, 50))
    count = prod(x.shape) if axis is None else x.shape[axis]
    kind = Type("int32", folded(x, axis, keep))
    m.let(Expr(m.pick(("argmax", "argmin")), (x,), kind, (axis, keep), (0, count - 1)))


def _bits(m: Maker, x: Expr, axis: int | None, keep: bool) -> None:
    x = integers(m, x)
    kind = Type(x.dtype, folded(x, axis, keep))
    m.let(Expr(m.pick(("xor_sum", "reduce_or")), (x,), kind, (axis, keep)))


def _custom(m: Maker, x: Expr, axis: int, keep: bool) -> None:
    x = integers(m, x)
    function = m.pick(_FOLDS)
    m.let(Expr("reduce", (x,), Type(x.dtype, folded(x, axis, keep)), (function, axis, keep)))


def _pair(m: Maker, x: Expr, axis: int, keep: bool) -> None:
    """Two values at once: a maximum with its place, or a fold of two tiles."""
    names = (m.name(), m.name())
    if m.chance(0.4):
        x = m.unsigned_zero(m.bounded(x, 50, 50)) if x.dtype in FLOATS else x
        kind = Type(x.dtype, folded(x, axis, False))
        m.emit(Unpack(names, (Expr("max_pair", (x,), kind, (axis,)),)))
        m.known += [var(names[0], kind), var(names[1], Type("int32", kind.shape))]
        return
    x = integers(m, x)
    y = m.cast(_partner(m, x), x.dtype)
    function = m.pick(("both_sums", "better"))
    kind = Type(x.dtype, folded(x, axis, False))
    m.emit(Unpack(names, (Expr("reduce_pair", (x, y), kind, (function, axis, False)),)))
    m.known += [var(name, kind) for name in names]


def scan(m: Maker) -> None:
    x = operand(m, 1)
    if not x.shape:
        x = m.tile()
    axis, reverse = m.random.randrange(len(x.shape)), m.chance(0.4)
    way = m.random.randrange(5)
    if way < 2 and x.dtype in FLOATS:
        most = min(largest_exact(x.dtype) // x.shape[axis], 100)
        found = Expr("cumsum", (m.bounded(x, most, most),), x.type, (axis, reverse))
        m.let(m.unsigned_zero(found))
        return
    x = integers(m, x)
    if way < 3:
        kind = Type(_summed(x.dtype), x.shape)
        m.let(Expr(m.pick(("cumsum", "cumsum", "cumprod")), (x,), kind, (axis, reverse)))
    elif way == 3:
        function = m.pick(_FOLDS)
        m.let(Expr("scan", (x,), x.type, (function, axis, reverse)))
    else:
        y = m.cast(_partner(m, x), x.dtype)
        names = (m.name(), m.name())
        m.emit(Unpack(names, (Expr("scan_pair", (x, y), x.type, ("affine", axis, reverse)),)))
        m.known += [var(name, x.type) for name in names]


PRODUCTS = {"int8": ("int32",), "float16": ("float32", "float16"), "bfloat16": ("float32",),
            "float32": ("float32",), "float64": ("float64",)}  # fmt: skip
"""Operand -> dtypes of the sum; the first is the usual one."""


def factor(m: Maker, x: Expr, dtype: str) -> Expr:
    """An operand of a product whose sums are exact."""
    if dtype == "int8":
        return m.cast(x, dtype)
    return m.cast(m.bounded(x, 4, 3), dtype)


def product(m: Maker) -> None:
    """A product outside of loops, of shapes that tensor cores may not take."""
    x = m.tile(lambda v: len(v.shape) == 2 and prod(v.shape) <= 256)
    if len(x.shape) != 2:
        x = m.shaped(x, (m.rows, m.columns))
    dtype = m.pick(tuple(PRODUCTS))
    left = factor(m, x, dtype)
    depth = x.shape[1]
    if m.chance(0.6):
        right = Expr("trans", (factor(m, m.shaped(operand(m, 0), x.shape), dtype),),
                     Type(dtype, x.shape[::-1]))  # fmt: skip
    else:
        right = factor(m, m.shaped(operand(m, 0), (depth, 16)), dtype)
    result = dot(m, left, right, None)
    m.let(m.unsigned_zero(result))


def dot(m: Maker, left: Expr, right: Expr, acc: Expr | None) -> Expr:
    dtype = left.dtype
    wanted = acc.dtype if acc is not None else m.pick(PRODUCTS[dtype])
    words = (None, wanted if wanted != PRODUCTS[dtype][0] else None)
    if dtype == "float32" and m.chance(0.5):
        words = (m.pick(("ieee", "tf32", "tf32x3", "bf16x3")), None)
    kind = Type(wanted, (left.shape[0], right.shape[1]))
    args = (left, right) if acc is None else (left, right, acc)
    return Expr("dot", args, kind, words)
