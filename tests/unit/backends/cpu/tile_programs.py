"""Random tile programs whose results do not depend on rounding, so that they compare exactly.

Floats hold small integers: sums and products of them are exact in every order, as long as a bound
on their size, which is kept for every value, is below what the type counts to. Where a bound would
be passed, the value is clamped. What rounds (exp, division, ...) has an estimate of its error and
goes only to arrays that are never read.

A program instance works in a region of its own of every array, so that the order of instances does
not matter; within it loads and stores overlap at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf, prod

from tests.unit.backends.cpu.tile_program_parts import (
    ARRAY_BOUND,
    CARRIED_BOUND,
    COUNTS_TO,
    ELEMENTS,
    FLOATS,
    INTEGERS,
    REGION,
    Array,
    Known,
    ProgramBase,
    Scope,
    TileProgram,
)
from tilewright.ir import Block, Builder, Function, Op, Value
from tilewright.ir.types import (
    DType,
    PointerType,
    TileType,
    Type,
    bf16,
    dtype_of,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
    shape_of,
    u8,
    with_element,
)
from tilewright.ops import (
    ACCESS_ORDERS,
    ATOMIC_KINDS,
    ATOMIC_TYPES,
    COMPARISONS,
    MEMORY_ORDERS,
    AbsOp,
    AddOp,
    AndOp,
    AtomicOp,
    BitcastOp,
    BroadcastOp,
    CastOp,
    CatOp,
    CompareOp,
    ConditionOp,
    ConstantOp,
    DivOp,
    DotOp,
    ExpandDimsOp,
    FmaOp,
    ForOp,
    GatherOp,
    IfOp,
    ItemOp,
    JoinOp,
    LoadOp,
    MathOp,
    MaxOp,
    MinOp,
    MulHighOp,
    MulOp,
    NegOp,
    OffsetOp,
    OrOp,
    ProgramIdOp,
    RangeOp,
    ReduceOp,
    RemOp,
    ReshapeOp,
    ReturnOp,
    ScanOp,
    SelectOp,
    ShlOp,
    ShrOp,
    SplatOp,
    SplitOp,
    StoreOp,
    SubOp,
    TransposeOp,
    WhileOp,
    XorOp,
    YieldOp,
)


class TilePrograms(ProgramBase):
    """Builds one random program."""

    def program(self, size: int) -> TileProgram:
        """A program of about `size` steps."""
        self._parameters()
        grid = self.random.choice(((1,), (2,), (3,), (2, 2)))
        pid = self._emit(ProgramIdOp(axis=0)).result
        if len(grid) == 2:
            row = self._emit(ProgramIdOp(axis=1)).result
            two = self._emit(ConstantOp(grid[0], i32)).result
            pid = self._emit(AddOp(pid, self._emit(MulOp(row, two)).result)).result
        region = self._emit(ConstantOp(REGION, i32)).result
        self.start = self._emit(MulOp(pid, region)).result
        self._keep(Known(pid, 8))
        self._fill(size, 0)
        for _ in range(self.random.randrange(2, 6)):
            self._store(self._pick())
        self._emit(ReturnOp())
        return TileProgram(Function("k", self.scope.block), self.arrays, self.sizes, grid)

    def _fill(self, size: int, depth: int) -> None:
        steps: list[Callable[[], object]] = [
            *[lambda: self._load(None, None)] * 3, *[self._binary] * 4, self._unary, self._integer,
            self._integer, self._compare, self._select, self._cast, *[self._reduce] * 3, self._scan,
            self._arg_max, *[self._move] * 6, self._combine, self._combine, self._gather, self._dot,
            self._inexact, self._atomic, *[lambda: self._store(self._pick())] * 2,
        ]  # fmt: skip
        nested = [self._for, self._for, self._if, self._while]
        for _ in range(size):
            if depth < 2 and self.random.random() < 0.12:
                self.random.choice(nested)(depth)
            else:
                self.random.choice(steps)()

    def _shape(self) -> tuple[int, ...]:
        if self.random.random() < 0.6 and self.scope.pool:
            return self.random.choice(self.scope.pool).shape or (16,)
        rank = self.random.choice((1, 1, 2, 2, 3))
        extents = (1, 2, 4, 8, 16, 32, 3, 6, 64, 256)
        while True:
            shape = tuple(self.random.choice(extents) for _ in range(rank))
            if prod(shape) <= ELEMENTS:
                return shape

    def _binary(self) -> None:
        x = self._exact()
        y = self._of_type(x.value.type)
        kind = self.random.choice((AddOp, AddOp, SubOp, MulOp, MinOp, MaxOp))
        if x.element is i1:
            kind = self.random.choice((AndOp, OrOp, XorOp))
        if kind is MulOp:
            x, y = (self._room(v, lambda limit: limit**0.5 / 2) for v in (x, y))
            self._keep(self._result(MulOp(x.value, y.value), x.bound * y.bound))
            return
        x, y = self._room(x), self._room(y)
        self._keep(self._result(kind(x.value, y.value), x.bound + y.bound))

    def _unary(self) -> None:
        x = self._exact()
        if x.element is i1:
            return
        if x.element.is_float and self.random.random() < 0.5:
            a, b, c = (self._room(v, lambda limit: limit**0.5 / 2)
                       for v in (x, self._of_type(x.value.type), x))  # fmt: skip
            op = FmaOp(a.value, b.value, c.value)
            self._keep(self._result(op, a.bound * b.bound + c.bound))
            return
        bound = x.bound + 1 if x.element.is_float else inf
        self._keep(self._result(self.random.choice((NegOp, AbsOp))(x.value), bound))

    def _integer(self) -> None:
        """Division by what is odd, shifts by less than the width, bits, the high half."""
        x = self._pick(lambda k: k.element.is_integer and k.is_exact)
        if not x.element.is_integer:
            return
        y = self._of_type(x.value.type).value
        type_ = x.value.type
        kind = self.random.choice((DivOp, RemOp, ShlOp, ShrOp, AndOp, OrOp, XorOp, MulHighOp))
        if kind in (DivOp, RemOp):
            if self.random.random() < 0.5:
                y = self._constant(self.random.choice((1, 2, 7, 16)), type_)
            else:
                y = self._value(OrOp(y, self._constant(1, type_)))
        elif kind in (ShlOp, ShrOp):
            y = self._value(AndOp(y, self._constant(x.element.bits - 1, type_)))
        elif kind is MulHighOp and x.element.bits == 64:
            kind = XorOp
        self._keep(self._result(kind(x.value, y), inf))

    def _compare(self) -> None:
        x = self._exact()
        y = self._of_type(x.value.type)
        predicate = self.random.choice(COMPARISONS)
        self._keep(Known(self._value(CompareOp(x.value, y.value, predicate=predicate)), 1))

    def _select(self) -> None:
        x = self._pick()
        condition = self._of_type(with_element(x.value.type, i1))
        y = self._of_type(x.value.type)
        op = SelectOp(condition.value, x.value, y.value)
        self._keep(Known(self._value(op), max(x.bound, y.bound), max(x.error, y.error)))

    def _cast(self) -> None:
        self._keep(self._converted(self._exact(), self.random.choice((*FLOATS, *INTEGERS, i1))))

    def _inexact(self) -> None:
        """What rounds, of bounded f32."""
        x = self._pick(lambda k: k.element is f32)
        if x.element is not f32 or x.error > 1e-3:
            return
        x = self._bounded(x, 4)
        kind = self.random.choice(("exp", "sqrt", "sin", "tanh", "div"))
        type_ = x.value.type
        if kind == "sqrt":
            x = replace(x, value=self._value(MaxOp(x.value, self._constant(1, type_))))
        if kind == "div":
            y = self._of_type(type_)
            y = self._value(MaxOp(y.value, self._constant(2, type_)))
            self._keep(Known(self._value(DivOp(x.value, y)), 2, x.error + 1e-5))
            return
        error = x.error * (60 if kind == "exp" else 1) + 1e-4
        self._keep(Known(self._value(MathOp(x.value, function=kind)), 55, error))

    # --- folds --------------------------------------------------------------------------------

    def _axis(self, x: Known) -> int:
        return self.random.randrange(len(x.shape))

    def _fold_of(self, x: Known, count: int) -> tuple[Known, type[Op], float]:
        """What to fold, by which op, and the bound of the result."""
        if x.element is i1:
            return x, self.random.choice((AndOp, OrOp, XorOp)), 1
        kind = self.random.choice((AddOp, AddOp, MaxOp, MinOp))
        if not x.element.is_float:
            kind = self.random.choice((AddOp, MaxOp, MinOp, AndOp, OrOp, XorOp, MulOp))
            return x, kind, inf
        if kind is AddOp:
            x = self._room(x, lambda limit: limit // count / 2 or 1)
            if x.bound * count > COUNTS_TO[x.element]:
                kind = MaxOp
        return x, kind, x.bound * (count if kind is AddOp else 1)

    @staticmethod
    def _region(kind: type[Op], element: DType) -> Block:
        block = Block((element, element))
        builder = Builder(block)
        made = builder.value(kind(*block.args))  # pyright: ignore[reportCallIssue]
        builder.emit(YieldOp((made,)))
        return block

    def _reduce(self) -> None:
        x = self._exact()
        if x.element is f64 and x.error:
            return
        axis = self._axis(x)
        x, kind, bound = self._fold_of(x, x.shape[axis])
        op = ReduceOp((x.value,), self._region(kind, x.element), axis=axis)
        self._keep(self._result(op, bound))

    def _scan(self) -> None:
        x = self._exact()
        axis = self._axis(x)
        x, kind, bound = self._fold_of(x, x.shape[axis])
        region = self._region(kind, x.element)
        reverse = self.random.random() < 0.4
        self._keep(self._result(ScanOp((x.value,), region, axis=axis, reverse=reverse), bound))

    def _arg_max(self) -> None:
        """The largest element and where it is, the first of several."""
        x = self._exact()
        axis = self._axis(x)
        index = self._along(x.shape, axis)
        block = Block((x.element, i32, x.element, i32))
        a, i, b, j = block.args
        build = Builder(block).value
        greater = build(CompareOp(a, b, predicate="gt"))
        equal = build(CompareOp(a, b, predicate="eq"))
        first = build(CompareOp(i, j, predicate="lt"))
        left = build(OrOp(greater, build(AndOp(equal, first))))
        Builder(block).emit(YieldOp((build(SelectOp(left, a, b)), build(SelectOp(left, i, j)))))
        op = self._emit(ReduceOp((x.value, index), block, axis=axis))
        self._keep(Known(op.results[0], x.bound))
        self._keep(Known(op.results[1], x.shape[axis]))

    def _dot(self) -> None:
        m, n, k = (self.random.choice((1, 2, 4, 16, 8, 3)) for _ in range(3))
        outer = self.random.choice(((), (), (2,)))
        element = self.random.choice((f32, f32, f16, i8, f64, bf16))
        total = {i8: i32, f16: f32, bf16: f32}.get(element, element)
        a = self._bounded(self._of_type(TileType((*outer, m, k), element)), 8)
        b = self._bounded(self._of_type(TileType((*outer, k, n), element)), 8)
        acc = self._bounded(self._of_type(TileType((*outer, m, n), total)), 2.0**12)
        op = DotOp(a.value, b.value, acc.value)
        self._keep(self._result(op, a.bound * b.bound * k + acc.bound))

    # --- moving elements ----------------------------------------------------------------------

    def _move(self) -> None:
        x = self._pick(lambda k: k.shape != ())
        shape = x.shape
        choice = self.random.randrange(6)
        if choice < 3 and len(shape) > 1:
            order = self.random.sample(range(len(shape)), len(shape))
            self._keep(replace(x, value=self._value(TransposeOp(x.value, order=tuple(order)))))
        elif choice == 3 and len(shape) < 3:
            axis = self.random.randrange(len(shape) + 1)
            self._keep(replace(x, value=self._value(ExpandDimsOp(x.value, axis=axis))))
        elif 1 in shape:
            sizes = tuple(n if n > 1 else self.random.choice((2, 4, 8)) for n in shape)
            if prod(sizes) <= ELEMENTS:
                self._keep(replace(x, value=self._value(BroadcastOp(x.value, shape=sizes))))
        elif choice == 4:
            self._keep(replace(x, value=self._value(ReshapeOp(x.value, shape=self._other(shape)))))
        elif len(shape) > 1 and shape[-1] == 2:
            for part in self._emit(SplitOp(x.value)).results:
                self._keep(replace(x, value=part))
        elif prod(shape) == 1:
            self._keep(replace(x, value=self._value(ItemOp(x.value))))

    def _other(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        numel = prod(shape)
        first = self.random.choice([n for n in range(1, numel + 1) if numel % n == 0])
        return self.random.choice(((numel,), (first, numel // first), (numel // first, 1, first)))

    def _combine(self) -> None:
        x = self._exact()
        y = self._of_type(x.value.type)
        if 2 * prod(x.shape) > ELEMENTS:
            return
        bound = max(x.bound, y.bound)
        if len(x.shape) < 3 and self.random.random() < 0.5:
            self._keep(Known(self._value(JoinOp(x.value, y.value)), bound))
        else:
            self._keep(Known(self._value(CatOp(x.value, y.value, axis=self._axis(x))), bound))

    def _gather(self) -> None:
        x = self._exact()
        axis = self._axis(x)
        index = self._of_type(TileType(x.shape, i32)).value
        type_ = index.type
        positive = self._value(AndOp(index, self._constant(0xFFFF, type_)))
        inside = self._value(RemOp(positive, self._constant(x.shape[axis], type_)))
        self._keep(replace(x, value=self._value(GatherOp(x.value, inside, axis=axis))))

    # --- memory -------------------------------------------------------------------------------

    def _along(self, shape: tuple[int, ...], axis: int) -> Value:
        """result[..., i, ...] = i"""
        value = self._value(RangeOp(start=0, end=shape[axis]))
        for d in range(len(shape)):
            if d != axis:
                value = self._value(ExpandDimsOp(value, axis=d))
        return self._value(BroadcastOp(value, shape=shape))

    def _index(self, shape: tuple[int, ...], unique: bool) -> Value:
        """Offsets below the size of the tile; all different if `unique`."""
        numel, type_ = prod(shape), TileType(shape, i32)
        choice = self.random.randrange(8)
        if choice < 2:
            flat = self._value(RangeOp(start=0, end=numel))
            index = self._value(ReshapeOp(flat, shape=shape))
            if choice == 1 and numel % 2 == 0:
                return self._value(XorOp(index, self._constant(1, type_)))
            return index
        order = list(range(len(shape)))
        if choice < 4:
            self.random.shuffle(order)
        total: Value | None = None
        stride = 1
        for d in reversed(order):
            step = 0 if not unique and self.random.random() < 0.15 else stride
            part = self._along(shape, d)
            if step != 1:
                part = self._value(MulOp(part, self._constant(step, type_)))
            total = part if total is None else self._value(AddOp(total, part))
            stride *= shape[d]
        assert total is not None
        return total

    def _address(self, array: Array, shape: tuple[int, ...], unique: bool) -> tuple[Value, Value]:
        """Pointers into the region of this program, and their offsets in a window of it."""
        assert self.start is not None
        window = self.random.choice((0, 0, 0, 1, 16, 64, 100))
        start = self.start
        if window:
            start = self._value(AddOp(start, self._constant(window, i32)))
        if not shape:
            return self._value(OffsetOp(array.value, start)), start
        index = self._index(shape, unique)
        choice = self.random.random()
        if choice < 0.1:
            return self._byte_address(array, start, index), index
        if choice < 0.5:
            base = self._value(SplatOp(self._value(OffsetOp(array.value, start)), shape=shape))
            return self._value(OffsetOp(base, index)), index
        starts = self._value(SplatOp(start, shape=shape))
        offset = self._value(AddOp(starts, index))
        if self.random.random() < 0.3:
            offset = self._value(CastOp(offset, TileType(shape, i64)))
        base = self._value(SplatOp(array.value, shape=shape))
        return self._value(OffsetOp(base, offset)), index

    def _byte_address(self, array: Array, start: Value, index: Value) -> Value:
        """Through pointers to bytes, or with the index added as bytes to a tile of pointers."""
        shape, bytes_ = shape_of(index.type), PointerType(u8)
        size = self._constant(array.element.bytes, index.type)
        first = self._value(SplatOp(self._value(OffsetOp(array.value, start)), shape=shape))
        if self.random.random() < 0.5:
            first = self._value(OffsetOp(first, self._constant(1, index.type)))
            index = self._value(SubOp(index, self._constant(1, index.type)))
        byte = self._value(BitcastOp(first, TileType(shape, bytes_)))
        moved = self._value(OffsetOp(byte, self._value(MulOp(index, size))))
        return self._value(BitcastOp(moved, TileType(shape, PointerType(array.element))))

    def _mask(self, index: Value) -> Value | None:
        shape = shape_of(index.type)
        choice = self.random.random()
        if choice < 0.4:
            return None
        if not shape or choice < 0.6:
            return self._of_type(with_element(index.type, i1)).value
        bound = self._value(SplatOp(self.random.choice(self.size_values), shape=shape))
        if choice < 0.85:
            return self._value(CompareOp(index, bound, predicate="lt"))
        axis = self.random.randrange(len(shape))
        limit = self._constant(self.random.randrange(shape[axis] + 1), index.type)
        within = self._value(CompareOp(self._along(shape, axis), limit, predicate="lt"))
        below = self._value(CompareOp(index, bound, predicate="lt"))
        return self._value(AndOp(within, below))

    def _bound_of(self, element: DType) -> float:
        return ARRAY_BOUND if element.is_float else max(-element.min_int, element.max_int)

    def _load(self, shape: tuple[int, ...] | None, element: DType | None) -> Known:
        found = [a for a in self.arrays if not a.result_only and element in (None, a.element)]
        shape = self._shape() if shape is None else shape
        if not found:
            array = self.random.choice([a for a in self.arrays if not a.result_only])
            loaded = self._load(shape, array.element)
            assert element is not None
            return self._keep(self._converted(loaded, element))
        array = self.random.choice(found)
        pointer, index = self._address(array, shape, unique=False)
        mask = self._mask(index)
        type_ = with_element(pointer.type, array.element)
        if mask is None:
            op = LoadOp(pointer, volatile=self.random.random() < 0.05)
        else:
            op = LoadOp(pointer, mask, self._fill_value(type_))
        return self._keep(Known(self._value(op), self._bound_of(array.element)))

    def _fill_value(self, type_: Type) -> Value:
        """What masked-off elements get: mostly a constant."""
        if self.random.random() < 0.7:
            return self._constant(self.random.choice((0, 1)), type_)
        x = self._of_type(type_)
        return self._bounded(x, self._bound_of(x.element)).value

    def _store(self, x: Known) -> None:
        if x.is_exact:
            array = self.random.choice([a for a in self.arrays if not a.result_only])
            x = self._bounded(self._converted(x, array.element), self._bound_of(array.element))
        else:
            array = self.arrays[4]
            array.error = max(array.error, x.error)
        pointer, index = self._address(array, x.shape, unique=True)
        mask = self._mask(index)
        self._emit(StoreOp(pointer, x.value) if mask is None else StoreOp(pointer, x.value, mask))

    def _atomic(self) -> None:
        found = [a for a in self.arrays if a.element.is_integer and a.element.bits >= 32]
        if not found:
            return
        array = self.random.choice(found)
        shape = self._shape()
        pointer, index = self._address(array, shape, unique=True)
        value = self._of_type(with_element(pointer.type, array.element)).value
        kinds = [kind for kind in ATOMIC_KINDS if array.element in ATOMIC_TYPES[kind]]
        kind = self.random.choice(kinds)
        order = ACCESS_ORDERS.get(kind, MEMORY_ORDERS)[0]
        op = AtomicOp(pointer, value, kind=kind, order=order)
        mask = self._mask(index)
        if mask is not None:
            op = AtomicOp(pointer, value, mask, kind=kind, order=order)
        if mask is not None or kind == "store":
            self._emit(op)
            return
        self._keep(Known(self._value(op), self._bound_of(array.element)))

    # --- control flow -------------------------------------------------------------------------

    @contextmanager
    def _inside(self, block: Block, args: Sequence[Known]) -> Iterator[None]:
        outer = self.scope
        self.scope = Scope(block, [*outer.pool, *args, *args])
        yield
        self.scope = outer

    def _carried(self) -> list[Known]:
        """Values to carry; floats bounded."""
        found = [self._pick(lambda k: k.is_exact) for _ in range(self.random.randrange(1, 4))]
        return [self._bounded(k, self._carried_bound(k.element)) for k in found]

    def _carried_bound(self, element: DType) -> float:
        return CARRIED_BOUND if element.is_float else self._bound_of(element)

    def _as_known(self, values: Sequence[Value]) -> list[Known]:
        return [Known(v, self._carried_bound(dtype_of(v.type))) for v in values]

    def _yielded(self, types: Sequence[Type]) -> tuple[Value, ...]:
        found = [self._of_type(type_) for type_ in types]
        return tuple(self._bounded(k, self._carried_bound(k.element)).value for k in found)

    def _scalar(self, low: int, high: int) -> Value:
        """A number from a range, known only when the program runs or before."""
        scalars = [k for k in self.scope.pool if k.value.type is i32 and k.is_exact]
        if scalars and self.random.random() < 0.4:
            some = self.random.choice(scalars).value
            positive = self._value(AndOp(some, self._constant(0xFF, i32)))
            rest = self._value(RemOp(positive, self._constant(high - low + 1, i32)))
            return self._value(AddOp(rest, self._constant(low, i32)))
        return self._constant(self.random.randint(low, high), i32)

    def _for(self, depth: int) -> None:
        lower, upper = self._scalar(0, 2), self._scalar(1, 5)
        step = self._constant(self.random.choice((1, 1, 2)), i32)
        inits = self._carried()
        types = [k.value.type for k in inits]
        body = Block((i32, *types))
        index, *carried = body.args
        with self._inside(body, [Known(index, 8), *self._as_known(carried)]):
            self._fill(self.random.randrange(1, 6), depth + 1)
            self._emit(YieldOp(self._yielded(types)))
        op = self._emit(ForOp(lower, upper, step, tuple(k.value for k in inits), body))
        self.scope.pool += self._as_known(op.results)

    def _if(self, depth: int) -> None:
        condition = self._of_type(i1).value
        if self.random.random() < 0.5:
            left, right = self._scalar(0, 3), self._scalar(0, 3)
            condition = self._value(CompareOp(left, right, predicate="lt"))
        types = [k.value.type for k in self._carried()]
        blocks = Block(), Block()
        for block in blocks:
            with self._inside(block, ()):
                self._fill(self.random.randrange(0, 4), depth + 1)
                self._emit(YieldOp(self._yielded(types)))
        op = self._emit(IfOp(condition, *blocks, result_types=tuple(types)))
        self.scope.pool += self._as_known(op.results)

    def _while(self, depth: int) -> None:
        """A counter decides; what is carried may be passed on in another order."""
        limit, inits = self._scalar(0, 3), self._carried()
        types = [k.value.type for k in inits]
        before, body = Block((i32, *types)), Block((i32, *types))
        with self._inside(before, self._as_known(before.args[1:])):
            go = self._value(CompareOp(before.args[0], limit, predicate="lt"))
            passed = self._yielded(types) if self.random.random() < 0.3 else before.args[1:]
            self._emit(ConditionOp(go, (before.args[0], *passed)))
        with self._inside(body, self._as_known(body.args[1:])):
            self._fill(self.random.randrange(1, 4), depth + 1)
            following = self._value(AddOp(body.args[0], self._constant(1, i32)))
            self._emit(YieldOp((following, *self._yielded(types))))
        start = self._constant(0, i32)
        op = self._emit(WhileOp((start, *(k.value for k in inits)), before, body))
        self.scope.pool += self._as_known(op.results[1:])
