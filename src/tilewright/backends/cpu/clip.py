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

from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from tilewright.backends.cpu.lanes import Lanes, literal
from tilewright.backends.cpu.plan import Group
from tilewright.backends.cpu.state import State
from tilewright.backends.cpu.streaming import direction
from tilewright.ir import Op, Trait, Value
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

WORTH_CLIPPING = 4
"""Steps from which a loop is worth a test whether it can end."""

Axes = tuple[int | None, ...]
"""For each dimension of a value, the dimension of the nest that runs along it (None: extent 1)."""


class Seen(NamedTuple):
    """A value as a nest sees it."""

    value: Value
    axes: Axes

    def inner(self) -> Seen | None:
        """The operand that the value only moves, None if it does not."""
        op = cast("Op | None", self.value.op)
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

    def conditions(self) -> Iterator[Seen]:
        """The conditions that all hold where this one does."""
        inner = self.inner()
        op = cast("Op | None", self.value.op)
        if inner is not None:
            yield from inner.conditions()
        elif isinstance(op, AndOp):
            for operand in op.operands:
                yield from Seen(operand, self.axes).conditions()
        else:
            yield self


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


def ends(group: Group, dim: int) -> list[Bound]:
    """What ends the nest of a group along a dimension."""
    taken = list(group.materialized)
    masks: list[Value] = []
    for sink in group.sinks:
        if isinstance(sink, ReduceOp):
            taken += sink.inputs
        elif isinstance(sink, StoreOp) and sink.mask is not None:
            masks.append(sink.mask)
        else:
            return []
    if not group.sinks or any(isinstance(element_of(v.type), PointerType) for v in taken):
        return []
    everywhere: Axes = tuple(range(len(group.shape)))
    search = _Search(
        dim, [Seen(v, everywhere) for v in taken], [Seen(v, everywhere) for v in masks]
    )
    return [Bound(c) for c in search.candidates() if search.ends(c)]


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

    __slots__ = ("dim", "masks", "taken")

    def __init__(self, dim: int, taken: list[Seen], masks: list[Seen]) -> None:
        self.dim, self.taken, self.masks = dim, taken, masks

    def candidates(self) -> list[Seen]:
        """Comparisons of an index along the dimension, in what the nest needs."""
        found: dict[Seen, None] = {}
        reached: set[Seen] = set()
        stack = [*self.taken, *self.masks]
        while stack:
            seen = stack.pop()
            if seen in reached or self.dim not in seen.axes:
                continue
            reached.add(seen)
            inner = seen.inner()
            op = cast("Op | None", seen.value.op)
            if inner is not None:
                stack.append(inner)
            elif isinstance(op, CompareOp):
                if self._bounds(seen, op):
                    found[seen] = None
            elif isinstance(op, LoadOp):
                stack += [Seen(v, seen.axes) for v in (op.mask, op.other) if v is not None]
            elif op is not None and Trait.ELEMENTWISE in op.traits:
                stack += [Seen(v, seen.axes) for v in op.operands]
        return list(found)

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
            and direction(low) == 1
            and self._settles(Seen(high, seen.axes), None, {})
        )

    def ends(self, condition: Seen) -> bool:
        """Whether nothing more is stored where the condition is false, and the rest is settled."""
        known: dict[Seen, bool] = {}
        return all(condition in mask.conditions() for mask in self.masks) and all(
            self._settles(seen, condition, known) for seen in self.taken
        )

    def _settles(self, seen: Seen, condition: Seen | None, known: dict[Seen, bool]) -> bool:
        """Whether a value does not depend on the coordinate where `condition` is false."""
        if self.dim not in seen.axes:
            return True
        if seen not in known:
            known[seen] = self._computes_settled(seen, condition, known)
        return known[seen]

    def _computes_settled(
        self, seen: Seen, condition: Seen | None, known: dict[Seen, bool]
    ) -> bool:
        def settled(value: Value | None) -> bool:
            return value is None or self._settles(Seen(value, seen.axes), condition, known)

        def is_off(mask: Value | None) -> bool:
            if mask is None or condition is None:
                return False
            return condition in Seen(mask, seen.axes).conditions()

        inner = seen.inner()
        op = cast("Op | None", seen.value.op)
        if inner is not None:
            return self._settles(inner, condition, known)
        if isinstance(op, (SplatOp, ConstantOp)) or is_off(seen.value):
            return True
        if isinstance(op, LoadOp):
            return not op.volatile and is_off(op.mask) and settled(op.other)
        if isinstance(op, SelectOp) and is_off(op.condition):
            return settled(op.y)
        return (
            op is not None
            and Trait.ELEMENTWISE in op.traits
            and Trait.PURE in op.traits
            and all(map(settled, op.operands))
        )
