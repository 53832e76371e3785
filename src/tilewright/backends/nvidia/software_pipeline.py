"""Overlaps the loads of a loop with its products: asynchronous copies several iterations ahead.

A loop is pipelined if it multiplies tiles that it loads, at addresses that follow from its index,
invariants and carried scalars alone. Each such load goes to a ring of slots in shared memory;
iteration i reads slot i mod S while the copies of iteration i + S - 1 are on their way:

    cf.for %k = %lo, %hi, %s (%p) {          put iterations 0 .. S-2 into slots 0 .. S-2
      %a = mem.load (address of %k, %p)      cf.for %k = %lo, %hi, %s (%p, %ring, %ahead ...) {
      %x = nvidia.convert %a           ->      nvidia.wait {pending = S - 2}
      %c = tile.dot %x, ...                    %a = mem.load (address of %ahead) if in range
      cf.yield %p + step                       %r = nvidia.put %ring, %a, %free
    }                                          nvidia.commit
                                               %x = nvidia.get %r, %slot
                                               %c = tile.dot %x, ...
                                             }
                                             nvidia.wait {pending = 0}

One barrier in `wait` does for both directions: it publishes the copies of this iteration and
shows that everybody is done with the slot that is filled next. The copies of iterations past the
end are masked off; an asynchronous copy fills masked elements with zeros, so only loads with
`other` of zero, or none, qualify.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.ops import CommitOp, ConvertOp, GetOp, PutOp, RingOp, WaitOp
from tilewright.backends.nvidia.vectors import vector_length
from tilewright.ir import Block, Builder, Function, Op, Rewriter, Trait, Value
from tilewright.ir.types import TileType, element_of, i1, i32
from tilewright.ops import (
    AddOp,
    AndOp,
    CompareOp,
    ConstantOp,
    DotOp,
    ForOp,
    LoadOp,
    SelectOp,
    SplatOp,
    TransposeOp,
)

MIN_COPY_BYTES = 4
"""An asynchronous copy moves 4, 8 or 16 bytes of a thread (PTX ISA, cp.async)."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A load that goes through shared memory, and the conversion that reads it."""

    load: LoadOp
    reader: ConvertOp
    vector: int

    @property
    def writer(self) -> TileType:
        """The tile as it is written: a transposition on the way renames its dims."""
        type_ = self.reader.x.type
        assert isinstance(type_, TileType)
        return type_


class LoopPipeline:
    """Pipelines one loop with a number of slots."""

    def __init__(self, loop: ForOp, staged: Sequence[Staged], slots: int, first: int) -> None:
        self.loop, self.staged, self.slots, self.first_ring = loop, staged, slots, first
        self.slice = address_slice(loop, [s.load for s in staged]) or set()
        args = loop.carried
        self.moving = [i for i, arg in enumerate(args) if self._moves(arg)]

    def _moves(self, arg: Value) -> bool:
        return any(user in self.slice for user in arg.uses)

    def run(self) -> None:
        before = Builder.at(self.loop)
        rings = [self._ring(before, n, s) for n, s in enumerate(self.staged)]
        index, carried = self.loop.lower, [self.loop.inits[i] for i in self.moving]
        for slot in range(self.slots - 1):
            place = before.value(ConstantOp(slot, i32))
            rings, index, carried = self._fill(before, rings, place, index, carried)
        self._rebuild(before, rings, index, carried)

    def _ring(self, builder: Builder, number: int, staged: Staged) -> Value:
        shape = (self.slots, *staged.writer.shape)
        type_ = TileType(shape, staged.writer.element)
        return builder.value(RingOp(type_, number=self.first_ring + number))

    def _fill(
        self,
        builder: Builder,
        rings: Sequence[Value],
        slot: Value,
        index: Value,
        carried: Sequence[Value],
    ) -> tuple[list[Value], Value, list[Value]]:
        """Copy the tiles of an iteration into a slot; returns rings, next index and values."""
        mapping: dict[Value, Value] = {self.loop.index: index}
        for i, value in zip(self.moving, carried, strict=True):
            mapping[self.loop.carried[i]] = value
        more = builder.value(CompareOp(index, self.loop.upper, predicate="lt"))
        following = list(rings)
        loads = {s.load: n for n, s in enumerate(self.staged)}
        for raw in self.loop.body:
            op = cast("Op", raw)
            if op in self.slice:
                copy = op.clone(mapping)
                builder.emit(copy)
                if op in loads:
                    n = loads[cast("LoadOp", op)]
                    load = self._guard(cast("LoadOp", copy), more)
                    staged = self.staged[n]
                    put = PutOp(
                        following[n],
                        load.result,
                        slot,
                        writer=staged.writer,
                        reader=staged.reader.type,
                        vector=staged.vector,
                    )
                    following[n] = builder.value(put)
        builder.emit(CommitOp())
        yielded = self.loop.body.terminator.operands
        moved = [mapping.get(yielded[i], yielded[i]) for i in self.moving]
        return following, builder.value(AddOp(index, self.loop.step)), moved

    @staticmethod
    def _guard(load: LoadOp, more: Value) -> LoadOp:
        """Copy only if the iteration takes place."""
        builder = Builder.at(load)
        pointer = load.pointer.type
        assert isinstance(pointer, TileType)
        mask_type = TileType(pointer.shape, i1, pointer.layout)
        spread = SplatOp(more, shape=pointer.shape)
        spread.results[0].type = mask_type
        mask = builder.value(spread)
        if load.mask is not None:
            mask = builder.value(AndOp(load.mask, mask))
            load.set_operand(1, mask)
            return load
        replacement = LoadOp(load.pointer, mask, None, **load.attrs)
        replacement.results[0].type = load.result.type
        builder.emit(replacement)
        Rewriter.replace(load, replacement.result)
        return replacement

    def _rebuild(
        self, before: Builder, rings: Sequence[Value], index: Value, carried: Sequence[Value]
    ) -> None:
        """The loop with rings, the slot to read, and what the iteration ahead needs."""
        old = self.loop
        zero = before.value(ConstantOp(0, i32))
        extra = [*rings, zero, index, *carried]
        body = Block()
        mapping: dict[Value, Value] = {}
        for arg in old.body.args:
            mapping[arg] = body.add_arg(arg.type, arg.name)
        added = [body.add_arg(value.type) for value in extra]
        new = ForOp(old.lower, old.upper, old.step, (*old.inits, *extra), body, **old.attrs)
        before.emit(new)
        builder = Builder(body, loc=old.loc)
        count = len(self.staged)
        builder.emit(WaitOp(pending=self.slots - 2))
        slot = added[count]
        free = self._next_slot(builder, slot, self.slots - 1)
        filled, index_next, carried_next = self._fill(
            builder, added[:count], free, added[count + 1], added[count + 2 :]
        )
        for n, staged in enumerate(self.staged):
            get = GetOp(
                filled[n],
                slot,
                result_type=staged.reader.type,
                writer=staged.writer,
                vector=staged.vector,
            )
            mapping[staged.reader.result] = builder.value(get)
        self._copy_body(builder, mapping)
        yielded = [mapping.get(v, v) for v in old.body.terminator.operands]
        slot_next = self._next_slot(builder, slot, 1)
        tail = [*filled, slot_next, index_next, *carried_next]
        end = type(old.body.terminator)((*yielded, *tail))  # type: ignore[call-arg]
        builder.emit(end)
        before.emit(WaitOp(pending=0))
        Rewriter.replace(old, new.results[: len(old.results)])

    def _next_slot(self, builder: Builder, slot: Value, step: int) -> Value:
        """(slot + step) mod slots."""
        moved = builder.value(AddOp(slot, builder.value(ConstantOp(step, i32))))
        limit = builder.value(ConstantOp(self.slots, i32))
        past = builder.value(CompareOp(moved, limit, predicate="ge"))
        wrapped = builder.value(AddOp(moved, builder.value(ConstantOp(-self.slots, i32))))
        return builder.value(SelectOp(past, wrapped, moved))

    def _copy_body(self, builder: Builder, mapping: dict[Value, Value]) -> None:
        """What is left of an iteration: everything but the staged loads and their conversions."""
        gone: set[Op] = set()
        for staged in self.staged:
            gone.update((staged.load, staged.reader))
        gone.update(op for s in self.staged for op in _between(s))
        for raw in self.loop.body:
            op = cast("Op", raw)
            if op in gone or op.next is None:
                continue
            builder.emit(op.clone(mapping))


def _between(staged: Staged) -> list[Op]:
    """Transpositions between a load and its conversion."""
    path: list[Op] = []
    op = staged.reader.x.op
    while op is not staged.load and op is not None:
        path.append(cast("Op", op))
        op = op.operands[0].op
    return path


def address_slice(loop: ForOp, loads: Sequence[LoadOp]) -> set[Op] | None:
    """The ops of the body that addresses, masks and the scalars behind them need; None if they need
    what only an iteration computes."""
    block = loop.body
    needed: set[Op] = set()
    stack: list[Value] = [v for load in loads for v in load.operands]
    needed.update(loads)
    seen: set[Value] = set()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        op = cast("Op | None", value.op)
        carried = op is None and value.owner is block and value is not loop.index
        if carried and isinstance(value.type, TileType):
            return None
        if carried:
            stack.append(block.terminator.operands[value.index - 1])
        if op is None or op.parent is not block:
            continue
        if Trait.PURE not in op.traits or op.regions or isinstance(op, DotOp):
            return None
        needed.add(op)
        stack += op.operands
    return needed


class Finder:
    """Finds the loads of a loop that can be staged."""

    def __init__(self, facts: dict[Value, Alignment]) -> None:
        self.facts = facts

    def staged(self, loop: ForOp) -> list[Staged]:
        found: list[Staged] = []
        for raw in loop.body:
            if isinstance(raw, LoadOp) and isinstance(raw.type, TileType):
                reader = self._reader(raw)
                vector = self._vector(raw)
                if reader is not None and vector:
                    found.append(Staged(raw, reader, vector))
        return found if address_slice(loop, [s.load for s in found]) else []

    @staticmethod
    def _reader(load: LoadOp) -> ConvertOp | None:
        """The only use, perhaps behind a transposition: a conversion that products use."""
        reader = _only_user(load)
        if isinstance(reader, TransposeOp):
            reader = _only_user(reader)
        if not isinstance(reader, ConvertOp):
            return None
        return reader if _feeds_products(reader) else None

    def _vector(self, load: LoadOp) -> int:
        """Elements of one copy; 0 if the load cannot be an asynchronous copy."""
        if load.volatile or load.cache not in ("", ".cg", ".ca"):
            return 0
        if load.other is not None and not _is_zero(load.other):
            return 0
        length = vector_length(self.facts, load.pointer, load.mask)
        return length if length * element_of(load.type).bytes >= MIN_COPY_BYTES else 0


def _feeds_products(op: Op) -> bool:
    """Whether all uses are products, behind whatever computes their operands."""
    users = cast("list[Op]", list(op.results[0].uses))
    return bool(users) and all(
        isinstance(user, DotOp | TransposeOp) or (_is_between(user) and _feeds_products(user))
        for user in users
    )


def _is_between(op: Op) -> bool:
    return isinstance(op, ConvertOp) or Trait.ELEMENTWISE in op.traits


def _only_user(op: Op) -> Op | None:
    users = list(op.results[0].uses)
    alone = len(users) == 1 and users[0].parent is op.parent
    return cast("Op", users[0]) if alone else None


def _is_zero(value: Value) -> bool:
    op = value.op
    if isinstance(op, SplatOp):
        op = op.x.op
    return isinstance(op, ConstantOp) and op.value == 0


def software_pipeline(function: Function, stages: int, shared_limit: int) -> None:
    """Pipeline every loop that has what it takes, with `stages` slots or as many as fit."""
    finder = Finder(analyze_alignment(function))
    loops = [op for op in function.walk() if isinstance(op, ForOp)]
    rings = 0
    for loop in loops:
        staged = finder.staged(loop)
        wanted = loop.stages if loop.stages is not None else stages
        if not staged or wanted < 2:
            continue
        size = sum(_bytes(s.writer) for s in staged)
        slots = min(wanted, (shared_limit - _scratch(loop, staged)) // size)
        if slots >= 2:
            LoopPipeline(loop, staged, slots, rings).run()
            rings += len(staged)


def _scratch(loop: ForOp, staged: Sequence[Staged]) -> int:
    """Bytes of shared memory that other conversions of the loop may take beside the rings."""
    readers = [s.reader for s in staged]
    others = (op for op in loop.body if isinstance(op, ConvertOp) and op not in readers)
    return max((_bytes(op.type) for op in others), default=0)


def _bytes(type_: object) -> int:
    assert isinstance(type_, TileType)
    return type_.numel * type_.element.bytes
