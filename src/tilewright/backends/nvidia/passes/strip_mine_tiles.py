"""Loops over the parts of tiles that do not fit into registers (`nvidia-strip-mine-tiles`).

    %i = tile.range : tile<65536xi32>               %s = cf.for 0, 65536, 4096, -0.0 (%j, %a) {
    %x = mem.load (%p + %i)                   ->      %i = %j + tile.range : tile<4096xi32>
    %r = tile.reduce %x                               %x = mem.load (%p + %i)
                                                      cf.yield %a + %x
                                                    }
                                                    %r = tile.reduce %s

A thread with hundreds of elements of each tile spills them, and code for each of them does not fit
into the instruction cache. Loads, element-wise ops, stores and reductions of one block become one
loop, if none of them depends on a reduction of the others, and accesses to memory overlap only in
the same element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tilewright.analysis import MemoryForms, Relation, apart, is_injective, is_same, roots
from tilewright.backends.nvidia.passes._decompose_tiles import resized
from tilewright.backends.nvidia.passes._pad_tiles import neutral_number
from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Trait, Value
from tilewright.ir.types import TileType, i32, shape_of, with_shape
from tilewright.ops import (
    ConstantOp,
    ForOp,
    LoadOp,
    RangeOp,
    ReduceOp,
    SplatOp,
    StoreOp,
    YieldOp,
)
from tilewright.support.data_class import dataclass

MOST_ELEMENTS = 128
"""The most elements of a tile for each thread that stay in registers."""

_PART = 32
"""Elements of a part for each thread: four loads of 16 bytes are in flight."""

_THREADS = 32


@dataclass(frozen=True)
class StripMineTiles(Pass, name="nvidia-strip-mine-tiles"):
    """Replace straight-line code for large tiles by loops over their parts.

    warps: of a program
    """

    warps: int = 4

    def run(self, function: Function) -> bool:
        threads = _THREADS * self.warps
        blocks = [function.body, *(block for op in function.walk() for block in op.regions)]
        forms = MemoryForms(function, ())
        found = [(block, _large_ops(block, MOST_ELEMENTS * threads)) for block in blocks]
        strips = [_Strip(block, ops) for block, ops in found if ops]
        legal = [strip for strip in strips if strip.is_legal(forms)]
        for strip in legal:
            strip.rewrite(_PART * threads)
        return bool(legal)


def _large_ops(block: Block, most: int) -> list[Op]:
    """The ops of a block on tiles of more than `most` elements."""
    return [op for op in block if any(prod(shape) > most for shape in _shapes(op))]


def _shapes(op: Op) -> Iterator[tuple[int, ...]]:
    values = (*op.operands, *op.results)
    return (shape_of(value.type) for value in values if isinstance(value.type, TileType))


class _Strip:
    """The ops on large tiles in one block."""

    def __init__(self, block: Block, ops: Sequence[Op]) -> None:
        self.block, self.ops = block, ops
        self.inside = set(ops)
        self.shape = next(_shapes(ops[0]))

    def is_legal(self, forms: MemoryForms) -> bool:
        """Whether one loop over parts computes the same."""
        return (
            len(self.shape) == 1
            and all(map(self._has_parts, self.ops))
            and any(isinstance(op, LoadOp | StoreOp | ReduceOp) for op in self.ops)
            and not any(op in self.inside for op in self._dependents())
            and all(op in self.inside or Trait.PURE in op.traits for op in self._span())
            and self._is_ordered(forms)
        )

    def _has_parts(self, op: Op) -> bool:
        """Whether an op may be computed in parts, from parts of its operands."""
        if any(shape != self.shape for shape in _shapes(op)):
            return False
        if isinstance(op, ReduceOp):
            known = neutral_number(op) is not None
        elif isinstance(op, LoadOp):
            known = not op.volatile and self._stays(op)
        else:
            known = (
                isinstance(op, StoreOp) or _is_cheap_op(op) and (self._stays(op) or _is_cheap(op))
            )
        return known and all(
            value.op in self.inside or not isinstance(value.type, TileType)
            or (value.op is not None and _is_cheap(value.op))
            for value in op.operands
        )  # fmt: skip

    def _stays(self, op: Op) -> bool:
        """Whether only ops of the strip use the results of an op."""
        return all(user in self.inside for result in op.results for user in result.uses)

    def _span(self) -> Iterator[Op]:
        """The ops of the block from the first to the last of the strip."""
        op: Op | None = self.ops[0]
        while op is not None:
            yield op
            op = op.next if op is not self.ops[-1] else None

    def _dependents(self) -> list[Op]:
        """The ops of the span that depend on reductions of the strip."""
        made = {value for op in self.ops if isinstance(op, ReduceOp) for value in op.results}
        found: list[Op] = []
        for op in self._span():
            if any(value in made for each in (op, *_inner(op)) for value in each.operands):
                found.append(op)
                made.update(op.results)
        return found

    def _is_ordered(self, forms: MemoryForms) -> bool:
        """Whether accesses that may alias, one of them a store, alias in the same element only."""
        accesses = [op for op in self.ops if isinstance(op, LoadOp | StoreOp)]
        stores = [op for op in accesses if isinstance(op, StoreOp)]
        return all(
            _meet_by_element(forms, one, store)
            for store in stores
            for one in accesses
            if one is not store and roots(one.pointer) & roots(store.pointer)
        )

    def rewrite(self, part: int) -> None:
        """Replace the ops by a loop over parts of so many elements."""
        last, dependents = self.ops[-1], self._dependents()
        builder = Builder.at(last)
        reductions = [op for op in self.ops if isinstance(op, ReduceOp)]
        inits = [_neutral_tile(builder, op, part) for op in reductions]
        body = Block((i32, *(value.type for value in inits)))
        self._fill(body, part)
        low, high, step = (builder.constant(n, i32) for n in (0, self.shape[0], part))
        loop = builder.emit(ForOp(low, high, step, tuple(inits), body))
        for op, partial in zip(reductions, loop.results, strict=True):
            reduced = builder.emit(ReduceOp((partial,), op.combine.clone({}), op.axis))
            Rewriter.replace_uses(op.results[0], reduced.results[0])
        for op in dependents:
            Rewriter.move_before(op, last)
        for op in reversed(self.ops):
            if not any(result.uses for result in op.results):
                Rewriter.erase(op)

    def _fill(self, body: Block, part: int) -> None:
        """Compute one part in the body of the loop."""
        builder = Builder(body, None, self.ops[0].loc)
        start = builder.splat(body.args[0], (part,))
        made: dict[Value, Value] = {}
        carried = iter(body.args[1:])
        yielded: list[Value] = []
        for op in self._in_order():
            builder.loc = op.loc
            operands = [made.get(value, value) for value in op.operands]
            if isinstance(op, ReduceOp):
                yielded.append(_combined(builder, op, next(carried), operands[0]))
            elif isinstance(op, RangeOp):
                first = builder.value(RangeOp(op.start, op.start + part))
                made[op.result] = builder.add(start, first)
            else:
                new = resized(builder, op, operands, (part,))
                made.update(zip(op.results, new.results, strict=True))
        builder.emit(YieldOp(tuple(yielded)))

    def _in_order(self) -> list[Op]:
        """The ops of the strip, after the cheap ones from outside that they depend on."""
        found: dict[Op, None] = {}
        for op in self.ops:
            _add_with_operands(op, self.inside, found)
        return list(found)


def _inner(op: Op) -> Iterator[Op]:
    return (inner for block in op.regions for inner in block.walk())


def _add_with_operands(op: Op, inside: set[Op], found: dict[Op, None]) -> None:
    for value in op.operands:
        maker = value.op
        if isinstance(value.type, TileType) and maker is not None and maker not in inside:
            _add_with_operands(maker, inside, found)
    found[op] = None


def _is_cheap_op(op: Op) -> bool:
    """Whether an op computes each element of its result from the same element of its operands."""
    return isinstance(op, RangeOp | SplatOp | ConstantOp) or Trait.ELEMENTWISE in op.traits


def _is_cheap(op: Op) -> bool:
    """Whether a tile may be computed again, from scalars."""
    return _is_cheap_op(op) and all(
        not isinstance(value.type, TileType) or (value.op is not None and _is_cheap(value.op))
        for value in op.operands
    )


def _meet_by_element(forms: MemoryForms, one: LoadOp | StoreOp, other: StoreOp) -> bool:
    first, second = forms.access(one), forms.access(other)
    relation = Relation.of(first, second, None)
    if apart(first, second, relation):
        return True
    return is_same(first, second, relation) and is_injective(first)


def _neutral_tile(builder: Builder, op: ReduceOp, part: int) -> Value:
    neutral = neutral_number(op)
    assert neutral is not None
    return builder.constant(neutral, with_shape(op.inputs[0].type, (part,)))


def _combined(builder: Builder, op: ReduceOp, partial: Value, x: Value) -> Value:
    """The only op of the combine region, for the elements of two tiles."""
    combine = op.combine.first
    assert combine is not None
    operands = dict(zip(op.combine.args, (partial, x), strict=True))
    return resized(
        builder, combine, [operands[value] for value in combine.operands], shape_of(x.type)
    ).results[0]
