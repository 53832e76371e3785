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

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
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
    """

    shape: tuple[int, ...]
    order: int
    run: int
    sinks: list[Op] = field(default_factory=list[Op])
    materialized: list[Value] = field(default_factory=list[Value])
    fused: bool = True
    prefetches: list[Prefetch] = field(default_factory=list["Prefetch"])


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
        self.ops: list[Op] = [cast("Op", op) for op in block]
        self.order: dict[Op, int] = {op: i for i, op in enumerate(self.ops)}
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
            current.sinks.append(op)
            current.run = self.order[op]
            self.group_of[op] = current
            if not fits:
                current = None

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

    @staticmethod
    def _must_close(op: Op, group: Group) -> bool:
        """Whether a scalar op has to wait for the group before it."""
        produced = {r for sink in group.sinks for r in sink.results}
        return bool(effects_of(op)) or any(v in produced for v in op.operands)

    def _load_closes(self, op: Op, group: Group) -> bool:
        """Whether a lazy op is a load that can only be done when the open group is done.

        Its address or mask needs results of the group; or the group stores: what is loaded must
        be what was there after these stores and before those that follow.
        """
        if not isinstance(op, LoadOp):
            return False
        return self._stores(group) or self._reaches(op.operands, group)

    @staticmethod
    def _stores(group: Group) -> bool:
        return any(isinstance(sink, StoreOp) for sink in group.sinks)

    def _joins(self, op: Op, group: Group) -> bool:
        if self._reaches(op.operands, group):
            return False
        axes = {s.axis for s in (*group.sinks, op) if isinstance(s, ReduceOp)}
        if len(axes) > 1:
            return False
        stores = [s for s in group.sinks if isinstance(s, StoreOp)]
        return not isinstance(op, StoreOp) or not any(
            self._may_meet(op.pointer, store.pointer) for store in stores
        )

    def _reaches(self, values: Iterable[Value], group: Group) -> bool:
        """Whether evaluating `values` needs a result of a sink of the group."""
        seen: set[Value] = set()
        stack = list(values)
        while stack:
            value = stack.pop()
            op = cast("Op | None", value.op)
            if value in seen or op is None or op not in self.order:
                continue
            seen.add(value)
            if op in group.sinks:
                return True
            if self.order[op] >= group.order or is_lazy(op):
                stack += op.operands
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
        for raw in value.uses:
            user = self._in_this_block(cast("Op", raw))
            if user is None:
                continue
            if is_lazy(user) and user is raw:
                same = Trait.ELEMENTWISE in user.traits or isinstance(user, LoadOp)
                found = [d for r in user.results for d in self.demands.get(r, {}).values()]
                for demand in found:
                    self._add(demands, demand.group, demand.identity and same)
            elif user in self.group_of:
                group = self.group_of[user]
                direct = user is raw and group.fused and shape_of(value.type) == group.shape
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
        if any(self._addresses_freely(g, value) for g in groups):
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
    def _addresses_freely(group: Group, value: Value) -> bool:
        """Whether the group, or a product in a region of it, reads the value from a buffer."""
        sink = group.sinks[0] if group.sinks else None
        if isinstance(sink, (ScanOp, YieldOp, ConditionOp)):
            return value in sink.operands
        return any(
            (isinstance(user, GatherOp) and user.x is value)
            or (isinstance(user, DotOp) and value in (user.a, user.b))
            for user in value.uses
        )

    def _write_between(self, load: Op, group: Group) -> bool:
        """Whether something may write what `load` reads after it and before its group is done.

        A group without sinks is done right before the op at its `run`.
        """
        for op in self.ops[self.order[load] + 1 : group.run + bool(group.sinks)]:
            if not effects_of(op) & {Effect.WRITE, Effect.BARRIER}:
                continue
            if not isinstance(op, StoreOp) or self.group_of.get(op) is not group:
                return True
            loaded = load.operands[0]
            if op.pointer is not loaded and self._may_meet(op.pointer, loaded):
                return True
        return False

    def _may_meet(self, *pointers: Value) -> bool:
        """Whether two addresses start from one pointer."""
        for pointer in pointers:
            if pointer not in self.roots:
                self.roots[pointer] = roots(pointer)
        first, second = (self.roots[pointer] for pointer in pointers)
        return not first.isdisjoint(second)

    def _first_write(self, load: Op) -> int:
        """When the first group with a write after `load` runs."""
        for op in self.ops[self.order[load] + 1 :]:
            if effects_of(op) & {Effect.WRITE, Effect.BARRIER}:
                return self.group_of[op].run if op in self.group_of else self.order[op]
        return len(self.ops)

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


def known_early(value: Value) -> bool:
    """Whether a value follows from arguments and program ids alone."""
    seen: set[Value] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        op = cast("Op | None", current.op)
        if current in seen:
            continue
        seen.add(current)
        if op is None:
            if not isinstance(cast("Block", current.owner).owner, Function):
                return False
        elif Trait.PURE not in op.traits or op.regions or isinstance(op, _WITH_IDENTITY):
            return False
        else:
            stack += op.operands
    return True


_COSTS: dict[type[Op], int] = {DivOp: 4, RemOp: 8, MathOp: 8}


def cost(value: Value) -> int:
    """Float ops to recompute a value from memory, buffers, scalars; counts up to EXPENSIVE."""
    total = 0
    seen: set[Value] = set()
    stack = [value]
    while stack and total < EXPENSIVE:
        current = stack.pop()
        op = cast("Op | None", current.op)
        if current in seen or op is None or not is_lazy(op):
            continue
        seen.add(current)
        element = element_of(current.type)
        if Trait.ELEMENTWISE in op.traits and isinstance(element, DType) and element.is_float:
            total += _COSTS.get(type(op), 1)
        if isinstance(op, LoadOp):
            total += EXPENSIVE
            continue
        stack += op.operands
    return total
