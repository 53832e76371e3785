"""Strength reduction: scalar induction variables for tiles that a loop moves uniformly.

A carried tile to which each iteration adds a uniform amount is computed from its initial value and
a carried scalar. A carried tile is kept element by element in registers or memory, and analyses
know nothing of it. A scalar costs one register, addresses stay affine, and the initial tile can be
computed where it is used. Before:

    %r = cf.for %0, %n, %c, %p (%i, %q: tile<64xptr<f32>>) {
      %x = mem.load %q
      %s = tile.splat %stride {shape = [64]}
      %q2 = mem.offset %q, %s
      cf.yield %q2
    }
After, with %stride cast to i64, in which offsets of pointers accumulate:

    %r = cf.for %0, %n, %c, %zero (%i, %q_iv: i64) {
      %t = tile.splat %q_iv {shape = [64]}
      %q = mem.offset %p, %t
      %x = mem.load %q
      %iv2 = arith.add %q_iv, %stride
      cf.yield %iv2
    }

Integer tiles keep their type, in which they wrap as before. Several updates in one iteration, with
uses in between, become several sums. An amount that is an invariant tile and not uniform is
multiplied by the number of iterations done so far. Inner loops come first, so that their
total is an amount of the loop around.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import (
    DType,
    PointerType,
    TileType,
    element_of,
    i64,
    shape_of,
)
from tilewright.ops import (
    AddOp,
    ConstantOp,
    ForOp,
    MulOp,
    OffsetOp,
    SplatOp,
    SubOp,
    WhileOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms.passes.dce import remove_dead
from tilewright.transforms.region_slots import (
    Loop,
    add_slot,
    passes_through,
    remove_slots,
    views,
    yield_more,
    yielded,
)


class StrengthReduce(Pass, name="strength-reduce"):
    """Carry scalar induction variables instead of tiles that move uniformly."""

    def run(self, function: Function) -> bool:
        loops = [op for op in function.walk() if isinstance(op, ForOp | WhileOp)]
        # Inner loops first: their total is an amount of the loop around.
        changed = any([_rewrite(loop) for loop in reversed(loops)])
        if changed:
            remove_dead(function)
        return changed


@dataclass(frozen=True, slots=True)
class _Update:
    """One op that moves a carried value by `amount`; uniform: by the same in each element."""

    op: Op
    amount: Value
    uniform: bool

    @property
    def minus(self) -> bool:
        return isinstance(self.op, SubOp)


def _rewrite(loop: Loop) -> bool:
    # All slots are examined before any changes. New ones are appended and old ones removed at the
    # end, so that these numbers stay valid until then.
    moving: list[tuple[int, list[_Update]]] = []
    for slot in range(len(loop.results)):
        updates = _updates(loop, slot)
        if updates:
            moving.append((slot, updates))
    work = _Rewriting(loop)
    for slot, updates in moving:
        work.move(slot, updates)
    if moving:
        remove_slots(loop, [slot for slot, _ in moving])
    return bool(moving)


def _updates(loop: Loop, slot: int) -> list[_Update] | None:
    """The updates from a carried value to the yielded one, in order; None if other ops take part.

    Either all amounts are uniform, or there is one update by an invariant tile.
    """
    arg = views(loop, slot)[-1]
    if not _is_movable(arg) or not passes_through(loop, slot):
        return None
    updates: list[_Update] = []
    value = yielded(loop, slot)
    while value is not arg:
        step = _update(value, loop)
        if step is None:
            return None
        value, update = step
        updates.append(update)
    if len(updates) > 1 and not all(update.uniform for update in updates):
        return None
    return updates[::-1]


def _is_movable(value: Value) -> bool:
    """Whether a value is a pointer or a tile of integers; scalar integers need no reduction."""
    element = element_of(value.type)
    if isinstance(element, PointerType):
        return True
    return element.is_integer and isinstance(value.type, TileType)


def _update(value: Value, loop: Loop) -> tuple[Value, _Update] | None:
    """The value before an update, and the update; None if another op defines `value`."""
    op = value.op
    if not isinstance(op, OffsetOp | AddOp | SubOp) or op.parent is not loop.body:
        return None
    ways = [tuple(op.operands)]
    if isinstance(op, AddOp):
        ways.append((op.rhs, op.lhs))
    # A uniform amount is preferred, whichever side it is on.
    for kind in (True, False):
        for moved, amount in ways:
            if _is_uniform(amount) if kind else amount.block is not loop.body:
                return moved, _Update(op, amount, kind)
    return None


def _is_uniform(amount: Value) -> bool:
    return not isinstance(amount.type, TileType) or isinstance(amount.op, SplatOp | ConstantOp)


@dataclass(frozen=True, slots=True)
class _Counter:
    """The number of iterations done: in each block, after this iteration, after the loop."""

    views: list[Value]
    following: Value
    result: Value


class _Rewriting:
    """The ops made for one loop."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.before = Builder.at(loop)
        self.counters: dict[DType, _Counter] = {}

    def move(self, slot: int, updates: list[_Update]) -> None:
        """Replace the uses of one carried value, and of the results of its updates."""
        update = updates[0]
        if update.uniform:
            self._by_variable(slot, updates)
        else:
            self._by_count(slot, update)

    def _by_variable(self, slot: int, updates: list[_Update]) -> None:
        loop, init = self.loop, self.loop.inits[slot]
        dtype = _variable_type(init)
        # Starts at 0, not at the initial value, which stays a tile before the loop.
        zero = self.before.constant(0, dtype)
        name = views(loop, slot)[-1].name
        variables = add_slot(loop, zero, f"{name}_iv" if name else "iv")
        self._replace_views(slot, [_Moved(init, variable) for variable in variables])
        variable = variables[-1]
        for update in updates:
            builder = Builder.at(update.op)
            amount = self._scalar(update, dtype)
            variable = builder.value((SubOp if update.minus else AddOp)(variable, amount))
            self._replace_update(update, _Moved(init, variable))
        yield_more(loop, variable)
        self._replace_result(slot, _Moved(init, loop.results[-1]))

    def _by_count(self, slot: int, update: _Update) -> None:
        """As `_by_variable` where the amount is an invariant tile: iterations done times it."""
        init = self.loop.inits[slot]
        dtype = _variable_type(init)
        counter = self._counter(dtype)
        amount = update.amount
        if element_of(amount.type) is not dtype:
            amount = self.before.cast(amount, dtype)
        self._replace_views(
            slot, [_Moved(init, count, amount, update.minus) for count in counter.views]
        )
        self._replace_update(update, _Moved(init, counter.following, amount, update.minus))
        self._replace_result(slot, _Moved(init, counter.result, amount, update.minus))

    def _counter(self, dtype: DType) -> _Counter:
        """The counter of a type, created at its first use."""
        counter = self.counters.get(dtype)
        if counter is None:
            loop = self.loop
            counts = add_slot(loop, self.before.constant(0, dtype), "count")
            one = self.before.constant(1, dtype)
            start = Builder(loop.body, loop.body.first, loop.loc)
            following = start.add(counts[-1], one)
            yield_more(loop, following)
            counter = self.counters[dtype] = _Counter(counts, following, loop.results[-1])
        return counter

    def _scalar(self, update: _Update, dtype: DType) -> Value:
        """The amount of a uniform update as a number of the induction variable's type."""
        op = update.amount.op
        if isinstance(op, ConstantOp):
            return self.before.constant(dtype.wrap(int(op.value)), dtype)
        scalar = op.x if isinstance(op, SplatOp) else update.amount
        if element_of(scalar.type) is dtype:
            return scalar
        # an invariant amount is converted once, before the loop
        inside = scalar.block is self.loop.body
        builder = Builder.at(update.op) if inside else self.before
        return builder.cast(scalar, dtype)

    def _replace_views(self, slot: int, moved: list[_Moved]) -> None:
        for view, place, block in zip(
            views(self.loop, slot), moved, self.loop.regions, strict=True
        ):
            self._replace(view, place, Builder(block, block.first, self.loop.loc))

    def _replace_update(self, update: _Update, moved: _Moved) -> None:
        self._replace(update.op.result, moved, Builder.at(update.op))

    def _replace_result(self, slot: int, moved: _Moved) -> None:
        self._replace(self.loop.results[slot], moved, Builder.after(self.loop))

    def _replace(self, old: Value, moved: _Moved, builder: Builder) -> None:
        if not old.uses:
            return
        ops = [builder.emit(op) for op in moved.ops()]
        Rewriter.replace_uses(old, ops[-1].result)


@dataclass(frozen=True, slots=True)
class _Moved:
    """A carried value as its initial one plus an induction variable or iterations * amount."""

    init: Value
    variable: Value
    amount: Value | None = None
    minus: bool = False

    def ops(self) -> Iterator[Op]:
        """The ops that compute it, in order."""
        variable, shape = self.variable, shape_of(self.init.type)
        if shape:
            yield (op := SplatOp(variable, shape))
            variable = op.result
        if self.amount is not None:
            yield (product := MulOp(self.amount, variable))
            variable = product.result
        if not isinstance(element_of(self.init.type), PointerType):
            yield (SubOp if self.minus else AddOp)(self.init, variable)
        else:
            yield OffsetOp(self.init, variable)


def _variable_type(init: Value) -> DType:
    """Offsets of pointers add up in 64 bits, integers in their own type."""
    element = element_of(init.type)
    return i64 if isinstance(element, PointerType) else element
