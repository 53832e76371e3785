"""Loops, branches and calls around other statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.fuzz.make_expressions import expression, operand, scalar, scalar_condition
from tests.fuzz.make_memory import address, array_of, moved, source_array
from tests.fuzz.program_dtypes import (
    BOOL,
    INTEGERS,
    NUMBERS,
    Type,
    index_dtype,
    is_literal,
    literal_dtype,
)
from tests.fuzz.program_maker import Maker
from tests.fuzz.program_tree import (
    Bounds,
    Expr,
    For,
    Function,
    If,
    Let,
    Return,
    Unpack,
    While,
    var,
)

TOP = 2**31 - 1


# ---- for -----------------------------------------------------------------------------------------


def _number(m: Maker, value: int) -> Expr:
    """A bound of a loop: an argument, a literal, or a constexpr."""
    way = m.random.random()
    if way < 0.6 or literal_dtype(value) == "uint32":  # whose loop would count in unsigned numbers
        return m.argument(value)
    if way < 0.9:
        return m.literal(value)
    return m.constant(value)


_RANGES: Sequence[tuple[int, ...]] = (
    (0, 3), (0, 4), (0, 1), (0, 0), (0, 6), (2, 5), (5, 2), (-2, 2), (0, 7, 2), (1, 8, 3),
    (0, 5, 7),
    (0, 64, 16), (5, 0, -1), (7, -2, -3), (3, 3, -1), (0, 5, -1), (4, -1, -2), (16, 0, -16),
    (-1, -6, -2), (0, -4, -1),
    (TOP - 5, TOP, 2), (TOP - 5, TOP, 4), (TOP - 2, TOP), (TOP - 70, TOP, 64), (0, TOP, TOP // 2),
    (TOP, TOP - 3, -1), (-TOP - 1, -TOP + 2), (-TOP + 3, -TOP - 1, -2), (-TOP - 1, TOP, 2**30),
    (TOP, -TOP - 1, -(2**30)), (TOP - 1, TOP + 3), (2**40, 2**40 + 5, 2), (5, -(2**40), -(2**39)),
)  # fmt: skip
"""Starts, ends and steps, the last of them near the limits of int32 and beyond."""


def _head(m: Maker) -> tuple[str, tuple[Expr, ...], dict[str, Any], Bounds]:
    """Kind, bounds and hints of a loop of at most seven iterations, and the range of its index."""
    if m.chance(0.15):
        low = m.random.randrange(3)
        count = m.random.randrange(4)
        step = m.pick((1, 1, 2, -1))
        numbers = range(low, low + count * step, step)
        values = tuple(map(m.literal, (low, low + count * step, step)))
        return "tl.static_range", values, {}, _reach(numbers)
    hints: dict[str, Any] = {}
    if m.chance(0.5):
        hints["num_stages"] = m.random.randrange(1, 6)
        if m.chance(0.15):
            hints["loop_unroll_factor"] = m.pick((1, 2, 3, 4))
        if m.chance(0.1):
            hints["disable_licm"] = True
    kind = "tl.range" if hints else m.pick(("range", "tl.range"))
    if m.chance(0.15):
        end = m.bounded(scalar(m), 0, 3)
        return kind, (end,), hints, (0, max(0, (end.bounds or (0, 3))[1] - 1))
    numbers = m.pick(_RANGES if m.chance(0.5) else _RANGES[:12])
    if m.depth > 1 and len(range(*numbers)) > 3:
        numbers = (0, 2)
    if m.chance(0.3) and len(numbers) == 2:
        numbers = (*numbers, 1)
    if len(numbers) == 2 and numbers[0] == 0 and m.chance(0.7):
        numbers = numbers[1:]
    values = tuple(_number(m, number) for number in numbers)
    if len(numbers) == 3:
        m.program.features.add("step")
    return kind, values, hints, _reach(range(*numbers))


def _without_end(m: Maker) -> tuple[str, tuple[Expr, ...], dict[str, Any], Bounds]:
    """A step of 0, even of a range that is empty anyway."""
    m.program.features.add("step of 0")
    m.program.skip.add("nvidia")  # which nothing can be launched on after it has stopped
    kind = m.pick(("range", "tl.range", "tl.static_range"))
    number = m.literal if kind == "tl.static_range" else m.pick((m.literal, m.argument))
    start, end = m.pick(((0, 0), (0, 3), (2, 0)))
    return kind, tuple(map(number, (start, end, 0))), {}, (0, 0)


def _reach(numbers: range) -> Bounds:
    return (min(numbers), max(numbers)) if numbers else (0, 0)


def loop(m: Maker) -> None:
    m.program.features.add("for")
    endless = not m.depth and not m.in_function and m.chance(0.02)
    kind, values, hints, reach = (_without_end if endless else _head)(m)
    is_static = kind == "tl.static_range"
    carried = carried_variables(m, allow_literals=not is_static)
    pointer = _moving_pointer(m) if m.chance(0.25) and not m.in_function else None
    body: list[Any] = []
    name = m.name("k")
    dtype = index_dtype([literal_dtype(v.data[-1]) if is_literal(v.dtype) else v.dtype
                         for v in values])  # fmt: skip
    index = var(name, Type("int" if is_static else dtype), reach)
    with m.inside(body):
        if not is_static:
            m.known.append(index)
        if pointer is not None:
            _use_pointer(m, *pointer)
        m.fill(m, m.random.randrange(1, 4))
        _carry(m, carried)
        if pointer is not None:
            _advance(m, *pointer)
    m.emit(For(name, kind, values, hints, body))
    m.known += [v for v in carried if v not in m.known]


def carried_variables(m: Maker, allow_literals: bool) -> list[Expr]:
    """Variables that a loop changes: some that are there, or new ones that begin as literals."""
    found: list[Expr] = []
    for _ in range(m.pick((1, 1, 2, 3))):
        old = m.variable(lambda v: m.assignable(v) and v not in found)
        if old is not None and m.chance(0.5):
            found.append(old)
        elif allow_literals and m.chance(0.4):
            value = m.pick((0, 0, 1, 0.0, 1.0, -3))
            name = m.name("c")
            m.emit(Let((name,), (m.literal(value),)))
            found.append(var(name, Type(literal_dtype(value))))
        else:
            found.append(_fresh(m))
    return found


def _fresh(m: Maker) -> Expr:
    """A new variable without bounds."""
    x = expression(m, 1)
    name = m.name()
    m.emit(Let((name,), (x,)))
    return var(name, x.type)


def _carry(m: Maker, carried: list[Expr]) -> None:
    """New values at the end of an iteration; sometimes the variables trade places."""
    same = [v for v in carried if v.type == carried[0].type and v.bounds == carried[0].bounds]
    if len(same) > 1 and m.chance(0.5):
        names = tuple(v.data[0] for v in same)
        turned = (*same[1:], same[0] if m.chance(0.5) else m.coerced(expression(m, 1), same[0]))
        m.emit(Let(names, tuple(turned)))
        carried = [v for v in carried if v not in same]
    for v in carried:
        if m.chance(0.6) and v.dtype in NUMBERS:
            step = m.coerced(operand(m, 1), v)
            new = Expr(m.pick(("add", "sub", "add")), (v, step), v.type)
        else:
            new = expression(m, 1)
        m.assign(v, m.coerced(new, v))


def _moving_pointer(m: Maker) -> tuple[Expr, Expr]:
    """A tile of pointers for a loop, and how far it moves in an iteration."""
    array = source_array(m)
    stride = m.pick((1, 2, m.columns, -1))
    size = m.rows * m.columns * 2 + 40
    shape = m.pick(((m.rows, m.columns), (m.columns,), ()))
    where = address(m, array, shape, distinct=False)
    room = 7 * abs(stride) + 1
    array_of(m, array).size += room  # it is read beyond what is known so far
    if stride < 0:
        where = moved(where, m.literal(room))
    else:
        array_of(m, array).size = max(array_of(m, array).size, size + room)
    name = m.name("p")
    m.emit(Let((name,), (where,)))
    return var(name, where.type), m.literal(stride)


def _use_pointer(m: Maker, pointer: Expr, _: Expr) -> None:
    element = m.program.array(pointer.dtype[1:]).dtype
    m.let(Expr("load", (pointer,), Type(element, pointer.shape)))


def _advance(m: Maker, pointer: Expr, stride: Expr) -> None:
    m.assign(pointer, moved(pointer, stride))


# ---- while and if --------------------------------------------------------------------------------


def while_loop(m: Maker) -> None:
    m.program.features.add("while")
    counter = m.name("w")
    m.emit(Let((counter,), (m.literal(0),)))
    count = var(counter, Type("int32"), (0, 6))
    carried = carried_variables(m, allow_literals=True)
    end = m.argument(m.pick((0, 1, 3, 5))) if m.chance(0.6) else m.literal(m.pick((1, 2, 4)))
    test = Expr("<", (count, end), Type(BOOL), (), (0, 1))
    scalars = [v for v in carried if not v.shape and v.dtype in INTEGERS]
    if scalars and m.chance(0.5):
        more = Expr(
            m.pick(("<", ">", "!=")), (scalars[0], m.literal(m.pick((0, 3, 50)))), Type(BOOL)
        )
        test = Expr(m.pick(("and", "land")), (test, more), Type(BOOL), (), (0, 1))
    body: list[Any] = []
    with m.inside(body):
        m.known.append(count)
        m.fill(m, m.random.randrange(0, 3))
        _carry(m, carried)
        m.assign(count, Expr("add", (count, m.literal(m.pick((1, 1, 2)))), Type("int32")))
    m.emit(While((test,), body))
    m.known += [v for v in carried if v not in m.known]


def branch(m: Maker) -> None:
    m.program.features.add("if")
    test = scalar_condition(m)
    targets = [v for v in (m.variable(m.assignable) for _ in range(2)) if v is not None]
    bodies: tuple[list[Any], list[Any]] = ([], [])
    _arm(m, bodies[0], targets)
    if m.chance(0.7):
        _arm(m, bodies[1], targets)
    m.emit(If((test,), *bodies))


def _arm(m: Maker, body: list[Any], targets: list[Expr]) -> None:
    """Fill one side of a branch, which may change the targets."""
    with m.inside(body):
        m.fill(m, m.random.randrange(0, 3))
        for target in targets:
            if m.chance(0.8):
                m.assign(target, m.coerced(expression(m, 1), target))


def ternary(m: Maker) -> None:
    """`a if c else b` of scalars of one type."""
    x = m.variable(lambda v: not v.shape and v.dtype in NUMBERS) or scalar(m)
    y = m.coerced(operand(m, 0), var("_", x.type))
    test = scalar_condition(m)
    m.let(Expr("ternary", (test, x, y), x.type))


# ---- calls ---------------------------------------------------------------------------------------


class FunctionMaker(Maker):
    """Fills a function: it sees its parameters only."""

    def argument(self, value: Any, prefix: str = "n") -> Expr:
        dtype = "float32" if isinstance(value, float) else literal_dtype(value)
        return Expr("full", (self.literal(value),), Type(dtype), (dtype,), None)

    def constant(self, value: Any) -> Expr:
        return self.literal(value)


def call(m: Maker) -> None:
    """A new function of some operands, of which one may be compile-time."""
    m.program.features.add("call")
    args = [operand(m, 1) for _ in range(m.pick((1, 2, 2, 3)))]
    if m.chance(0.4):
        args.append(m.literal(m.pick((0, 1, 2, 5))))
    name = f"f{len(m.program.functions)}"
    params = [(f"given{k}", arg.type) for k, arg in enumerate(args)]
    body: list[Any] = []
    function = Function(name, params, body, args[0].type)
    m.program.functions.append(function)
    inner = FunctionMaker(m.program, m.random, m.rows, m.columns, m.fill)
    inner.block, inner.depth, inner.in_function = body, m.depth + 1, True
    inner.known = [var(n, t) for n, t in params if t.dtype not in ("int", "float", "bool")]
    if len(inner.known) < len(args):
        name_, value = params[-1][0], args[-1].data[0]
        const = Expr("constant", (), Type("int"), (name_, value), (value, value))
        first = inner.known[0]
        if first.dtype in NUMBERS:
            inner.let(Expr("add", (first, const), first.type))
    m.fill(inner, m.random.randrange(0, 3))
    results = _returned(inner)
    function.type = results[0].type
    found = Expr("call", tuple(args), results[0].type, (name,))
    if len(results) == 1:
        m.let(found)
        return
    names = tuple(m.name() for _ in results)
    m.emit(Unpack(names, (found,)))
    m.known += [var(n, e.type) for n, e in zip(names, results, strict=True)]


def _returned(m: Maker) -> tuple[Expr, ...]:
    """End a function, sometimes from within a branch."""
    first = m.let(expression(m, 1))
    like = var("_", first.type)
    if m.chance(0.3):
        scalars = [v for v in m.known if not v.shape and v.dtype in INTEGERS]
        if scalars:
            test = Expr(">", (m.pick(scalars), m.literal(1)), Type(BOOL))
            early = m.coerced(expression(m, 0), like)
            m.emit(If((test,), [Return((early,))], []))
            m.emit(Return((first,)))
            return (first,)
    if m.chance(0.3):
        second = m.let(expression(m, 0))
        m.emit(Return((first, second)))
        return (first, second)
    m.emit(Return((first,)))
    return (first,)
