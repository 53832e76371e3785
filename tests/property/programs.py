"""Random valid functions, for properties of text, copies and transformations."""

from hypothesis import strategies as st

from tilewright import ops
from tilewright.ir import Block, Builder, Function, Value
from tilewright.ir.types import (
    BufferType,
    PointerType,
    TileType,
    Type,
    element_of,
    f32,
    i1,
    i32,
    with_element,
)
from tilewright.support import SourceLoc

NAMES = st.sampled_from(["", "x", "y", "acc", "x_1", "0", "a.b", "größe"])
SHAPES = st.sampled_from([(), (8,), (4, 2)])
LOCS = st.none() | st.builds(
    SourceLoc,
    st.text(max_size=4),
    st.integers(1, 99),
    st.integers(-1, 80),
    st.just(-1),
    st.text(max_size=3),
    st.none() | st.builds(SourceLoc, st.just("caller.py"), st.integers(1, 9)),
)


def _tile(shape: tuple[int, ...], element: Type) -> Type:
    assert not isinstance(element, TileType | BufferType)
    return TileType(shape, element) if shape else element


class Writer:
    """Appends random valid ops. `count`: an i32 that is used as the bound of loops."""

    def __init__(self, draw: st.DrawFn, count: Value) -> None:
        self.draw = draw
        self.count = count

    def block(self, block: Block, visible: list[Value], depth: int) -> list[Value]:
        """Fill a block, but for its terminator; returns what is visible at its end."""
        visible = [*visible, *block.args]
        builder = Builder(block)
        for _ in range(self.draw(st.integers(0, 5))):
            builder.loc = self.draw(LOCS)
            kind = self.draw(st.sampled_from(["constant", "add", "compare", "for", "if", "print"]))
            if depth == 0 and kind in ("for", "if"):
                kind = "add"
            results = getattr(self, f"_{kind}")(builder, visible, depth)
            for value in results:
                value.name = self.draw(NAMES)
            visible += results
        return visible

    def _pick(self, visible: list[Value], type_: Type, builder: Builder) -> Value:
        fitting = [v for v in visible if v.type is type_]
        if not fitting:
            return builder.value(ops.ConstantOp(0, type_))
        return self.draw(st.sampled_from(fitting))

    def _constant(self, builder: Builder, visible: list[Value], depth: int) -> list[Value]:
        shape = self.draw(SHAPES)
        if self.draw(st.booleans()):
            number = self.draw(st.floats(width=32))
            return [builder.value(ops.ConstantOp(number, _tile(shape, f32)))]
        number = self.draw(st.integers(-(2**31), 2**31 - 1))
        return [builder.value(ops.ConstantOp(number, _tile(shape, i32)))]

    def _add(self, builder: Builder, visible: list[Value], depth: int) -> list[Value]:
        type_ = _tile(self.draw(SHAPES), self.draw(st.sampled_from([i32, f32])))
        cls = self.draw(st.sampled_from([ops.AddOp, ops.MulOp, ops.SubOp]))
        lhs, rhs = (self._pick(visible, type_, builder) for _ in range(2))
        return [builder.value(cls(lhs, rhs))]

    def _compare(self, builder: Builder, visible: list[Value], depth: int) -> list[Value]:
        type_ = _tile(self.draw(SHAPES), i32)
        pair = [self._pick(visible, type_, builder) for _ in range(2)]
        predicate = self.draw(st.sampled_from(ops.COMPARISONS))
        condition = builder.value(ops.CompareOp(pair[0], pair[1], predicate))
        chosen = builder.value(ops.SelectOp(condition, *pair))
        assert condition.type is with_element(type_, i1)
        return [condition, chosen]

    def _for(self, builder: Builder, visible: list[Value], depth: int) -> list[Value]:
        lower, upper, step = self._bounds(builder)
        types = [_tile(self.draw(SHAPES), f32) for _ in range(self.draw(st.integers(0, 2)))]
        inits = [self._pick(visible, t, builder) for t in types]
        body = Block((i32, *types), tuple(self.draw(NAMES) for _ in range(len(types) + 1)))
        inner = self.block(body, visible, depth - 1)
        ending = Builder(body)
        ending.emit(ops.YieldOp(tuple(self._pick(inner, t, ending) for t in types)))
        stages = self.draw(st.none() | st.integers(1, 4))
        loop = ops.ForOp(lower, upper, step, tuple(inits), body, stages=stages)
        return list(builder.emit(loop).results)

    def _bounds(self, builder: Builder) -> tuple[Value, Value, Value]:
        """Of a loop with few iterations, so that programs can be executed."""
        numbers = (self.draw(st.integers(0, 2)), self.draw(st.integers(0, 4)), 1)
        lower, upper, step = (builder.value(ops.ConstantOp(n, i32)) for n in numbers)
        return lower, self.count if self.draw(st.booleans()) else upper, step

    def _if(self, builder: Builder, visible: list[Value], depth: int) -> list[Value]:
        types = tuple(_tile(self.draw(SHAPES), i32) for _ in range(self.draw(st.integers(0, 2))))
        condition = self._pick(visible, i1, builder)
        blocks: list[Block] = []
        for _ in range(2):
            block = Block()
            inner = self.block(block, visible, depth - 1)
            ending = Builder(block)
            ending.emit(ops.YieldOp(tuple(self._pick(inner, t, ending) for t in types)))
            blocks.append(block)
        return list(builder.emit(ops.IfOp(condition, blocks[0], blocks[1], types)).results)

    def _print(self, builder: Builder, visible: list[Value], depth: int) -> list[Value]:
        numbers = printable(visible)
        args = self.draw(st.lists(st.sampled_from(numbers), max_size=3)) if numbers else []
        builder.emit(ops.PrintOp(tuple(args), self.draw(st.text(max_size=6))))
        return []


def printable(values: list[Value]) -> list[Value]:
    """The values that print the same in every run: pointers do not."""
    return [v for v in values if not isinstance(element_of(v.type), PointerType)]


@st.composite
def functions(draw: st.DrawFn) -> Function:
    """A random valid function of (ptr<f32>, i32, f32) that prints every value of its body."""
    body = Block((PointerType(f32), i32, f32), ("X", draw(NAMES), draw(NAMES)))
    body.args[0].facts = draw(st.none() | st.just({"aligned": 16}))
    visible = Writer(draw, body.args[1]).block(body, [], 2)
    ending = Builder(body)
    for value in printable(visible):
        ending.emit(ops.PrintOp((value,), ""))
    ending.emit(ops.ReturnOp())
    return Function(
        draw(st.sampled_from(["f", "a b", "f.g"])),
        body,
        draw(
            st.dictionaries(
                st.sampled_from(["num_warps", "tag"]), st.integers() | st.text(max_size=3)
            )
        ),
    )
