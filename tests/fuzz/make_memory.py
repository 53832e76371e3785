"""Loads, stores and atomics at addresses that are inside their arrays by construction.

Arrays that are only read may be read anywhere. Of those that are written, each program instance has
a region of its own; only sums by atomics are shared.
"""

from __future__ import annotations

from math import prod

from tests.fuzz.make_expressions import condition, expression, operand
from tests.fuzz.program_dtypes import (
    BOOL,
    DTYPES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    UNSIGNED,
    Shape,
    Type,
)
from tests.fuzz.program_maker import Maker
from tests.fuzz.program_tree import ArrayArg, Barrier, Do, Expr, Store, var

INT = "int32"


# ---- index arithmetic ----------------------------------------------------------------------------


def plus(x: Expr, y: Expr | int) -> Expr:
    """A sum of small integers."""
    if isinstance(y, int):
        if y == 0:
            return x
        y = Expr("literal", (), Type("int"), (y,), (y, y))
    assert x.bounds is not None and y.bounds is not None
    bounds = (x.bounds[0] + y.bounds[0], x.bounds[1] + y.bounds[1])
    dtype = "int64" if "int64" in (x.dtype, y.dtype) else INT
    shape = max(x.shape, y.shape, key=len) if len(x.shape) != len(y.shape) else tuple(
        map(max, x.shape, y.shape))  # fmt: skip
    return Expr("add", (x, y), Type(dtype, shape), (), bounds)


def times(x: Expr, factor: int) -> Expr:
    if factor == 1:
        return x
    assert x.bounds is not None
    low, high = sorted((x.bounds[0] * factor, x.bounds[1] * factor))
    by = Expr("literal", (), Type("int"), (factor,), (factor, factor))
    return Expr("mul", (x, by), x.type, (), (low, high))


def along(m: Maker, dim: int, shape: Shape) -> Expr:
    """Indices of one dimension, which broadcast to a shape."""
    extent = shape[dim]
    named = [v for v in m.known if v.op == "var" and v.data[0] in ("i", "j")
             and v.shape == (extent,)]  # fmt: skip
    found = m.pick(named) if named and m.chance(0.8) else Expr(
        "arange", (), Type(INT, (extent,)), (0, extent), (0, extent - 1))  # fmt: skip
    if m.chance(0.1):
        found = Expr("cast", (found,), Type("int64", found.shape), ("int64",), found.bounds)
    if len(shape) == 1:
        return found
    text = ", ".join(":" if d == dim else "None" for d in range(len(shape)))
    kept = tuple(extent if d == dim else 1 for d in range(len(shape)))
    return Expr("expand", (found,), Type(found.dtype, kept), (f"[{text}]",), found.bounds)


def pattern(m: Maker, shape: Shape, room: int, distinct: bool) -> Expr:
    """Integers in [0, room) for the elements of a tile: dimensions in any order, any strides."""
    order = list(range(len(shape)))
    if m.chance(0.4):
        m.random.shuffle(order)
    steps, running = [0] * len(shape), 1
    for dim in reversed(order):
        stretch = m.pick((1, 1, 1, 2, 3))
        left = prod(shape[d] for d in order[: order.index(dim)])
        if running * stretch * shape[dim] * left > room:
            stretch = 1
        steps[dim] = running * stretch
        running *= stretch * shape[dim]
        if not distinct and m.chance(0.08):
            steps[dim] = 0
        elif m.chance(0.15):
            steps[dim] = -steps[dim]
    terms = [times(along(m, d, shape), step) for d, step in enumerate(steps) if step]
    zero = Expr("full", (m.literal(0),), Type(INT), (INT,), (0, 0))
    found = terms[0] if terms else zero
    for term in terms[1:]:
        found = plus(found, term)
    assert found.bounds is not None
    low, high = found.bounds
    spare = room - (high - low) - 1
    shift = m.pick((0, 0, 0, min(1, spare), min(5, spare), min(16, spare), spare))
    return plus(found, shift - low)


def shift_by_scalar(m: Maker, offsets: Expr, room: int) -> Expr:
    """Offsets that also depend on a scalar, such as the index of a loop, where there is room."""
    assert offsets.bounds is not None
    scalars = [v for v in m.known if not v.shape and v.bounds is not None and v.dtype in (
        "int32", "int64")]  # fmt: skip
    spare = room - 1 - offsets.bounds[1]
    if not scalars or spare < 1:
        return offsets
    scalar = scalars[-1] if m.chance(0.7) else m.pick(scalars)
    assert scalar.bounds is not None
    low, high = scalar.bounds
    if high - low > 16 or abs(low) > 1000:
        scalar = m.bounded(scalar, 0, 3)
        assert scalar.bounds is not None
        low, high = scalar.bounds
    factors = [
        f for f in (1, 2, 3, 4, m.columns, 8, m.rows * m.columns) if (high - low) * f <= spare
    ]
    if not factors:
        return offsets
    factor = m.pick(factors)
    term = times(scalar, factor)
    if m.chance(0.3) and low >= 0:  # counted down
        term = times(scalar, -factor)
    assert term.bounds is not None
    return plus(plus(term, -term.bounds[0]), offsets)


# ---- pointers ------------------------------------------------------------------------------------


def arrays_of(m: Maker, written: bool) -> list[Expr]:
    return [Expr("pointer", (), Type(f"*{a.name}"), (a.name,)) for a in m.program.arrays()
            if bool(a.region) == written and a.size > 1 and not a.same_as and a.contents != "shared"
            and a.name not in m.reserved]  # fmt: skip


def source_array(m: Maker) -> Expr:
    """An array to read from."""
    there = arrays_of(m, written=False)
    if there and (len(there) >= 3 or m.chance(0.4)):
        return m.pick(there)
    dtype = m.pick(DTYPES)
    contents = "wild" if m.chance(0.5) else "small"
    return m.array(dtype, m.rows * m.columns * 2 + 40, contents)


def scratch_array(m: Maker) -> Expr:
    """An array of which each program instance has a part, which it reads and writes."""
    there = arrays_of(m, written=True)
    if there and (len(there) >= 2 or m.chance(0.6)):
        return m.pick(there)
    region = m.rows * m.columns * 3 + m.pick((0, 8, 33))
    dtype = m.pick((*NUMBERS, "int32", "float32"))
    return m.array(dtype, region * m.program.grid, m.pick(("small", "zero")), region)


def array_of(m: Maker, pointer: Expr) -> ArrayArg:
    return m.program.array(pointer.dtype[1:])


def own_part(m: Maker, pointer: Expr) -> Expr:
    """The part of this program instance."""
    region = array_of(m, pointer).region
    if not region or m.program.grid == 1:
        return pointer
    pid = next(v for v in m.known if v.op == "var" and v.data[0] == "pid")
    return moved(pointer, times(pid, region))


def moved(pointer: Expr, by: Expr, sign: str = "+") -> Expr:
    shape = by.shape if by.shape else pointer.shape
    if by.shape and pointer.shape:
        shape = tuple(map(max, by.shape, pointer.shape))
    return Expr("offset", (pointer, by), Type(pointer.dtype, shape), (sign,))


def address(m: Maker, pointer: Expr, shape: Shape, distinct: bool) -> Expr:
    """Pointers to distinct or to any elements of an array."""
    array = array_of(m, pointer)
    room = array.region or array.size
    if not array.region and not distinct and m.chance(0.12):
        return moved(pointer, _looked_up(m, shape, array))
    offsets = pattern(m, shape, room, distinct)
    if m.chance(0.6):
        offsets = shift_by_scalar(m, offsets, room)
    base = own_part(m, pointer)
    assert offsets.bounds is not None
    _, high = offsets.bounds
    if m.chance(0.15) and high + 7 < array.size and not array.region:
        back = Expr("literal", (), Type("int"), (7,), (7, 7))
        return moved(moved(base, plus(offsets, 7)), back, "-")
    if m.chance(0.2) and not array.region:
        middle = Expr("literal", (), Type("int"), (high,), (high, high))
        return moved(moved(base, middle), plus(offsets, -high))  # all offsets negative
    found = moved(base, offsets)
    if m.chance(0.15):
        name = m.name("p")
        m.assign(var(name, found.type), found)
        found = var(name, found.type)
    return found


def _looked_up(m: Maker, shape: Shape, array: ArrayArg) -> Expr:
    """Offsets that are data."""
    room = 1 << (array.size.bit_length() - 1)
    x = m.shaped(operand(m, 1), shape)
    wide = m.cast(x, m.pick(("int32", "int64", "uint32")))
    return Expr("and", (wide, m.literal(room - 1)), wide.type, (), (0, room - 1))


def tile_shape(m: Maker) -> Shape:
    r, c = m.rows, m.columns
    return m.pick(((r, c), (r, c), (r, c), (c, r), (c,), (c,), (r,), (), (r * c,), (2,)))


# ---- loads ---------------------------------------------------------------------------------------


def load(m: Maker) -> None:
    pointer = scratch_array(m) if m.chance(0.4) else source_array(m)
    m.let(loaded(m, pointer, tile_shape(m)))


def loaded(m: Maker, pointer: Expr, shape: Shape) -> Expr:
    """A load, perhaps under a mask."""
    array = array_of(m, pointer)
    bounds = None
    if array.contents == "small" and not array.region:
        bounds = (0 if array.dtype in (*UNSIGNED, BOOL) else -3, 1 if array.dtype == BOOL else 3)
    way = m.random.random()
    if way < 0.15 and shape and not array.region:
        return _guarded(m, pointer, shape, array)
    where = address(m, pointer, shape, distinct=False)
    kind = Type(array.dtype, where.shape)
    if way < 0.6 or not where.shape:
        return Expr("load", (where,), kind, (), bounds)
    mask = mask_for(m, where.shape)
    other = m.literal_for(array.dtype)
    m.program.features.add("masked")
    if way < 0.7:
        found = Expr("load", (where, mask), kind)
        if array.dtype == BOOL:
            return Expr("and", (found, mask), Type(BOOL, where.shape), (), (0, 1))
        return Expr("where", (mask, found, other), kind)
    if way < 0.8:
        other = m.cast(m.spread(operand(m, 0), where.shape), array.dtype)
    return Expr("load", (where, mask, other), kind)


def _guarded(m: Maker, pointer: Expr, shape: Shape, array: ArrayArg) -> Expr:
    """A load that reaches over the ends of the array, where its mask is false."""
    m.program.features.add("masked")
    offsets = pattern(m, shape, array.size, distinct=False)
    shift = m.pick((-5, -1, 3, 17, array.size // 2))
    offsets = m.let(plus(offsets, shift), "o")
    end: Expr = m.argument(array.size) if m.chance(0.7) else m.literal(array.size)
    kind = Type(BOOL, offsets.shape)
    tests = [Expr(">=", (offsets, m.literal(0)), kind), Expr("<", (offsets, end), kind)]
    mask = Expr(m.pick(("and", "land")), (tests[0], tests[1]), kind)
    other = m.literal_for(array.dtype)
    return Expr("load", (moved(pointer, offsets), mask, other), Type(array.dtype, offsets.shape))


def mask_for(m: Maker, shape: Shape) -> Expr:
    """A condition of the shape, or one that broadcasts to it."""
    if len(shape) == 2 and m.chance(0.3):
        dim = m.random.randrange(2)
        index = along(m, dim, shape)
        limit = m.argument(m.pick((0, 1, 3, shape[dim] // 2, shape[dim])))
        return Expr("<", (index, limit), Type(BOOL, index.shape))
    if m.chance(0.4):
        index = m.counting(shape)
        test = m.literal(m.pick((0, 1, prod(shape) // 2, prod(shape) - 1, 3)))
        return Expr(m.pick(("<", "!=", ">=", "==")), (index, test), Type(BOOL, shape))
    found = condition(m, 1)
    return m.cast(m.shaped(found, shape), BOOL)


# ---- stores --------------------------------------------------------------------------------------


def stored(m: Maker, x: Expr, dtype: str) -> Expr:
    """A value for a store into an array of a dtype, converted by hand or by the store."""
    if x.dtype == dtype or x.op == "literal":
        return x
    defined = x.dtype not in FLOATS or dtype not in INTEGERS
    return x if defined and dtype != BOOL and m.chance(0.4) else m.cast(x, dtype)


def store(m: Maker) -> None:
    """Into a scratch array; often read back at once at other places."""
    pointer = scratch_array(m)
    array = array_of(m, pointer)
    x = expression(m, 1)
    if prod(x.shape) > array.region:
        x = m.shaped(x, (m.rows, m.columns))
    shape = tile_shape(m) if not x.shape and m.chance(0.4) else x.shape  # a scalar fills a tile
    where = address(m, pointer, shape, distinct=True)
    values = [where, stored(m, x, array.dtype)]
    if shape and m.chance(0.35):
        values.append(mask_for(m, shape))
    m.emit(Store(tuple(values)))
    if m.chance(0.1):
        m.emit(Barrier())
    if m.chance(0.6):
        m.let(loaded(m, pointer, tile_shape(m)))


def store_whole(m: Maker, x: Expr) -> None:
    """A variable to an array of its own, which nothing else touches."""
    shape = x.shape
    region = max(2 * prod(shape), 2)
    dtype = x.dtype
    pointer = m.array(dtype, region * m.program.grid, "zero", region)
    offsets = pattern(m, shape, region, distinct=True) if shape else m.literal(m.pick((0, 1)))
    m.emit(Store((moved(own_part(m, pointer), offsets), x)))


def two_names(m: Maker) -> None:
    """One array as two parameters: a barrier orders them, or each element is changed in place."""
    m.program.features.add("two names")
    x = m.tile(lambda v: prod(v.shape) <= m.rows * m.columns)
    if prod(x.shape) > m.rows * m.columns:
        x = m.index_tile()
    region = m.rows * m.columns * 2
    first = m.array(x.dtype, region * m.program.grid, "small", region)
    second = m.array(x.dtype, region * m.program.grid, "small", region, same_as=first.data[0])
    m.reserved |= {first.data[0], second.data[0]}
    one, other = (own_part(m, p) for p in ((first, second) if m.chance(0.5) else (second, first)))
    m.emit(Barrier())
    if m.chance(0.6):
        offsets = m.let(pattern(m, x.shape, region, distinct=True), "o")
        old = m.let(Expr("load", (moved(one, offsets),), x.type))
        new = Expr("xor" if x.dtype not in FLOATS else "add", (old, m.literal_for(x.dtype)), x.type)
        m.emit(Store((moved(other, offsets), new)))
    else:
        m.emit(Store((moved(one, pattern(m, x.shape, region, distinct=True)), x)))
        m.emit(Barrier())
        where = moved(other, pattern(m, x.shape, region, distinct=False))
        m.let(Expr("load", (where,), Type(x.dtype, where.shape)))
    m.emit(Barrier())


# ---- atomics -------------------------------------------------------------------------------------

_KINDS = ("add", "max", "min", "and", "or", "xor")
_ATOMIC = ("int32", "uint32", "int64", "uint64")


def atomic(m: Maker) -> None:
    if m.chance(0.5):
        _shared_counter(m)
    else:
        _own_atomic(m)


def _shared_counter(m: Maker) -> None:
    """All programs and lanes meet in a few elements; the order does not show in the end."""
    dtype = m.pick((*_ATOMIC, "float32", "float64"))
    kind = "add" if dtype in FLOATS else m.pick(_KINDS)
    pointer = m.array(dtype, 8, "zero")
    m.reserved.add(pointer.data[0])
    x = m.tile() if m.chance(0.8) else m.pick(m.known)
    if x.dtype.startswith("*"):
        x = m.tile()
    value = m.cast(m.bounded(x, 20, 20) if dtype in FLOATS else x, dtype)
    index = m.cast(m.shaped(operand(m, 0), x.shape), "int32")
    low = Expr("and", (index, m.literal(7)), Type("int32", x.shape), (), (0, 7))
    args = [moved(pointer, low), value]
    if x.shape and m.chance(0.4):
        args.append(mask_for(m, x.shape))
    m.emit(Do((Expr("atomic", tuple(args), Type(dtype, x.shape), (kind, False)),)))


def _own_atomic(m: Maker) -> None:
    """On distinct elements of the own part: what was there is known."""
    numel = m.rows * m.columns
    region = numel * 2
    dtype = m.pick(_ATOMIC)
    pointer = m.array(dtype, region * m.program.grid, "small", region)
    m.reserved.add(pointer.data[0])
    x = m.tile(lambda v: prod(v.shape) <= numel)
    if prod(x.shape) > numel:
        x = m.index_tile()
    value = m.cast(x, dtype)
    base = own_part(m, pointer)
    where = moved(base, pattern(m, x.shape, region, distinct=True))
    if m.chance(0.2):
        old = m.literal(m.pick((0, 1, 2)))
        m.let(Expr("cas", (where, old, value), Type(dtype, x.shape)))
        return
    args = [where, value]
    used = m.chance(0.7)
    if not used and m.chance(0.5):
        args.append(mask_for(m, x.shape))
    found = Expr("atomic", tuple(args), Type(dtype, x.shape), (m.pick((*_KINDS, "xchg")), used))
    if used:
        m.let(found)
    else:
        m.emit(Do((found,)))
    if m.chance(0.5):
        m.let(Expr("load", (moved(base, pattern(m, x.shape, region, distinct=True)),),
                   Type(dtype, x.shape)))  # fmt: skip
