"""Random programs of integers and addresses: no memory, but loops, branches and all index ops.

`IntegerPrograms(random).function()` makes one. What is undefined (division by zero, shifts by the
width) is left out where that is plain to see; arguments have facts that `arguments` respects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from random import Random

from tilewright.ir import Block, Builder, Function, Op, Value
from tilewright.ir.types import (
    DType,
    PointerType,
    TileType,
    Type,
    element_of,
    f16,
    f32,
    i1,
    i8,
    i16,
    i32,
    i64,
    shape_of,
    u8,
    u32,
    u64,
)
from tilewright.ops import (
    COMPARISONS,
    AbsOp,
    AddOp,
    AndOp,
    BitcastOp,
    BroadcastOp,
    CastOp,
    CatOp,
    CompareOp,
    ConditionOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    IfOp,
    ItemOp,
    JoinOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    OffsetOp,
    OrOp,
    ProgramIdOp,
    RangeOp,
    RemOp,
    ReshapeOp,
    ReturnOp,
    SelectOp,
    ShlOp,
    ShrOp,
    SplatOp,
    SplitOp,
    SubOp,
    TransposeOp,
    WhileOp,
    XorOp,
    YieldOp,
)

_TYPES = (i32, i32, i32, i64, i64, u32, u64, i16, i8, u8)
_POINTERS = (PointerType(f32), PointerType(f16), PointerType(i8))
_EXTENTS = (1, 2, 4, 8, 8, 16, 16, 12, 6, 256)
_NICE = (0, 1, 1, 2, 3, 4, 4, 5, 8, 8, 12, 16, 16, 32, 48, 64, 100, -1, -2, -4, -8, -16)
_BINARY = (AddOp, AddOp, AddOp, SubOp, MulOp, MulOp, AndOp, OrOp, XorOp, MinOp, MaxOp)
_ELEMENTS = 512
"""Tiles stay smaller."""


class IntegerPrograms:
    """Builds one random function."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.block = Block()
        self.pool: list[Value] = []
        self.hints: list[HintOp] = []

    def function(self, size: int = 14) -> Function:
        """A function of about `size` ops."""
        for number in range(4):
            self._argument(number)
        self._fill(size, depth=0)
        self._emit(ReturnOp())
        return Function("k", self.block)

    def _argument(self, number: int) -> None:
        type_ = self.random.choice((*_TYPES, *_POINTERS, *_POINTERS))
        arg = self.block.add_arg(type_, f"a{number}")
        if self.random.random() < 0.7:
            name = "aligned" if isinstance(type_, PointerType) else "multiple_of"
            arg.facts = {name: self.random.choice((2, 4, 8, 16, 16, 64, 24))}
        self.pool.append(arg)

    # --- choices ------------------------------------------------------------------------------

    def _emit(self, op: Op) -> Op:
        return Builder(self.block).emit(op)

    def _add(self, op: Op) -> None:
        self.pool += self._emit(op).results

    def _pick(self, test: Callable[[Value], bool]) -> Value | None:
        """A random value of the pool, rather a new one."""
        found = [v for v in self.pool if test(v)]
        if not found:
            return None
        return found[max(self.random.randrange(len(found)), self.random.randrange(len(found)))]

    def _integer(self) -> Value:
        """Rather a tile than a scalar."""
        wanted = self.random.random()
        found = self._pick(
            lambda v: wanted < 0.8 and _is_integer(v.type) and bool(shape_of(v.type))
        )
        found = found or self._pick(lambda v: _is_integer(v.type))
        return found if found is not None else self._number(self.random.choice(_TYPES))

    def _tile(self) -> Value:
        found = self._pick(lambda v: isinstance(v.type, TileType))
        return found if found is not None else self._range()

    def _like(self, type_: Type) -> Value:
        """A value of the given type: one that is there, a constant, or a scalar in all elements."""
        choice = self.random.random()
        found = self._pick(lambda v: v.type is type_)
        if found is not None and choice < 0.4:
            return found
        shape = shape_of(type_)
        scalar = self._pick(lambda v: v.type is element_of(type_))
        if shape and scalar is not None and choice < 0.6:
            return self._emit(SplatOp(scalar, shape=shape)).result
        if _is_integer(type_):
            return self._number(type_)
        if found is None and shape:
            return self._emit(SplatOp(self._like(element_of(type_)), shape=shape)).result
        return (
            found
            if found is not None
            else self._emit(ConstantOp(self.random.choice((0, 8, 16, 64, 100)), type_)).result
        )

    def _number(self, type_: Type, numbers: Sequence[int] = _NICE) -> Value:
        element = element_of(type_)
        assert isinstance(element, DType)
        allowed = [n for n in numbers if element.min_int <= n <= element.max_int]
        return self._emit(ConstantOp(self.random.choice(allowed), type_)).result

    # --- ops ----------------------------------------------------------------------------------

    def _fill(self, size: int, depth: int) -> None:
        makers = [
            self._range, *[self._run] * 3, *[self._binary] * 6, *[self._divide] * 3, self._shift,
            *[self._scalars] * 3, self._splat, self._compare, self._select, *[self._choose] * 3,
            self._cast, self._cast, self._unary, *[self._reshape] * 5,
            self._offset, self._offset, self._hint, self._id,
        ]  # fmt: skip
        if depth < 2:
            makers += [self._for, self._if, self._while]
        for _ in range(size):
            maker = self.random.choice(makers)
            if maker in (self._for, self._if, self._while):
                maker(depth)
            else:
                maker()

    def _range(self) -> Value:
        start = self.random.choice((0, 0, 0, 4, 8, 16, 1, -8, -3))
        op = self._emit(RangeOp(start=start, end=start + self.random.choice(_EXTENTS)))
        self.pool.append(op.result)
        return op.result

    def _run(self) -> Value:
        """Numbers that count up from a nice one, in any type."""
        op = self._emit(RangeOp(start=0, end=self.random.choice(_EXTENTS)))
        type_ = TileType(shape_of(op.type), self.random.choice(_TYPES))
        x = self._emit(CastOp(op.result, type_)).result
        self.pool.append(self._emit(AddOp(x, self._number(type_))).result)
        return self.pool[-1]

    def _choose(self) -> None:
        """One of two numbers or runs, on each side of a bound."""
        x = self._pick(lambda v: bool(shape_of(v.type)) and element_of(v.type) is not i1)
        x = x or self._run()
        y = self._number(x.type) if _is_integer(x.type) else self._like(x.type)
        left, right = self.random.sample((x, y), 2)
        test = CompareOp(left, right, predicate=self.random.choice(COMPARISONS))
        condition = self._emit(test).result
        type_ = TileType(shape_of(x.type), self.random.choice(_TYPES))
        like = self._pick(lambda v: v.type is type_) or self._number(type_)
        self.pool += [condition, self._emit(SelectOp(condition, like, self._like(type_))).result]

    def _id(self) -> None:
        self._add(ProgramIdOp(axis=0))

    def _binary(self) -> None:
        x = self._integer()
        x, y = self.random.sample((x, self._like(x.type)), 2)
        self._add(self.random.choice(_BINARY)(x, y))

    def _scalars(self) -> None:
        """An index of a kernel: a scalar from others."""
        x, y = (self._pick(lambda v: v.type is i32) or self._number(i32) for _ in range(2))
        y = y if self.random.random() < 0.7 else self._number(i32)
        self._add(self.random.choice((AddOp, SubOp, SubOp, MinOp, MaxOp, RemOp, DivOp))(x, y))

    def _divide(self) -> None:
        x = self._integer()
        one = self._number(x.type, (1, 2, 3, 4, 8, 16, -1, -3, -4))
        kind = self.random.random()
        divisor = one if kind < 0.6 else self._like(x.type)
        if kind > 0.8:
            divisor = self._emit(MulOp(divisor, self._number(x.type, (2, 4, 8)))).result
        self._add(self.random.choice((DivOp, RemOp))(x, divisor))

    def _shift(self) -> None:
        x = self._integer()
        self._add(self.random.choice((ShlOp, ShrOp))(x, self._number(x.type, range(6))))

    def _unary(self) -> None:
        self._add(self.random.choice((NegOp, AbsOp))(self._integer()))

    def _splat(self) -> None:
        scalar = self._pick(lambda v: not isinstance(v.type, TileType))
        assert scalar is not None
        self._add(SplatOp(scalar, shape=(self.random.choice(_EXTENTS),)))

    def _compare(self) -> None:
        pointers = self.random.random() < 0.3
        x = self._pick(lambda v: pointers and isinstance(element_of(v.type), PointerType))
        x = x or self._integer()
        x, y = self.random.sample((x, self._like(x.type)), 2)
        self._add(CompareOp(x, y, predicate=self.random.choice(COMPARISONS)))

    def _select(self) -> None:
        condition = self._pick(lambda v: element_of(v.type) is i1)
        if condition is None:
            return
        shape = shape_of(condition.type)
        x = self._pick(lambda v: shape_of(v.type) == shape) or condition
        self._add(SelectOp(condition, x, self._like(x.type)))

    def _cast(self) -> None:
        x = self._pick(lambda v: True)
        assert x is not None
        target = self._cast_target(element_of(x.type))
        shape = shape_of(x.type)
        pointers = isinstance(element_of(x.type), PointerType) and isinstance(target, PointerType)
        op = BitcastOp if pointers else CastOp
        self._add(op(x, TileType(shape, target) if shape else target))

    def _cast_target(self, source: DType | PointerType) -> DType | PointerType:
        if isinstance(source, PointerType):
            return self.random.choice((i64, *_POINTERS))
        if source is i64:
            return self.random.choice((*_TYPES, *_POINTERS))
        return self.random.choice((*_TYPES, i1, f32) if source is not f32 else (i32, i64))

    def _reshape(self) -> None:
        x = self._tile()
        shape = shape_of(x.type)
        axis = self.random.randrange(len(shape))
        match self.random.randrange(8):
            case 0 | 1 if len(shape) < 3:
                self._add(ExpandDimsOp(x, axis=self.random.randrange(len(shape) + 1)))
            case 2 | 3 if 1 in shape:
                self._broadcast(x)
            case 4:
                order = self.random.sample(range(len(shape)), len(shape))
                self._add(TransposeOp(x, order=tuple(order)))
            case 5:
                self._add(ReshapeOp(x, shape=self._other_shape(prod(shape))))
            case 6 if len(shape) < 3 and 2 * prod(shape) <= _ELEMENTS:
                self._add(JoinOp(x, self._like(x.type)))
            case 7 if 2 * prod(shape) <= _ELEMENTS:
                self._add(CatOp(x, self._like(x.type), axis=axis))
            case _ if len(shape) > 1 and shape[-1] == 2:
                self._add(SplitOp(x))
            case _ if prod(shape) == 1:
                self._add(ItemOp(x))
            case _:
                self._binary()

    def _broadcast(self, x: Value) -> None:
        sizes = [n if n > 1 else self.random.choice((4, 8, 6)) for n in shape_of(x.type)]
        if prod(sizes) <= _ELEMENTS:
            self._add(BroadcastOp(x, shape=tuple(sizes)))

    def _other_shape(self, numel: int) -> tuple[int, ...]:
        first = self.random.choice([n for n in range(1, numel + 1) if numel % n == 0])
        return self.random.choice(((first, numel // first), (numel,), (first, numel // first, 1)))

    def _offset(self) -> None:
        amount = self._integer()
        shape = shape_of(amount.type)
        pointer = self.random.choice(_POINTERS)
        self._add(OffsetOp(self._like(TileType(shape, pointer) if shape else pointer), amount))

    def _hint(self) -> None:
        x = self._pick(lambda v: element_of(v.type) not in (i1, f32))
        if x is not None:
            op = HintOp(x)
            self._add(op)
            self.hints.append(op)

    # --- control flow -------------------------------------------------------------------------

    @contextmanager
    def _inside(self, block: Block, args: Sequence[Value], depth: int) -> Iterator[None]:
        """Fill a block that sees what is there now and its own arguments."""
        outer, pool = self.block, list(self.pool)
        self.block = block
        self.pool += [*args, *args]
        self._fill(self.random.randrange(1, 5) if depth else 0, depth)
        yield
        self.block, self.pool = outer, pool

    def _carried(self) -> list[Value]:
        found = [self._pick(lambda v: True) for _ in range(self.random.randrange(1, 3))]
        return [v for v in found if v is not None]

    def _yielding(self, types: Sequence[Type]) -> list[Value]:
        return [self._like(type_) for type_ in types]

    def _for(self, depth: int) -> None:
        element = self.random.choice((i32, i64))
        lower, upper, step = (
            self._number(element, numbers) for numbers in ((0, 0, 4, -8), (4, 8, 16), (1, 2, 4, 16))
        )
        inits = self._carried()
        types = [v.type for v in inits]
        body = Block((element, *types))
        with self._inside(body, body.args, depth + 1):
            self._emit(YieldOp(tuple(self._yielding(types))))
        self._add(ForOp(lower, upper, step, tuple(inits), body))

    def _while(self, depth: int) -> None:
        """A counter and carried values; the values are passed on in another order."""
        count = self._number(i32, (0, 1, 3))
        inits = self._carried()
        types = [v.type for v in inits]
        before, body = Block((i32, *types)), Block((i32, *types))
        with self._inside(before, before.args[1:], 0):
            limit = self._number(i32, (4, 5))
            go = self._emit(CompareOp(before.args[0], limit, predicate="lt")).result
            if self.random.random() < 0.7:
                go = self._emit(AndOp(go, self._order_of_scalars(before.args[1:]))).result
            passed = self._yielding(types)
            self._emit(ConditionOp(go, (before.args[0], *passed)))
        with self._inside(body, body.args[1:], depth + 1):
            following = self._emit(AddOp(body.args[0], self._number(i32, (1, 2)))).result
            self._emit(YieldOp((following, *self._yielding(types))))
        self._add(WhileOp((count, *inits), before, body))

    def _order_of_scalars(self, rather: Sequence[Value] = ()) -> Value:
        """A comparison of two scalars, one of which is rather one of some values."""
        x, y = (self._pick(lambda v: v.type is i32) or self._number(i32) for _ in range(2))
        x = next((v for v in rather if v.type is i32), x)
        x, y = self.random.sample((x, y), 2)
        return self._emit(CompareOp(x, y, predicate=self.random.choice(COMPARISONS))).result

    def _if(self, depth: int) -> None:
        condition = self._pick(lambda v: v.type is i1)
        if condition is None or self.random.random() < 0.5:
            condition = self._order_of_scalars()
        types = [v.type for v in self._carried()]
        blocks = Block(), Block()
        for block in blocks:
            with self._inside(block, (), depth + 1):
                self._emit(YieldOp(tuple(self._yielding(types))))
        self._add(IfOp(condition, *blocks, result_types=tuple(types)))


def _is_integer(type_: Type) -> bool:
    element = element_of(type_)
    return isinstance(element, DType) and element.is_integer


def arguments(function: Function, random: Random) -> list[int]:
    """A number or address for each parameter that has what its facts say."""
    found: list[int] = []
    for arg in function.args:
        facts = arg.facts or {}
        multiple = next(iter(facts.values()), 1)
        if isinstance(arg.type, PointerType):
            found.append(multiple * random.randrange(1 << 30))
            continue
        assert isinstance(arg.type, DType)
        low, high = -(-arg.type.min_int // multiple), arg.type.max_int // multiple
        few = random.randrange(max(low, -20), min(high, 20) + 1)
        any_number = random.randrange(low, high + 1)
        found.append(multiple * (few if random.random() < 0.8 else any_number))
    return found
