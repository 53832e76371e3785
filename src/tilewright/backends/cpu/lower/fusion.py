"""Decides which loop nests a block of tile ops becomes, and which tiles live in scratch memory.

A *sink* is an op whose tile must be walked: a store, a reduction, an assertion. Sinks of one
shape that do not need each other's results share a nest (a `Group`). Everything else is evaluated
inside the nest of its sink, unless evaluating it there would be wrong or wasteful; such a value
is *materialized*, in the first nest that computes it if it passes there element by element, else
in a nest of its own:

    x = load p                       group 1, shape 1024: x -> buffer, m = max x
    m = reduce max x                 group 2: num -> buffer, d = sum num
    num = exp (x - m)                group 3: store num / d
    d = reduce sum num
    store q, num / d

Materialized are: scattered loads needed in two nests, loads needed after a write or inside a
region; expensive values needed in two nests or inside a region; operands of ops that address
elements freely (dot, scan, gather).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice, pairwise, takewhile
from typing import cast

from tilewright.analysis import Alignment, roots
from tilewright.backends.cpu.ops import BlockTransposeOp
from tilewright.ir import Block, Effect, Function, Op, Trait, Value, effects_of
from tilewright.ir.types import DType, TileType, element_of, shape_of
from tilewright.ops import (
    BarrierOp,
    ConditionOp,
    DivOp,
    DotOp,
    ForOp,
    GatherOp,
    IfOp,
    ItemOp,
    LoadOp,
    MathOp,
    OffsetOp,
    ReduceOp,
    RemOp,
    ScanOp,
    StoreOp,
    WhileOp,
    YieldOp,
)

EXPENSIVE = 6
"""Float ops from which recomputing a value costs more than reading it back from cache."""

_WORTH_REPEATING = 8
"""Contiguous elements from which a load is repeated in the next nest instead of being kept."""

_MOST_OPS = 64
"""Ops from which a value is never worked out twice, not even of integers: so the code of a kernel
grows as its length, however its values depend on each other."""

_CHANGES = {Effect.WRITE, Effect.BARRIER}
_FUSED_SINKS = (StoreOp, ReduceOp)
_REGIONS = (ForOp, WhileOp, IfOp)
_WITH_IDENTITY = (*_REGIONS, DotOp, ScanOp, ReduceOp, ItemOp, BlockTransposeOp)


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Bring to the cache what a later nest stores to, or what the next program loads.

    pointer: the addresses, a tile of the shape of the nest that prefetches
    """

    pointer: Value
    for_store: bool


@dataclass(slots=True, eq=False)
class Group:
    """One loop nest over `shape`: sinks in order, and values it leaves in buffers.

    order: index of its first op; run: index of the op where it is executed
    stored: what its stores' addresses start from, and the store, no two of which share a start
    axis: the axis of its reductions; apart: values that are known not to need its results
    """

    shape: tuple[int, ...]
    order: int
    run: int
    sinks: list[Op] = field(default_factory=list[Op])
    materialized: list[Value] = field(default_factory=list[Value])
    fused: bool = True
    prefetches: list[Prefetch] = field(default_factory=list["Prefetch"])
    stored: dict[Value, StoreOp] = field(default_factory=dict[Value, StoreOp])
    axis: int | None = None
    apart: set[Value] = field(default_factory=set[Value])


@dataclass(frozen=True, slots=True)
class Demand:
    """A group that needs a value, and whether it reads it element by element at its own index."""

    group: Group
    identity: bool


@dataclass(slots=True)
class Plan:
    """What to do for one block, in order: single ops and groups."""

    steps: list[Op | Group] = field(default_factory=list["Op | Group"])
    materialized: set[Value] = field(default_factory=set[Value])


def is_tile(value: Value) -> bool:
    return isinstance(value.type, TileType)


def touches_tiles(op: Op) -> bool:
    """Whether an op reads or makes a tile, other than in its regions."""
    return any(map(is_tile, op.operands)) or any(map(is_tile, op.results))


def is_lazy(op: Op) -> bool:
    """Ops that are evaluated where they are used: pure functions of an index, and loads."""
    if not touches_tiles(op) or isinstance(
        op, (*_REGIONS, DotOp, ScanOp, ReduceOp, ItemOp, BlockTransposeOp)
    ):
        return False
    return Trait.PURE in op.traits or (isinstance(op, LoadOp) and not op.volatile)


class Planner:
    """Plans one block; see the head of this module."""

    def __init__(self, block: Block, facts: dict[Value, Alignment]) -> None:
        self.facts = facts
        self.ops: list[Op] = [op for op in block]
        self.order: dict[Op, int] = {op: i for i, op in enumerate(self.ops)}
        self.writes = [i for i, op in enumerate(self.ops) if effects_of(op) & _CHANGES]
        self.group_of: dict[Op, Group] = {}
        self.groups: list[Group] = []
        self.demands: dict[Value, dict[int, Demand]] = {}
        self.own: list[Group] = []
        self.roots: dict[Value, frozenset[Value]] = {}
        self.plan = Plan()

    def run(self) -> Plan:
        self._form_groups()
        for op in reversed(self.ops):
            if is_lazy(op):
                for value in op.results:
                    self._place(op, value)
            elif isinstance(op, (DotOp, ScanOp, BlockTransposeOp)):
                self.plan.materialized.update(op.results)
        self._arrange()
        self._add_prefetches()
        return self.plan

    # -- groups of sinks ------------------------------------------------------------------------

    def _form_groups(self) -> None:
        current: Group | None = None
        for op in self.ops:
            if is_lazy(op):
                if current and self._load_closes(op, current):
                    current = None
                continue
            if not self._needs_group(op):
                if current and self._must_close(op, current):
                    current = None
                continue
            fits = isinstance(op, _FUSED_SINKS)
            shape = self._space(op)
            if not (fits and current and current.shape == shape and self._joins(op, current)):
                current = Group(shape, self.order[op], self.order[op], fused=fits)
                self.groups.append(current)
            self._add_sink(current, op)
            if not fits:
                current = None

    def _add_sink(self, group: Group, op: Op) -> None:
        group.sinks.append(op)
        group.run = self.order[op]
        self.group_of[op] = group
        if isinstance(op, ReduceOp):
            group.axis = op.axis
        elif isinstance(op, StoreOp):
            group.stored.update(dict.fromkeys(self._roots(op.pointer), op))

    @staticmethod
    def _needs_group(op: Op) -> bool:
        if isinstance(op, (*_REGIONS, BarrierOp)):
            return True
        if isinstance(op, (YieldOp, ConditionOp)):
            return any(map(is_tile, op.operands))
        return touches_tiles(op)

    @staticmethod
    def _space(op: Op) -> tuple[int, ...]:
        return next((shape_of(v.type) for v in op.operands if is_tile(v)), ())

    def _must_close(self, op: Op, group: Group) -> bool:
        """Whether a scalar op has to wait for the group before it."""
        return bool(effects_of(op)) or any(self._makes(group, value) for value in op.operands)

    def _makes(self, group: Group, value: Value) -> bool:
        """Whether a value is the result of a sink of the group."""
        op = value.op
        return op is not None and self.group_of.get(op) is group

    def _load_closes(self, op: Op, group: Group) -> bool:
        """Whether a lazy op is a load that can only be done when the open group is done.

        Its address or mask needs results of the group; or the group stores: what is loaded must
        be what was there after these stores and before those that follow.
        """
        if not isinstance(op, LoadOp):
            return False
        return bool(group.stored) or self._reaches(op.operands, group)

    def _joins(self, op: Op, group: Group) -> bool:
        if self._reaches(op.operands, group):
            return False
        if isinstance(op, ReduceOp):
            return group.axis in (None, op.axis)
        return not isinstance(op, StoreOp) or group.stored.keys().isdisjoint(
            self._roots(op.pointer)
        )

    def _reaches(self, values: Iterable[Value], group: Group) -> bool:
        """Whether evaluating `values` needs a result of a sink of the group.

        What is defined before its first sink does not.
        """
        seen: set[Value] = set()
        stack = list(values)
        while stack:
            value = stack.pop()
            op = value.op
            if value in seen or op is None or self.order.get(op, -1) < group.order:
                continue
            if self._makes(group, value):
                return True
            seen.add(value)
            stack += [v for v in op.operands if v not in group.apart]
        group.apart |= seen
        return False

    # -- materialization ------------------------------------------------------------------------

    def _place(self, op: Op, value: Value) -> None:
        """Decide, users before definitions, whether a lazy value gets a buffer and where."""
        demands = self._demands(op, value)
        self.demands[value] = demands
        if not demands or not is_tile(value):
            return
        if self._stays_inline(op, value, demands):
            return
        self.plan.materialized.add(value)
        home = self._home(op, value, demands)
        home.materialized.insert(0, value)
        self.demands[value] = {id(home): Demand(home, True)}

    def _demands(self, op: Op, value: Value) -> dict[int, Demand]:
        demands: dict[int, Demand] = {}
        for using in value.uses:
            user = self._in_this_block(using)
            if user is None:
                continue
            if is_lazy(user) and user is using:
                same = Trait.ELEMENTWISE in user.traits or isinstance(user, LoadOp)
                found = [d for r in user.results for d in self.demands.get(r, {}).values()]
                for demand in found:
                    self._add(demands, demand.group, demand.identity and same)
            elif user in self.group_of:
                group = self.group_of[user]
                direct = user is using and group.fused and shape_of(value.type) == group.shape
                self._add(demands, group, direct)
        return demands

    @staticmethod
    def _add(demands: dict[int, Demand], group: Group, identity: bool) -> None:
        known = demands.get(id(group))
        demands[id(group)] = Demand(group, identity and (known is None or known.identity))

    def _in_this_block(self, op: Op) -> Op | None:
        """The op of this block that is or contains `op`."""
        current: Op | None = op
        while current is not None and current not in self.order:
            owner = current.parent.owner if current.parent is not None else None
            current = owner if isinstance(owner, Op) else None
        return current

    def _stays_inline(self, op: Op, value: Value, demands: dict[int, Demand]) -> bool:
        groups = [d.group for d in demands.values()]
        if _is_addressed_freely(value) or any(self._keeps(g, value) for g in groups):
            return False
        shared = len(groups) > 1 or not self._evaluates(groups[0], value)
        if isinstance(op, LoadOp):
            again = not shared or (self._is_cheap_to_repeat(op, groups))
            return again and not any(self._write_between(op, group) for group in groups)
        return not shared or cost(value) < EXPENSIVE or isinstance(op, OffsetOp)

    def _is_cheap_to_repeat(self, load: LoadOp, groups: list[Group]) -> bool:
        """Reading contiguous memory again costs what reading a buffer costs, less its writing."""
        contiguous = self.facts[load.pointer].contiguity[-1] >= _WORTH_REPEATING
        return contiguous and all(self._evaluates(group, load.result) for group in groups)

    @staticmethod
    def _evaluates(group: Group, value: Value) -> bool:
        """Whether the group walks the value in a nest of its own, element by element."""
        if group.fused:
            return True
        sink = group.sinks[0]
        return isinstance(sink, BlockTransposeOp) or (isinstance(sink, DotOp) and value is sink.acc)

    @staticmethod
    def _keeps(group: Group, value: Value) -> bool:
        """Whether the group's sink reads the value from a buffer."""
        sink = group.sinks[0] if group.sinks else None
        return isinstance(sink, (ScanOp, YieldOp, ConditionOp)) and value in sink.operands

    def _write_between(self, load: Op, group: Group) -> bool:
        """Whether something may write what `load` reads after it and before its group is done.

        A group without sinks is done right before the op at its `run`. Its own stores do no harm
        where they store to what is loaded, each element after it is read, or elsewhere.
        """
        begin, end = self.order[load] + 1, group.run + bool(group.sinks)
        writes = islice(self.writes, bisect_left(self.writes, begin), None)
        if any(not self._stores(group, self.ops[i]) for i in takewhile(end.__gt__, writes)):
            return True
        loaded = load.operands[0]
        stores = (group.stored.get(root) for root in self._roots(loaded))
        return any(
            s is not None and self.order[s] >= begin and s.pointer is not loaded for s in stores
        )

    def _stores(self, group: Group, op: Op) -> bool:
        """Whether an op is one of the group's own stores."""
        return isinstance(op, StoreOp) and self.group_of.get(op) is group

    def _roots(self, pointer: Value) -> frozenset[Value]:
        """What an address starts from."""
        return roots(pointer, self.roots)

    def _first_write(self, load: Op) -> int:
        """When the first group with a write after `load` runs."""
        at = bisect_left(self.writes, self.order[load] + 1)
        if at == len(self.writes):
            return len(self.ops)
        op = self.ops[self.writes[at]]
        return self.group_of[op].run if op in self.group_of else self.writes[at]

    def _home(self, op: Op, value: Value, demands: dict[int, Demand]) -> Group:
        """The nest that computes a materialized value: its first user's, or one of its own."""
        first = min(demands.values(), key=lambda d: d.group.run)
        group, is_load = first.group, isinstance(op, LoadOp)
        joins = first.identity and group.fused and group.shape == shape_of(value.type)
        if joins and not (is_load and self._write_between(op, group)):
            return group
        run = min(group.run, self._first_write(op)) if is_load else group.run
        home = Group(shape_of(value.type), self.order[op], run)
        self.own.append(home)
        return home

    # -- order ----------------------------------------------------------------------------------

    def _arrange(self) -> None:
        """A group runs where its last sink is; a nest of its own right before its first user."""
        shared = {g.run: g for g in self.groups}
        own = sorted(self.own, key=lambda g: (g.run, g.order), reverse=True)
        for i, op in enumerate(self.ops):
            while own and own[-1].run <= i:
                self.plan.steps.append(own.pop())
            if i in shared:
                self.plan.steps.append(shared[i])
            elif op not in self.group_of and not is_lazy(op):
                self.plan.steps.append(op)

    # -- prefetching ----------------------------------------------------------------------------

    def _add_prefetches(self) -> None:
        """Let nests that compute bring in what the memory-bound ones around them will need.

        A nest that repeats a load has its data in cache already; meanwhile the same tile of the
        next program instance can come (softmax 4096 x 4096: 5.7 ms without, 4.1 with). A nest
        before one that stores fetches the lines of the store (3.2 ms with both).
        """
        nests = [s for s in self.plan.steps if isinstance(s, Group) and walks_once(s)]
        for value, demands in self.demands.items():
            load = value.op
            if not isinstance(load, LoadOp) or not known_early(load.pointer):
                continue
            readers = sorted((d.group for d in demands.values()), key=lambda g: g.run)
            shape = shape_of(load.pointer.type)
            if not all(g.shape == shape and walks_once(g) for g in readers[1:2] + readers[-1:]):
                continue
            if len(readers) > 1 or any(not g.fused for g in readers):
                readers[min(1, len(readers) - 1)].prefetches.append(Prefetch(load.pointer, False))
        for before, nest in pairwise(nests):
            shape = before.shape if before.fused else shape_of(before.sinks[0].results[0].type)
            for store in (s for s in nest.sinks if isinstance(s, StoreOp) and shape == nest.shape):
                if known_early(store.pointer):
                    before.prefetches.append(Prefetch(store.pointer, for_store=True))


def walks_once(group: Group) -> bool:
    """Whether a group is one nest over its shape (a fused one, or a block transposition)."""
    return group.fused or isinstance(group.sinks[0], BlockTransposeOp)


def _is_addressed_freely(value: Value) -> bool:
    """Whether a product, perhaps in a region, or a gather reads the value from a buffer."""
    return any(
        (isinstance(user, GatherOp) and user.x is value)
        or (isinstance(user, DotOp) and value in (user.a, user.b))
        for user in value.uses
    )


def known_early(value: Value) -> bool:
    """Whether a value follows from arguments and program ids alone, in a few steps."""
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
        elif not _is_function(op) or len(seen) > _MOST_OPS:
            return False
        else:
            stack += op.operands
    return True


def _is_function(op: Op) -> bool:
    return Trait.PURE in op.traits and not op.regions and not isinstance(op, _WITH_IDENTITY)


_COSTS: dict[type[Op], int] = {DivOp: 4, RemOp: 8, MathOp: 8}


def cost(value: Value) -> int:
    """Float ops to recompute a value from memory, buffers, scalars; counts up to EXPENSIVE."""
    total = 0
    seen: set[Value] = set()
    stack = [value]
    while stack and total < EXPENSIVE:
        current = stack.pop()
        op = current.op
        if current in seen or op is None or not is_lazy(op):
            continue
        seen.add(current)
        element = element_of(current.type)
        if Trait.ELEMENTWISE in op.traits and isinstance(element, DType) and element.is_float:
            total += _COSTS.get(type(op), 1)
        if isinstance(op, LoadOp) or len(seen) > _MOST_OPS:
            total += EXPENSIVE
            continue
        stack += op.operands
    return total
