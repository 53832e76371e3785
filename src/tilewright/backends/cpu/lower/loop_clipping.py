"""Ends a loop of a nest where a mask has become false for good.

A row of 781 numbers is worked on as a tile of 1024 whose mask is `i < 781`. Of the 32 steps of 32
lanes that the tile has, seven do nothing that could be seen:

    m = i < n
    x = load p, m, -inf        from the first i with m false on: -inf, whatever i is
    r = reduce max x           a step that takes in -inf again changes nothing
    store q, exp(x), m         nothing

A comparison of an index with a bound *ends* a nest along a dimension if, where it is false, stores
store nothing and what reductions and buffers take does not depend on the coordinate (it is
*settled*). A nest of stores does the steps that have a coordinate before the bound. Any other does
one more, and then as many as it takes until one leaves the bits of the accumulators as they were:
those that follow would too, since they take in the same. What buffers got in the last step then
fills them to the end. The results are those of all steps, bit by bit.

As elsewhere in this back end, index arithmetic on signed integers is taken not to wrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, cast

from tilewright.backends.cpu.lower.cpu_state import State
from tilewright.backends.cpu.lower.fusion import Group
from tilewright.backends.cpu.lower.lane_values import Lanes, literal
from tilewright.backends.cpu.lower.streaming_stores import direction
from tilewright.ir import Trait, Value
from tilewright.ir.types import DType, PointerType, element_of, shape_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import (
    AndOp,
    BroadcastOp,
    CompareOp,
    ConstantOp,
    ExpandDimsOp,
    HintOp,
    LoadOp,
    ReduceOp,
    SelectOp,
    SplatOp,
    StoreOp,
    TransposeOp,
)
from tilewright.support.graph_fold import fold

WORTH_CLIPPING = 4
"""Steps from which a loop is worth a test whether it can end."""

MOST_CANDIDATES = 16
"""Comparisons that are tried as the end of a loop; a nest with more of them is generated code."""

Axes = tuple[int | None, ...]
"""For each dimension of a value, the dimension of the nest that runs along it (None: extent 1)."""


class Seen(NamedTuple):
    """A value as a nest sees it."""

    value: Value
    axes: Axes

    def inner(self) -> Seen | None:
        """The operand that the value only moves, None if it does not."""
        op = self.value.op
        if not isinstance(op, (BroadcastOp, ExpandDimsOp, TransposeOp, HintOp)):
            return None
        operand, axes = op.operands[0], self.axes
        if isinstance(op, BroadcastOp):
            extents = shape_of(operand.type)
            axes = tuple(a if n > 1 else None for a, n in zip(axes, extents, strict=True))
        elif isinstance(op, ExpandDimsOp):
            axes = axes[: op.axis] + axes[op.axis + 1 :]
        elif isinstance(op, TransposeOp):
            axes = tuple(axes[op.order.index(k)] for k in range(len(op.order)))
        return Seen(operand, axes)

    def conjuncts(self) -> Sequence[Seen]:
        """The conditions that all hold where this one does, if it is made of others."""
        inner = self.inner()
        if inner is not None:
            return (inner,)
        op = self.value.op
        return [Seen(v, self.axes) for v in op.operands] if isinstance(op, AndOp) else ()


def live_count(state: State, group: Group, dim: int, coords: Mapping[int, Lanes]) -> Val | None:
    """How many elements along a dimension have an effect, as an i32; None if that is not known.

    coords: of the loops that are open; none of them is along the dimension
    """
    for found in ends(group, dim):
        if found.is_inside(dim, coords):
            count = found.count(state, dim, group.shape[dim], coords)
            if count is not None:
                return count
    return None


def ends(group: Group, dim: int) -> Iterator[Bound]:
    """What ends the nest of a group along a dimension; the first `MOST_CANDIDATES` are tried."""
    taken = list(group.materialized)
    masks: list[Value] = []
    for sink in group.sinks:
        if isinstance(sink, ReduceOp):
            taken += sink.inputs
        elif isinstance(sink, StoreOp) and sink.mask is not None:
            masks.append(sink.mask)
        else:
            return
    if not group.sinks or any(isinstance(element_of(v.type), PointerType) for v in taken):
        return
    everywhere: Axes = tuple(range(len(group.shape)))
    search = _Search(
        dim, [Seen(v, everywhere) for v in taken], [Seen(v, everywhere) for v in masks]
    )
    yield from (Bound(c) for c in islice(search.candidates(), MOST_CANDIDATES) if search.ends(c))


class Bound:
    """A comparison `low < high` (or <=) that ends a nest."""

    __slots__ = ("condition",)

    def __init__(self, condition: Seen) -> None:
        self.condition = condition

    @staticmethod
    def sides(op: CompareOp) -> tuple[Value, Value]:
        """What is to be smaller, and the other side."""
        return (op.lhs, op.rhs) if op.predicate in ("lt", "le") else (op.rhs, op.lhs)

    def is_inside(self, dim: int, coords: Mapping[int, Lanes]) -> bool:
        """Whether all lanes agree on it, and the loops of what it depends on are open."""
        return all(
            axis is None or axis == dim or (axis in coords and coords[axis].is_uniform)
            for axis in self.condition.axes
        )

    def count(self, state: State, dim: int, extent: int, coords: Mapping[int, Lanes]) -> Val | None:
        """min(high - low at 0, extent), at least 0, if low counts up by one and high is uniform."""
        op = cast("CompareOp", self.condition.value.op)
        ev = state.evaluator(2)
        place = {**coords, dim: Lanes(integer_literal(0), 1, 1 << 20)}
        at = tuple(literal(0) if axis is None else place[axis] for axis in self.condition.axes)
        low, high = (ev.lanes(v, at) for v in self.sides(op))
        if low.stride != 1 or not high.is_uniform:
            return None
        code, kind = state.code, low.base.type
        count = code.intrinsic("ssub.sat", kind, high.base, low.base)
        count = code.intrinsic("smin", kind, count, integer_literal(extent, kind))
        if op.predicate in ("le", "ge"):
            count = code.binary("add", count, integer_literal(1, kind))
            count = code.intrinsic("smin", kind, count, integer_literal(extent, kind))
        count = code.intrinsic("smax", kind, count, integer_literal(0, kind))
        return count if kind == "i32" else code.convert("trunc", count, "i32")


class _Search:
    """Looks for a condition that ends a nest along a dimension.

    taken: what reductions and buffers take; masks: of the stores
    """

    __slots__ = ("dim", "directions", "everywhere", "masks", "taken")

    def __init__(self, dim: int, taken: list[Seen], masks: list[Seen]) -> None:
        self.dim, self.taken, self.masks = dim, taken, masks
        self.directions: dict[Value, int | None] = {}
        self.everywhere = _Beyond(dim, None)

    def candidates(self) -> Iterator[Seen]:
        """Comparisons of an index along the dimension, in what the nest needs."""
        reached: set[Seen] = set()
        stack = [*self.taken, *self.masks]
        while stack:
            seen = stack.pop()
            if seen in reached or self.dim not in seen.axes:
                continue
            reached.add(seen)
            inner = seen.inner()
            op = seen.value.op
            if inner is not None:
                stack.append(inner)
            elif isinstance(op, CompareOp):
                if self._bounds(seen, op):
                    yield seen
            elif isinstance(op, LoadOp):
                stack += [Seen(v, seen.axes) for v in (op.mask, op.other) if v is not None]
            elif op is not None and Trait.ELEMENTWISE in op.traits:
                stack += [Seen(v, seen.axes) for v in op.operands]

    def _bounds(self, seen: Seen, op: CompareOp) -> bool:
        """Whether a comparison may hold for a number of indices and then for none.

        Unsigned numbers may wrap by rights.
        """
        low, high = Bound.sides(op)
        element = element_of(low.type)
        return (
            op.predicate in ("lt", "le", "gt", "ge")
            and isinstance(element, DType)
            and element.is_signed
            and element.bits >= 32
            and direction(low, self.directions) == 1
            and self.everywhere.settles(Seen(high, seen.axes))
        )

    def ends(self, condition: Seen) -> bool:
        """Whether nothing more is stored where the condition is false, and the rest is settled."""
        beyond = _Beyond(self.dim, condition)
        return all(map(beyond.is_off, self.masks)) and all(map(beyond.settles, self.taken))


class _Beyond:
    """What is known of values where a condition is false; without one, of values everywhere."""

    __slots__ = ("condition", "dim", "off", "settled")

    def __init__(self, dim: int, condition: Seen | None) -> None:
        self.dim, self.condition = dim, condition
        self.off: dict[Seen, bool] = {}
        self.settled: dict[Seen, bool] = {}

    def is_off(self, mask: Seen) -> bool:
        """Whether a mask is false."""

        def is_false(item: Seen, parts: list[bool]) -> bool:
            return any(parts) or item == self.condition

        return fold(mask, Seen.conjuncts, is_false, self.off)

    def settles(self, seen: Seen) -> bool:
        """Whether a value does not depend on the coordinate."""

        def needs(item: Seen) -> Sequence[Seen]:
            return self._needs(item) or ()

        def combine(item: Seen, parts: list[bool]) -> bool:
            return all(parts) if parts else self._needs(item) is not None

        return fold(seen, needs, combine, self.settled)

    def _needs(self, seen: Seen) -> Sequence[Seen] | None:
        """The values that have to be settled for this one to be; None if it cannot be."""
        value, axes = seen
        inner = seen.inner()
        op = value.op
        if self.dim not in axes:
            return ()
        if inner is not None:
            return (inner,)
        if isinstance(op, (SplatOp, ConstantOp)) or self.is_off(seen):
            return ()
        if isinstance(op, LoadOp):
            if op.volatile or op.mask is None or not self.is_off(Seen(op.mask, axes)):
                return None
            return () if op.other is None else (Seen(op.other, axes),)
        if isinstance(op, SelectOp) and self.is_off(Seen(op.condition, axes)):
            return (Seen(op.y, axes),)
        if op is None or not op.traits >= {Trait.ELEMENTWISE, Trait.PURE}:
            return None
        return [Seen(v, axes) for v in op.operands]
