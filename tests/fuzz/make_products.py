"""Loops of products, which backends pipeline: with stores, barriers, atomics and branches inside.

    for k in tl.range(...):                     index, pointers or a count-down decide the addresses
        x, y = loads, perhaps masked or transposed
        acc = tl.dot(f(x), g(y), acc)
        extras: another product, a store (of the tile that is loaded next, too), a barrier ...

All numbers are small integers, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import prod
from typing import Any

from tests.fuzz.make_control import TOP
from tests.fuzz.make_memory import moved, own_part, plus, times
from tests.fuzz.make_shapes import PRODUCTS, dot
from tests.fuzz.program_dtypes import BOOL, FLOATS, NUMPY, Shape, Type
from tests.fuzz.program_maker import Maker
from tests.fuzz.program_tree import Barrier, Do, Expr, For, If, Let, Stmt, Store, While, var
from tilewright.support.data_class import dataclass

SMALL = (-3, 3)


@dataclass
class Loop:
    """A loop under construction.

    count: its most iterations; index: the loop variable; number: that of the iteration, as an
    expression in the body; before: the block that it stands in; tail: the end of an iteration;
    results: what is carried beside the accumulators.
    """

    m: Maker
    rows: int
    columns: int
    depth: int
    dtype: str
    count: int
    index: Expr
    number: Expr
    before: list[Stmt]
    tail: list[Stmt] = field(default_factory=list["Stmt"])
    accumulators: list[Expr] = field(default_factory=list[Expr])
    results: list[Expr] = field(default_factory=list[Expr])


def product_loops(m: Maker) -> None:
    """One to three loops, one after the other."""
    count = m.pick((1, 1, 1, 2)) if m.chance(0.95) else 3
    arrays: list[Expr] = []
    for _ in range(count):
        product_loop(m, arrays)


def product_loop(m: Maker, arrays: list[Expr], depth: int = 0) -> None:
    m.program.features.add("product loop")
    rows, columns, inner = (m.pick((16, 16, 16, 16, 16, 32)) for _ in range(3))
    dtype = m.pick(("float16", "float16", "float16", "bfloat16", "int8", "float32"))
    head, values, hints, loop = _head(m, rows, columns, inner, dtype, depth)
    acc_dtype = PRODUCTS[dtype][0]
    for _ in range(m.pick((1, 1, 1, 1, 2))):
        loop.accumulators.append(_zeros(m, (rows, columns), acc_dtype))
    body: list[Stmt] = []
    with m.inside(body):
        m.known.append(loop.index)
        left = _operand(loop, arrays, (rows, inner))
        right = _operand(loop, arrays, (inner, columns))
        for extra in _some_extras(m, depth, first=True):
            extra(loop, arrays)
        for number, acc in enumerate(loop.accumulators):
            if number:
                left = _operand(loop, arrays, (rows, inner))
            m.assign(acc, dot(m, _worked(m, left), _worked(m, right), acc))
        for extra in _some_extras(m, depth, first=False):
            extra(loop, arrays)
        for statement in loop.tail:
            m.emit(statement)
    body = _in_branch(loop, body)
    if not (m.chance(0.25) and _while_loop(loop, values, body)):
        m.emit(For(loop.index.data[0], head, values, hints, body))
    m.known += loop.results
    for acc in loop.accumulators:
        result = m.let(m.unsigned_zero(acc))
        if m.chance(0.4):
            _to_memory(m, result)


def _in_branch(loop: Loop, body: list[Stmt]) -> list[Stmt]:
    """The body of a loop, sometimes in a branch around its loads."""
    m = loop.m
    if m.chance(0.85):
        return body
    m.program.features.add("product branch")
    first = m.literal((loop.index.bounds or (0, 0))[0])
    return [If((Expr(m.pick(("!=", "==")), (loop.index, first), Type(BOOL)),), body, [])]


def _while_loop(loop: Loop, values: tuple[Expr, ...], body: list[Stmt]) -> bool:
    """Emit a loop as a `while`, unless its index would wrap."""
    m, index, name = loop.m, loop.index, loop.index.data[0]
    step = values[2] if len(values) == 3 else m.literal(1)
    start = values[0] if len(values) > 1 else m.literal(0)
    size = step.bounds[0] if step.bounds else 0
    low, high = index.bounds or (0, 0)
    if not size or not -TOP <= min(low, high) + size <= max(low, high) + size <= TOP:
        return False
    m.program.features.add("product while")
    m.emit(Let((name,), (Expr("add", (start, m.literal(0)), Type("int32")),)))
    below = Expr("<" if size > 0 else ">", (index, values[min(1, len(values) - 1)]), Type(BOOL))
    with m.inside(body):
        m.assign(index, Expr("add", (index, step), Type("int32")))
    m.emit(While((below,), body))
    return True


def _zeros(m: Maker, shape: Shape, dtype: str) -> Expr:
    name = m.name("acc")
    m.emit(Let((name,), (Expr("zeros", (), Type(dtype, shape), (dtype,)),)))
    return var(name, Type(dtype, shape))


# ---- heads ---------------------------------------------------------------------------------------


def _head(
    m: Maker, rows: int, columns: int, inner: int, dtype: str, depth: int
) -> tuple[str, tuple[Expr, ...], dict[str, Any], Loop]:
    """Kind, bounds and hints of a loop of up to five iterations, and how it counts them."""
    count = m.pick((0, 1, 2, 3, 3, 4, 4, 5) if depth == 0 else (1, 2, 2, 3))
    name = m.name("k")
    hints = {"num_stages": m.random.randrange(1, 6)} if m.chance(0.8) else {}
    number = m.argument if m.chance(0.8) else m.literal
    low, step = m.weighted((
        (6, (0, 1)), (3, (0, inner)), (2, (count - 1, -1)), (1, (-16, 16)), (1, (3, 2)),
        (1, (TOP - max(count, 1) * 16, 16)), (1, (TOP - count * 16 + 8, 16)),
        (1, (TOP - max(count, 1), 1)), (1, (TOP, -64)),
    ))  # fmt: skip
    end = min(low + count * step, TOP) if step > 0 else low + count * step
    if step > 1 and m.chance(0.3) and end < TOP:
        end -= 1
    count = len(range(low, end, step))
    index = var(name, Type("int32"), (low, low + max(count - 1, 0) * step))
    if abs(step) > 1 or low:
        # Rounded towards zero from below, the number of the iteration is exact.
        start = m.literal(low)
        away = Expr("sub", (index, start), Type("int32"), (), _ordered(0, (count - 1) * step))
        most = (0, max(count - 1, 0))
        number_of = away if step == 1 else Expr(
            "floordiv", (away, m.literal(step)), Type("int32"), (), most)  # fmt: skip
    else:
        number_of = index
    values = tuple(map(number, (low, end, step)))
    if step == 1 and low == 0 and m.chance(0.6):
        values = (number(end),)
    kind = "tl.range" if hints or m.chance(0.5) else "range"
    loop = Loop(m, rows, columns, inner, dtype, max(count, 1), index, number_of, m.block)
    return kind, values, hints, loop


def _ordered(a: int, b: int) -> tuple[int, int]:
    return min(a, b, 0), max(a, b, 0)


# ---- operands ------------------------------------------------------------------------------------


def _matrix(loop: Loop, arrays: list[Expr], dtype: str, size: int) -> Expr:
    """An array of a dtype, of at least a size; one that another loop has read or written, too."""
    m = loop.m
    there = [a for a in arrays if m.program.array(a.data[0]).dtype == dtype]
    if there and m.chance(0.5):
        found = m.pick(there)
        array = m.program.array(found.data[0])
        if array.region:
            return found if array.region >= size else _new_matrix(m, arrays, dtype, size)
        array.size = max(array.size, size * m.program.grid)
        return found
    return _new_matrix(m, arrays, dtype, size)


def _new_matrix(m: Maker, arrays: list[Expr], dtype: str, size: int) -> Expr:
    written = m.chance(0.35)
    region = size + m.pick((0, 256, 16)) if written else 0
    found = m.array(dtype, (region or size) * m.program.grid, "small", region)
    m.reserved.add(found.data[0])
    arrays.append(found)
    return found


def _operand(loop: Loop, arrays: list[Expr], shape: Shape) -> Expr:
    """A tile of iteration `number` out of a larger matrix, stored either way round."""
    m = loop.m
    count = loop.count + 1  # one more, which an iteration may store
    turned = m.chance(0.3)
    matrix = _matrix(loop, arrays, loop.dtype, prod(shape) * count)
    inside = shape[::-1] if turned else shape
    how = m.random.randrange(3)
    stride, step = (inside[1], prod(shape)) if how else (inside[1] * count, inside[1])
    tile = _tile_of(m, inside, stride)
    moves = m.chance(0.25)
    base = own_part(m, matrix)
    if moves:
        where = _moving(loop, moved(base, tile), step)
    else:
        number = _carried_number(loop) if m.chance(0.2) else loop.number
        where = moved(base, plus(times(number, step), tile))
    args: list[Expr] = [where]
    if m.chance(0.3):
        args += _masked(loop, inside)
    found = Expr("load", tuple(args), Type(loop.dtype, inside), (), SMALL)
    if turned:
        found = m.let(found) if m.chance(0.5) else found
        found = Expr("trans", (found,), Type(loop.dtype, shape), (), SMALL)
    return m.let(found)


def _tile_of(m: Maker, shape: Shape, stride: int) -> Expr:
    """Offsets of a row-major tile."""
    size = (Expr("arange", (), Type("int32", (n,)), (0, n), (0, n - 1)) for n in shape)
    rows, columns = size
    down = Expr("expand", (rows,), Type("int32", (shape[0], 1)), ("[:, None]",), rows.bounds)
    across = Expr(
        "expand", (columns,), Type("int32", (1, shape[1])), ("[None, :]",), columns.bounds
    )
    return plus(times(down, stride), across)


def _moving(loop: Loop, start: Expr, step: int) -> Expr:
    """Pointers that move on with each iteration."""
    m = loop.m
    name = m.name("p")
    pointer = var(name, start.type)
    loop.before.append(Let((name,), (start,)))
    loop.tail.append(Let((name,), (moved(pointer, m.literal(step)),)))
    return pointer


def _carried_number(loop: Loop) -> Expr:
    """The number of the iteration, which the one two before has computed."""
    m = loop.m
    bounds = (0, loop.count + 1)
    now, following = (var(m.name("n"), Type("int32"), bounds) for _ in range(2))
    for variable, start in ((now, 0), (following, 1)):
        whole = Expr("full", (m.literal(start),), Type("int32"), ("int32",), (start, start))
        loop.before.append(Let((variable.data[0],), (whole,)))
    # The index of a loop may be 64 bits wide.
    after = Expr("add", (loop.number, m.literal(2)), Type("int64"), (), bounds)
    after = Expr("cast", (after,), Type("int32"), ("int32",), bounds)
    loop.tail.append(Let((now.data[0], following.data[0]), (following, after)))
    return now


def _masked(loop: Loop, shape: Shape) -> list[Expr]:
    """A mask and what stands for the rest: zeros of both signs, or another number."""
    m = loop.m
    m.program.features.add("masked")
    index = Expr("arange", (), Type("int32", (shape[1],)), (0, shape[1]), (0, shape[1] - 1))
    across = Expr("expand", (index,), Type("int32", (1, shape[1])), ("[None, :]",), index.bounds)
    limit = m.argument(m.pick((0, 3, 8, shape[1] - 1, shape[1])))
    mask = Expr("<", (across, limit), Type(BOOL, (1, shape[1])))
    if m.chance(0.4):
        left = Expr("sub", (m.literal(m.pick((16, 32, 5))), times(loop.number, 8)), Type("int32"))
        mask = Expr("<", (across, left), Type(BOOL, (1, shape[1])))
    whole = Expr("broadcast_to", (mask,), Type(BOOL, shape))
    others = (0.0, 0.0, -0.0, 1.0) if loop.dtype in FLOATS else (0, 0, 2)
    return [whole if m.chance(0.5) else mask, m.literal(m.pick(others))]


def _worked(m: Maker, x: Expr) -> Expr:
    """An operand after some element-wise work."""
    way = m.random.randrange(10)
    if way == 0:
        return Expr("mul", (x, m.literal(2)), x.type, (), (-6, 6))
    if way == 1:
        test = Expr(">", (x, m.literal(0)), Type(BOOL, x.shape))
        one = m.literal(1.0 if x.dtype in FLOATS else 1)
        return Expr("where", (test, x, one), x.type, (), SMALL)
    if way == 2 and x.dtype in FLOATS:
        return _signs(m, x)
    if way == 3:
        return Expr("neg", (x,), x.type, (), SMALL)
    if way == 4:  # computed in registers, though it is what was loaded
        wide = "int32" if x.dtype == "int8" else "float32"
        there = Expr("cast", (x,), Type(wide, x.shape), (wide,), x.bounds)
        return Expr("cast", (there,), x.type, (x.dtype,), x.bounds)
    return x


def _signs(m: Maker, x: Expr) -> Expr:
    """1 where the sign is set, of zeros too."""
    whole = {2: "int16", 4: "int32", 8: "int64"}[NUMPY[x.dtype].itemsize]
    pattern = Expr("bitcast", (x,), Type(whole, x.shape), (whole,))
    test = Expr("<", (pattern, m.literal(0)), Type(BOOL, x.shape))
    return Expr("cast", (test,), x.type, (x.dtype,), (0, 1))


def _small(m: Maker, x: Expr, dtype: str) -> Expr:
    """Small integers that depend on a sum."""
    whole = x if x.dtype == "int32" else Expr("cast", (x,), Type("int32", x.shape), ("int32",))
    low = Expr("and", (whole, m.literal(3)), whole.type, (), (0, 3))
    return Expr("cast", (low,), Type(dtype, x.shape), (dtype,), (0, 3))


# ---- extras --------------------------------------------------------------------------------------

Extra = Callable[[Loop, list[Expr]], None]


def _some_extras(m: Maker, depth: int, first: bool) -> list[Extra]:
    """What else happens in an iteration, before or after its products."""
    before: list[Extra] = [_barrier, _atomic, _scalar_load, _store_ahead]
    after: list[Extra] = [_store_ahead, _store_ahead, _store_result, _chained, _barrier, _sum,
                          _atomic, _branch]  # fmt: skip
    after += [_inner_loop] if depth == 0 else []
    choices = before if first else after
    count = m.weighted(((6, 0), (1, 1)) if first else ((4, 0), (5, 1), (1, 2)))
    return [m.pick(choices) for _ in range(count)]


def _barrier(loop: Loop, arrays: list[Expr]) -> None:
    loop.m.emit(Barrier())


def _store_ahead(loop: Loop, arrays: list[Expr]) -> None:
    """Into an array that the loop reads: what the next iteration loads, or some other part."""
    m = loop.m
    written = [a for a in arrays if m.program.array(a.data[0]).region]
    if not written:
        return
    target = m.pick(written)
    array = m.program.array(target.data[0])
    acc = m.pick(loop.accumulators)
    count = loop.count + 1
    if prod(acc.shape) * count > array.region:
        return
    m.program.features.add("store in product loop")
    ahead = plus(times(loop.number, prod(acc.shape)), m.pick((1, 1, 1, 0)) * prod(acc.shape))
    where = moved(own_part(m, target), plus(ahead, _tile_of(m, acc.shape, acc.shape[1])))
    m.emit(Store((where, _small(m, acc, array.dtype))))


def _store_result(loop: Loop, arrays: list[Expr]) -> None:
    """To an array of its own, each iteration elsewhere or in overlapping windows."""
    m = loop.m
    acc = m.pick(loop.accumulators)
    step = m.pick((prod(acc.shape), acc.shape[1], 0))
    region = prod(acc.shape) + loop.count * step
    target = m.array(acc.dtype, region * m.program.grid, "zero", region)
    m.reserved.add(target.data[0])
    offsets = plus(times(loop.number, step), _tile_of(m, acc.shape, acc.shape[1]))
    m.emit(Store((moved(own_part(m, target), offsets), m.unsigned_zero(acc))))


def _chained(loop: Loop, arrays: list[Expr]) -> None:
    """A product of what a product gave, as in attention."""
    m = loop.m
    acc = m.pick(loop.accumulators)
    right = _operand(loop, arrays, (acc.shape[1], loop.columns))
    target = _zeros_before(loop, (acc.shape[0], loop.columns), acc.dtype)
    m.assign(target, dot(m, _small(m, acc, loop.dtype), right, target))


def _zeros_before(loop: Loop, shape: Shape, dtype: str) -> Expr:
    m = loop.m
    name = m.name("acc")
    loop.before.append(Let((name,), (Expr("zeros", (), Type(dtype, shape), (dtype,)),)))
    found = var(name, Type(dtype, shape))
    loop.accumulators.append(found)
    return found


def _sum(loop: Loop, arrays: list[Expr]) -> None:
    """A row sum that is carried."""
    m = loop.m
    acc = m.pick(loop.accumulators)
    name = m.name("acc")
    kind = Type("int32", (acc.shape[0],))
    loop.before.append(Let((name,), (Expr("zeros", (), kind, ("int32",)),)))
    total = var(name, kind)
    small = _small(m, acc, "int32")
    m.assign(total, Expr("add", (total, Expr("sum", (small,), kind, (1, False))), kind))
    loop.tail.append(Let((name,), (Expr("xor", (total, m.literal(1)), kind),)))
    loop.results.append(total)


def _atomic(loop: Loop, arrays: list[Expr]) -> None:
    m = loop.m
    counter = m.array("int32", 8, "zero")
    m.reserved.add(counter.data[0])
    place = Expr("and", (loop.number, m.literal(7)), Type("int32"), (), (0, 7))
    args = (moved(counter, place), m.literal(m.pick((1, 3))))
    m.emit(Do((Expr("atomic", args, Type("int32"), ("add", False)),)))


def _scalar_load(loop: Loop, arrays: list[Expr]) -> None:
    """A number for each iteration, by which an accumulator is scaled to small numbers."""
    m = loop.m
    scales = m.array("int32", loop.count + 1, "small")
    m.reserved.add(scales.data[0])
    scale = m.let(Expr("load", (moved(scales, loop.number),), Type("int32"), (), SMALL))
    acc = loop.accumulators[0]
    odd = Expr(">", (scale, m.literal(0)), Type(BOOL))
    reset = Expr("where", (odd, acc, m.literal(1.0 if acc.dtype in FLOATS else 1)), acc.type)
    m.assign(acc, reset)


def _branch(loop: Loop, arrays: list[Expr]) -> None:
    m = loop.m
    acc = m.pick(loop.accumulators)
    odd = Expr("and", (loop.number, m.literal(1)), Type("int32"), (), (0, 1))
    test = Expr("==", (odd, m.literal(m.pick((0, 1)))), Type(BOOL))
    body: list[Stmt] = []
    with m.inside(body):
        if m.chance(0.5):
            _store_ahead(loop, arrays)
        m.assign(acc, Expr("zeros_like", (acc,), acc.type))
    m.emit(If((test,), body, []))


def _inner_loop(loop: Loop, arrays: list[Expr]) -> None:
    """A whole loop of products inside an iteration."""
    m = loop.m
    m.program.features.add("nested product loop")
    product_loop(m, arrays, depth=1)


def _to_memory(m: Maker, x: Expr) -> None:
    region = prod(x.shape)
    target = m.array(x.dtype, region * m.program.grid, "zero", region)
    m.reserved.add(target.data[0])
    m.emit(Store((moved(own_part(m, target), _tile_of(m, x.shape, x.shape[1])), x)))
