"""Loop fusion: which loop nests a block of tile ops becomes, and which tiles are in scratch memory.

A *sink* is an op that needs a loop over its tile: a store, a reduction, an assertion. Sinks of one
shape that do not depend on each other's results share a `LoopNest`. All other ops are evaluated
inside the nest of their sink, unless that would be wrong or slow; such a value is *materialized*,
in the first nest that computes it if that reads it element by element, else in a nest of its own:

    x = load p                       nest 1, shape 1024: x -> buffer, m = max x
    m = reduce max x                 nest 2: num -> buffer, d = sum num
    num = exp (x - m)                nest 3: store num / d
    d = reduce sum num
    store q, num / d

These are materialized: scattered loads of two nests, loads used after a write or inside a region;
expensive values of two nests or used inside a region; operands of ops that address elements freely
(dot, scan, gather).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import islice, pairwise, takewhile
from math import prod
from typing import cast

from tilewright.analysis import Alignment, MemoryForms, roots
from tilewright.backends.cpu.lower.memory_order import reads_columns
from tilewright.backends.cpu.ops import BlockTransposeOp
from tilewright.ir import Block, Effect, Function, Op, Trait, Value, effects_of
from tilewright.ir.types import DType, TileType, element_of, shape_of
from tilewright.ops import (
    AssertOp,
    BarrierOp,
    ConditionOp,
    DivOp,
    DotOp,
    ForOp,
    GatherOp,
    HistogramOp,
    IfOp,
    ItemOp,
    LoadOp,
    MapOp,
    MathOp,
    OffsetOp,
    ReduceOp,
    RemOp,
    ScanOp,
    StoreOp,
    WhileOp,
    YieldOp,
)
from tilewright.support import cached_property
from tilewright.support.data_class import dataclass

EXPENSIVE = 6
"""Float ops from which recomputing a value costs more than reading it back from the cache."""

_LOAD_AGAIN = 3
"""Cost of another contiguous load in these ops: a function of two ops of one load is recomputed
sooner than it is written and read, of two loads it is not. The figures of these constants are in
ADR 0033."""

_KEPT_IN_L1 = 1 << 12
"""Bytes of a buffer that an L1 of 32 KB holds together with the tile, the stored tile and the next
one. A larger buffer takes longer than converting narrow elements again."""

_MOST_STORES = 8
"""Stores of one nest whose addresses start from one pointer: each is compared with all of these."""

_MOST_TOGETHER = 8
"""Values of a nest without sinks: each step has all of them in registers."""

_WORTH_REPEATING = 8
"""Contiguous or equal elements from which a load is repeated in the next nest, not materialized."""

_MAX_OPS = 64
"""Ops from which a value is never recomputed, not even of integers: so the code of a kernel is
linear in its length, whatever the dependences of its values."""

# A barrier counts as a write: other programs may have written what is loaded after it.
_CHANGES = {Effect.WRITE, Effect.BARRIER}
_FUSED_SINKS = (StoreOp, ReduceOp)
_CONTROL_FLOW = (ForOp, WhileOp, IfOp)
_TERMINATORS = (YieldOp, ConditionOp)
_WHOLE_TILES = (DotOp, ScanOp, HistogramOp, MapOp, BlockTransposeOp)
_NEVER_INLINED = (*_CONTROL_FLOW, *_WHOLE_TILES, ReduceOp, ItemOp)


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A prefetch of the lines that a later nest stores to, or that the next program loads.

    pointer: the addresses, a tile of the shape of the nest that prefetches
    """

    pointer: Value
    for_store: bool


@dataclass(slots=True, eq=False)
class LoopNest:
    """One loop nest over `shape`: sinks in order, and values that it writes to buffers.

    first_index: of its first op in the block; run_index: of the op where it is executed
    stores_by_root: its stores by the roots of their addresses; two with a common root store
        different elements
    fused: False for a single op that a handler of its own lowers (`@lowering`)
    axis: the axis of its reductions
    independent: values known not to depend on its results
    fetched: the nest before it prefetches lines that it stores to
    first_reads: the pointers of loads at its own index that no other nest reads
    """

    shape: tuple[int, ...]
    first_index: int
    run_index: int
    sinks: list[Op] = field(default_factory=list[Op])
    materialized: list[Value] = field(default_factory=list[Value])
    fused: bool = True
    prefetches: list[Prefetch] = field(default_factory=list["Prefetch"])
    stores_by_root: dict[Value, list[StoreOp]] = field(
        default_factory=lambda: defaultdict[Value, list[StoreOp]](list)
    )
    axis: int | None = None
    independent: set[Value] = field(default_factory=set[Value])
    fetched: bool = False
    first_reads: list[Value] = field(default_factory=list[Value])


@dataclass(frozen=True, slots=True)
class NestUse:
    """A nest that uses a value, and whether it reads it element by element at its own index."""

    nest: LoopNest
    elementwise: bool


@dataclass(slots=True)
class FusionPlan:
    """The lowering order of one block: single ops, and loop nests.

    materialized: the values that get a buffer in scratch memory
    """

    steps: list[Op | LoopNest] = field(default_factory=list["Op | LoopNest"])
    materialized: set[Value] = field(default_factory=set[Value])


def is_tile(value: Value) -> bool:
    return isinstance(value.type, TileType)


def touches_tiles(op: Op) -> bool:
    """Whether an op reads or makes a tile, except in its regions."""
    return any(map(is_tile, op.operands)) or any(map(is_tile, op.results))


def is_inlinable(op: Op) -> bool:
    """Whether an op may be evaluated where it is used: a pure function of an index, or a load."""
    if not touches_tiles(op) or isinstance(op, _NEVER_INLINED):
        return False
    return Trait.PURE in op.traits or (isinstance(op, LoadOp) and not op.volatile)


class FusionPlanner:
    """Plans the loop nests of one block; see the head of this module."""

    def __init__(self, block: Block, alignments: dict[Value, Alignment]) -> None:
        self.alignments = alignments
        self.ops, self.arguments = list(block), block.args
        self.index_of: dict[Op, int] = {op: i for i, op in enumerate(self.ops)}
        self.writes = [i for i, op in enumerate(self.ops) if effects_of(op) & _CHANGES]
        self.nest_of: dict[Op, LoopNest] = {}
        self.nests: list[LoopNest] = []
        self.nest_uses: dict[Value, dict[int, NestUse]] = {}
        self.own_nests: list[LoopNest] = []
        self.passed_on: dict[tuple[int, tuple[int, ...]], LoopNest] = {}
        self.roots: dict[Value, frozenset[Value]] = {}
        self.plan = FusionPlan()

    @cached_property
    def forms(self) -> MemoryForms:
        """Affine forms of the accesses, for two that start from one pointer."""
        return MemoryForms.around(self.ops[0])

    def run(self) -> FusionPlan:
        self._form_nests()
        for op in reversed(self.ops):  # users decide for their operands
            if is_inlinable(op):
                for value in op.results:
                    self._decide_materialization(op, value)
            elif isinstance(op, _WHOLE_TILES):
                self.plan.materialized.update(op.results)
        self._order_steps()
        self._add_prefetches()
        return self.plan

    # -- nests of sinks -------------------------------------------------------------------------

    def _form_nests(self) -> None:
        current: LoopNest | None = None
        for op in self.ops:
            if is_inlinable(op):
                if current and self._load_ends_nest(op, current):
                    current = None
                continue
            if not self._is_sink(op):
                if current and self._scalar_ends_nest(op, current):
                    current = None
                continue
            fits = isinstance(op, _FUSED_SINKS)
            shape = self._iteration_shape(op)
            if not (fits and current and current.shape == shape and self._may_join(op, current)):
                current = LoopNest(shape, self.index_of[op], self.index_of[op], fused=fits)
                self.nests.append(current)
            self._add_sink(current, op)
            if not fits:
                current = None

    def _add_sink(self, nest: LoopNest, op: Op) -> None:
        nest.sinks.append(op)
        nest.run_index = self.index_of[op]
        self.nest_of[op] = nest
        if isinstance(op, ReduceOp):
            nest.axis = op.axis
        elif isinstance(op, StoreOp):
            for root in self._roots(op.pointer):
                nest.stores_by_root[root].append(op)

    @staticmethod
    def _is_sink(op: Op) -> bool:
        if isinstance(op, (*_CONTROL_FLOW, BarrierOp)):
            return True
        if isinstance(op, _TERMINATORS):
            return any(map(is_tile, op.operands))
        return touches_tiles(op)

    @staticmethod
    def _iteration_shape(op: Op) -> tuple[int, ...]:
        return next((shape_of(v.type) for v in op.operands if is_tile(v)), ())

    def _scalar_ends_nest(self, op: Op, nest: LoopNest) -> bool:
        """Whether a scalar op has to wait for the nest before it."""
        return bool(effects_of(op)) or any(self._produces(nest, value) for value in op.operands)

    def _produces(self, nest: LoopNest, value: Value) -> bool:
        """Whether a value is the result of a sink of the nest."""
        op = value.op
        return op is not None and self.nest_of.get(op) is nest

    def _load_ends_nest(self, op: Op, nest: LoopNest) -> bool:
        """Whether an inlinable op is a load that must wait until the open nest has run.

        Its address or mask depends on results of the nest; or the nest stores: the load must see
        these stores and not the later ones.
        """
        if not isinstance(op, LoadOp):
            return False
        return bool(nest.stores_by_root) or self._depends_on(op.operands, nest)

    def _may_join(self, op: Op, nest: LoopNest) -> bool:
        if self._depends_on(op.operands, nest):
            return False
        if isinstance(op, ReduceOp):
            # One innermost loop runs along the reduced axis.
            return nest.axis in (None, op.axis)
        if not isinstance(op, StoreOp):
            return True
        near = list(self._stores_near(nest, op.pointer))
        # Stores that may overlap keep their order only in nests of their own.
        return len(near) < _MOST_STORES and all(self.forms.are_apart(store, op) for store in near)

    def _stores_near(self, nest: LoopNest, pointer: Value) -> Iterator[StoreOp]:
        """The stores of a nest whose addresses have a root in common with a pointer."""
        for root in self._roots(pointer):
            yield from nest.stores_by_root.get(root, ())

    def _depends_on(self, values: Iterable[Value], nest: LoopNest) -> bool:
        """Whether the evaluation of `values` depends on a result of a sink of the nest.

        Values defined before its first sink do not.
        """
        seen: set[Value] = set()
        stack = list(values)
        while stack:
            value = stack.pop()
            op = value.op
            if value in seen or op is None or self.index_of.get(op, -1) < nest.first_index:
                continue
            if self._produces(nest, value):
                return True
            seen.add(value)
            stack += [v for v in op.operands if v not in nest.independent]
        # Stays true as sinks join: their results are defined after these values.
        nest.independent |= seen
        return False

    # -- materialization ------------------------------------------------------------------------

    def _decide_materialization(self, op: Op, value: Value) -> None:
        """Decide, users before definitions, whether an inlinable value gets a buffer and where."""
        nest_uses = self.uses_by_nest(value)
        self.nest_uses[value] = nest_uses
        if not nest_uses or not is_tile(value):
            return
        if self._stays_inline(op, value, nest_uses):
            return
        self.plan.materialized.add(value)
        nest = self._materializing_nest(op, value, nest_uses)
        # First: users are decided before definitions, so those listed already may read this one.
        nest.materialized.insert(0, value)
        # Its operands are used where it is computed, no longer where it is used.
        self.nest_uses[value] = {id(nest): NestUse(nest, True)}

    def uses_by_nest(self, value: Value) -> dict[int, NestUse]:
        """The nests that use a value, once those of its users are known."""
        nest_uses: dict[int, NestUse] = {}
        for using in value.uses:
            user = self._in_this_block(using)
            if user is None:
                continue
            # Where `user` is not `using`, a use in a region of the user: at no index of a nest.
            if is_inlinable(user) and user is using:
                # An inlined user is evaluated where its own users are: in their nests.
                same = Trait.ELEMENTWISE in user.traits or isinstance(user, LoadOp)
                uses = [use for r in user.results for use in self.nest_uses.get(r, {}).values()]
                for use in uses:
                    self._record_use(nest_uses, use.nest, use.elementwise and same)
            elif user in self.nest_of:
                nest = self.nest_of[user]
                direct = user is using and nest.fused and shape_of(value.type) == nest.shape
                self._record_use(nest_uses, nest, direct)
        return nest_uses

    @staticmethod
    def _record_use(nest_uses: dict[int, NestUse], nest: LoopNest, elementwise: bool) -> None:
        earlier = nest_uses.get(id(nest))
        nest_uses[id(nest)] = NestUse(
            nest, elementwise and (earlier is None or earlier.elementwise)
        )

    def _in_this_block(self, op: Op) -> Op | None:
        """The op of this block that is or contains `op`."""
        current: Op | None = op
        while current is not None and current not in self.index_of:
            owner = current.parent.owner if current.parent is not None else None
            current = owner if isinstance(owner, Op) else None
        return current

    def _stays_inline(self, op: Op, value: Value, nest_uses: dict[int, NestUse]) -> bool:
        nests = [use.nest for use in nest_uses.values()]
        if _is_addressed_freely(value) or any(
            self._reads_from_buffer(nest, value) for nest in nests
        ):
            return False
        shared = len(nests) > 1 or not self._walks(nests[0], value)
        if isinstance(op, LoadOp):
            again = not shared or (self._is_cheap_to_repeat(op, nests))
            return again and not any(self._write_between(op, nest) for nest in nests)
        # Addresses stay affine where they are inlined; from a buffer each would become a gather.
        return not shared or self._cost_again(value, nests) < EXPENSIVE or isinstance(op, OffsetOp)

    def _cost_again(self, value: Value, nests: list[LoopNest]) -> int:
        """Cost of computing a value in each of these nests; in a loop its loads would be
        repeated."""
        if not all(self._walks(nest, value) for nest in nests):
            return recompute_cost(value)
        narrow = EXPENSIVE if _bytes(value) <= _KEPT_IN_L1 else _LOAD_AGAIN
        return recompute_cost(value, _LOAD_AGAIN, narrow)

    def _is_cheap_to_repeat(self, load: LoadOp, nests: list[LoopNest]) -> bool:
        """Whether reading contiguous elements, or one number for many elements, again costs no more
        than reading a buffer."""
        facts = self.alignments[load.pointer]
        longest = max(facts.contiguity[-1], facts.constancy[-1])
        return longest >= _WORTH_REPEATING and all(self._walks(nest, load.result) for nest in nests)

    @staticmethod
    def _walks(nest: LoopNest, value: Value) -> bool:
        """Whether lowering the nest loops over the elements of the value."""
        if nest.fused:
            return True
        sink = nest.sinks[0]
        walked = isinstance(sink, (AssertOp, BlockTransposeOp))
        return walked or (isinstance(sink, DotOp) and value is sink.acc)

    @staticmethod
    def _reads_from_buffer(nest: LoopNest, value: Value) -> bool:
        """Whether the nest's sink reads the value from a buffer."""
        sink = nest.sinks[0] if nest.sinks else None
        return isinstance(sink, (ScanOp, *_TERMINATORS)) and value in sink.operands

    def _write_between(self, load: LoadOp, nest: LoopNest) -> bool:
        """Whether something may write the memory of `load` after it and before its nest has run.

        A nest without sinks runs right before the op at its `run_index`. Its own stores are
        harmless if they store to the loaded elements, each after it is read, or elsewhere.
        """
        begin, end = self.index_of[load] + 1, nest.run_index + bool(nest.sinks)
        writes = islice(self.writes, bisect_left(self.writes, begin), None)
        if any(not self._is_own_store(nest, self.ops[i]) for i in takewhile(end.__gt__, writes)):
            return True
        return any(
            self.index_of[store] >= begin
            and store.pointer is not load.pointer
            and not self.forms.are_apart(load, store)
            for store in self._stores_near(nest, load.pointer)
        )

    def _is_own_store(self, nest: LoopNest, op: Op) -> bool:
        """Whether an op is one of the nest's own stores."""
        return isinstance(op, StoreOp) and self.nest_of.get(op) is nest

    def _roots(self, pointer: Value) -> frozenset[Value]:
        """The pointers from which an address may be computed, see `analysis.roots`."""
        return roots(pointer, self.roots)

    def _first_write(self, load: Op) -> int:
        """The index at which the first nest with a write after `load` runs."""
        at = bisect_left(self.writes, self.index_of[load] + 1)
        if at == len(self.writes):
            return len(self.ops)
        op = self.ops[self.writes[at]]
        return self.nest_of[op].run_index if op in self.nest_of else self.writes[at]

    def _materializing_nest(self, op: Op, value: Value, nest_uses: dict[int, NestUse]) -> LoopNest:
        """The nest that computes a materialized value: its first user's, or one of its own."""
        first = min(nest_uses.values(), key=lambda d: d.nest.run_index)
        nest = first.nest
        joins = first.elementwise and nest.fused and nest.shape == shape_of(value.type)
        if joins and not (isinstance(op, LoadOp) and self._write_between(op, nest)):
            return nest
        # A load runs before the next write, even if its first user comes later.
        is_load = isinstance(op, LoadOp)
        run = min(nest.run_index, self._first_write(op)) if is_load else nest.run_index
        if isinstance(next(iter(nest.sinks), None), _TERMINATORS):
            passed_on = self._nest_of_passed_on(value, run, nest_uses)
            if passed_on is not None:
                return passed_on
        own = LoopNest(shape_of(value.type), self.index_of[op], run)
        self.own_nests.append(own)
        self.passed_on[run, own.shape] = own
        return own

    def _nest_of_passed_on(
        self, value: Value, run: int, nest_uses: dict[int, NestUse]
    ) -> LoopNest | None:
        """The nest of another value that the same region yields, so that all of them are computed
        together (mean, squares and count of a Welford reduction).

        None if another nest uses the value before, or this one at other indices.
        """
        nest = self.passed_on.get((run, shape_of(value.type)))
        if nest is None:
            return None
        others = [u for u in nest_uses.values() if not u.nest.sinks and u.nest.run_index == run]
        fits = (
            len(nest.materialized) < _MOST_TOGETHER
            and all(use.nest is nest and use.elementwise for use in others)
            and self._in_columns(value) == self._in_columns(nest.materialized[0])
        )
        return nest if fits else None

    def _in_columns(self, value: Value) -> bool:
        """Whether a value is computed from loads whose columns are contiguous in memory."""
        matrix = len(shape_of(value.type)) == 2
        return matrix and reads_columns(value, self.alignments, self.arguments)

    # -- order ----------------------------------------------------------------------------------

    def _order_steps(self) -> None:
        """A nest runs at its last sink; a nest of its own right before its first user."""
        fused = {g.run_index: g for g in self.nests}
        # At one index in the order of definition: a later nest may read a buffer of an earlier one.
        own = sorted(self.own_nests, key=lambda nest: (nest.run_index, nest.first_index))
        own.reverse()
        for i, op in enumerate(self.ops):
            while own and own[-1].run_index <= i:
                self.plan.steps.append(own.pop())
            if i in fused:
                self.plan.steps.append(fused[i])
            elif op not in self.nest_of and not is_inlinable(op):
                self.plan.steps.append(op)

    # -- prefetching ----------------------------------------------------------------------------

    def _add_prefetches(self) -> None:
        """Let nests that compute prefetch for the memory-bound nests around them.

        A nest that repeats a load has its data in the cache, so it prefetches the same tile of the
        next program instance. A nest before one that stores prefetches the lines of the store. The
        figures are in ADR 0033.
        """
        nests = [s for s in self.plan.steps if isinstance(s, LoopNest) and walks_once(s)]
        for value, nest_uses in self.nest_uses.items():
            load = value.op
            if not isinstance(load, LoadOp):
                continue
            readers = sorted((d.nest for d in nest_uses.values()), key=lambda g: g.run_index)
            if len(readers) == 1 and nest_uses[id(readers[0])].elementwise:
                readers[0].first_reads.append(load.pointer)
            # The next program's addresses can be computed only from its ids and the arguments.
            if not is_known_at_entry(load.pointer):
                continue
            shape = shape_of(load.pointer.type)
            if not all(g.shape == shape and walks_once(g) for g in readers[1:2] + readers[-1:]):
                continue
            if len(readers) > 1 or any(not g.fused for g in readers):
                # The second reader prefetches: the first one still waits for memory itself.
                readers[min(1, len(readers) - 1)].prefetches.append(Prefetch(load.pointer, False))
        for before, nest in pairwise(nests):
            shape = before.shape if before.fused else shape_of(before.sinks[0].results[0].type)
            for store in (s for s in nest.sinks if isinstance(s, StoreOp) and shape == nest.shape):
                if is_known_at_entry(store.pointer):
                    before.prefetches.append(Prefetch(store.pointer, for_store=True))
                    nest.fetched = True


def walks_once(nest: LoopNest) -> bool:
    """Whether a nest is one pass over its shape (a fused one, or a block transposition)."""
    return nest.fused or isinstance(nest.sinks[0], BlockTransposeOp)


def _is_addressed_freely(value: Value) -> bool:
    """Whether a dot, perhaps in a region, or a gather reads the value from a buffer."""
    return any(
        (isinstance(user, GatherOp) and user.x is value)
        or (isinstance(user, DotOp) and value in (user.a, user.b))
        for user in value.uses
    )


def is_known_at_entry(value: Value) -> bool:
    """Whether a value depends only on arguments and program ids, through a few ops."""
    seen: set[Value] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        op = current.op
        if current in seen:
            continue
        seen.add(current)
        if op is None:
            if not isinstance(cast("Block", current.owner).owner, Function):
                return False
        elif not _is_function(op) or len(seen) > _MAX_OPS:
            return False
        else:
            stack += op.operands
    return True


def _width(value: Value) -> int:
    """Bits of an element."""
    element = element_of(value.type)
    return 8 * element.bytes


def _bytes(value: Value) -> int:
    return prod(shape_of(value.type)) * _width(value) // 8


def _is_function(op: Op) -> bool:
    return Trait.PURE in op.traits and not op.regions and not isinstance(op, _NEVER_INLINED)


OP_COSTS: dict[type[Op], int] = {DivOp: 4, RemOp: 8, MathOp: 8}
"""Rough costs in additions; any other float op counts as one."""


def recompute_cost(value: Value, load: int = EXPENSIVE, narrow_load: int | None = None) -> int:
    """Float ops to recompute a value from memory, buffers, scalars; counts up to EXPENSIVE.

    load: the cost of a load under the value; narrow_load: of one with elements narrower than it
    """
    narrow_load = load if narrow_load is None else narrow_load
    total = 0
    seen: set[Value] = set()
    stack = [value]
    while stack and total < EXPENSIVE:
        current = stack.pop()
        op = current.op
        if current in seen or op is None or not is_inlinable(op):
            continue
        seen.add(current)
        element = element_of(current.type)
        if Trait.ELEMENTWISE in op.traits and isinstance(element, DType) and element.is_float:
            total += OP_COSTS.get(type(op), 1)
        if isinstance(op, LoadOp):
            total += narrow_load if _width(current) < _width(value) else load
            continue
        if len(seen) > _MAX_OPS:
            return EXPENSIVE
        stack += op.operands
    return total
