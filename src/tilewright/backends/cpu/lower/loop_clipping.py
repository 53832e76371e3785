"""Clips the loop of a nest where a mask has become false for good.

A row of 781 numbers is processed as a tile of 1024 with the mask `i < 781`. Of the 32 steps of 32
lanes, seven have no visible effect:

    m = i < n
    x = load p, m, -inf        from the first i with m false on: -inf for every i
    r = reduce max x           another step of -inf changes nothing
    store q, exp(x), m         nothing

A comparison of an index with a bound *clips* a nest along a dimension if, where it is false, stores
store nothing and the inputs of reductions and buffers are *independent* of the coordinate. A nest
of stores runs the steps that have a coordinate before the bound. Any other nest runs one more, and
then more steps until one leaves the bits of the accumulators unchanged: the following steps would
too, since they have the same inputs. The buffers' values of the last step then fill them to the
end. The results are those of all steps, bit by bit.

An index that wraps within the tile is beyond the bound, and then below it again. Ranges prove that
it does not wrap, or the program tests its first element: a wrapping index ends no loop, and no
condition is assumed to hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, cast

from tilewright.analysis import affine
from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.fusion import LoopNest
from tilewright.backends.cpu.lower.lane_values import Lanes, literal
from tilewright.ir import Trait, Value
from tilewright.ir.types import DType, PointerType, dtype_of, element_of, shape_of
from tilewright.llvm import Code, Val, integer_literal
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

MIN_STEPS_TO_CLIP = 4
"""Steps from which a test for an early exit pays."""

MAX_CANDIDATES = 16
"""Comparisons that are tried as the end of a loop; only generated code has more."""

Axes = tuple[int | None, ...]
"""For each dimension of a value, the dimension of the nest that runs along it (None: extent 1)."""


class IndexedValue(NamedTuple):
    """A value, and the dimensions of the nest along which its own run."""

    value: Value
    axes: Axes

    def inner(self) -> IndexedValue | None:
        """The operand whose elements the value only moves; None for a value that computes."""
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
        return IndexedValue(operand, axes)

    def coords(self, of_nest: Mapping[int, Lanes]) -> tuple[Lanes, ...]:
        """The value's coordinates at those of the nest."""
        return tuple(literal(0) if axis is None else of_nest[axis] for axis in self.axes)

    def conjuncts(self) -> Sequence[IndexedValue]:
        """The conditions of which this one is the conjunction, if it is one."""
        inner = self.inner()
        if inner is not None:
            return (inner,)
        op = self.value.op
        return [IndexedValue(v, self.axes) for v in op.operands] if isinstance(op, AndOp) else ()


class ActiveExtent(NamedTuple):
    """How many elements along a dimension have an effect, and for how many a condition holds while
    all others have no effect; as i32.

    The two differ where the index of the condition wraps, or may (`is_exact`).
    """

    elements: Val
    holding: Val
    condition: IndexedValue

    @property
    def is_exact(self) -> bool:
        """Whether the condition holds for all elements that have an effect."""
        return self.elements == self.holding


def active_extent(
    state: CpuLowering, nest: LoopNest, dim: int, coords: Mapping[int, Lanes]
) -> ActiveExtent | None:
    """The extent to which a nest has an effect along a dimension; None if it is not known.

    coords: of the open loops; none of them is along the dimension
    """
    for bound in clipping_bounds(nest, dim):
        if bound.is_inside(dim, coords):
            count = bound.count(state, dim, nest.shape[dim], coords)
            if count is not None:
                return ActiveExtent(*count, bound.condition)
    return None


def holding_extent(
    state: CpuLowering, nest: LoopNest, dim: int, coords: Mapping[int, Lanes]
) -> ActiveExtent | None:
    """For how many elements along a dimension, from the first one on, a condition in the inputs of
    buffers holds; None if there is no such condition."""
    everywhere: Axes = tuple(range(len(nest.shape)))
    consumed = [IndexedValue(v, everywhere) for v in nest.materialized]
    for condition in islice(_BoundSearch(dim, consumed, []).candidates(), MAX_CANDIDATES):
        bound = ClippingBound(condition)
        if bound.is_inside(dim, coords):
            count = bound.count(state, dim, nest.shape[dim], coords)
            if count is not None:
                return ActiveExtent(*count, condition)
    return None


def clipping_bounds(nest: LoopNest, dim: int) -> Iterator[ClippingBound]:
    """The comparisons that clip a nest along a dimension; of the first `MAX_CANDIDATES`."""
    consumed = list(nest.materialized)
    masks: list[Value] = []
    for sink in nest.sinks:
        if isinstance(sink, ReduceOp):
            consumed += sink.inputs
        elif isinstance(sink, StoreOp) and sink.mask is not None:
            masks.append(sink.mask)
        else:
            return
    # Pointers may be evaluated to an `Address`, which `_fill` does not write.
    if not nest.sinks or any(isinstance(element_of(v.type), PointerType) for v in consumed):
        return
    everywhere: Axes = tuple(range(len(nest.shape)))
    search = _BoundSearch(
        dim,
        [IndexedValue(v, everywhere) for v in consumed],
        [IndexedValue(v, everywhere) for v in masks],
    )
    yield from (
        ClippingBound(c) for c in islice(search.candidates(), MAX_CANDIDATES) if search.clips(c)
    )


def store_bounds(mask: Value, dim: int) -> Iterator[ClippingBound]:
    """The comparisons that end the true lanes of a mask along a dimension."""
    everywhere: Axes = tuple(range(len(shape_of(mask.type))))
    search = _BoundSearch(dim, [], [IndexedValue(mask, everywhere)])
    yield from (
        ClippingBound(c) for c in islice(search.candidates(), MAX_CANDIDATES) if search.clips(c)
    )


class ClippingBound:
    """A comparison `low < high` (or <=) that ends a nest."""

    __slots__ = ("condition",)

    def __init__(self, condition: IndexedValue) -> None:
        self.condition = condition

    @staticmethod
    def sides(op: CompareOp) -> tuple[Value, Value]:
        """The smaller side, and the larger one."""
        return (op.lhs, op.rhs) if op.predicate in ("lt", "le") else (op.rhs, op.lhs)

    def is_inside(self, dim: int, coords: Mapping[int, Lanes]) -> bool:
        """Whether all lanes agree on it, and the loops that it depends on are open."""
        return all(
            axis is None or axis == dim or (axis in coords and coords[axis].is_uniform)
            for axis in self.condition.axes
        )

    def count(
        self, state: CpuLowering, dim: int, extent: int, coords: Mapping[int, Lanes]
    ) -> tuple[Val, Val] | None:
        """min(high - low at 0, extent), at least 0, if low is consecutive and high is uniform.

        Twice; if low wraps within the extent, the extent and 0.
        """
        op = cast("CompareOp", self.condition.value.op)
        # Two lanes show whether `low` is affine with stride 1.
        ev = state.evaluator(2)
        # The step at index 0, with lanes along the dimension.
        at = self.condition.coords({**coords, dim: Lanes(integer_literal(0), 1, 1 << 20)})
        low, high = (ev.lanes(v, at) for v in self.sides(op))
        if low.stride != 1 or not high.is_uniform:
            return None
        code, kind = state.code, low.base.type
        # Saturating, since bounds may be far apart; the clamp below corrects it.
        count = code.intrinsic("ssub.sat", kind, high.base, low.base)
        count = code.intrinsic("smin", kind, count, integer_literal(extent, kind))
        if op.predicate in ("le", "ge"):
            # After the clamp, where adding 1 cannot overflow.
            count = code.binary("add", count, integer_literal(1, kind))
            count = code.intrinsic("smin", kind, count, integer_literal(extent, kind))
        count = code.intrinsic("smax", kind, count, integer_literal(0, kind))
        count = count if kind == "i32" else code.convert("trunc", count, "i32")
        return self._unless_it_wraps(code, low.base, extent, count)

    def _unless_it_wraps(self, code: Code, first: Val, extent: int, count: Val) -> tuple[Val, Val]:
        """How many elements have an effect, and for how many the condition is known to hold."""
        low = self.sides(cast("CompareOp", self.condition.value.op))[0]
        known, largest = affine.of(low).range(), dtype_of(low.type).max_int
        if known is not None and known.high < largest:
            return count, count
        last = integer_literal(largest - (extent - 1), first.type)
        wraps = code.compare("icmp sgt", first, last)
        everything, nothing = integer_literal(extent), integer_literal(0)
        return code.select(wraps, everything, count), code.select(wraps, nothing, count)


class _BoundSearch:
    """Search for a condition that clips a nest along a dimension.

    consumed: inputs of reductions and buffers; masks: of the stores
    """

    __slots__ = ("dim", "directions", "everywhere", "masks", "consumed")

    def __init__(self, dim: int, consumed: list[IndexedValue], masks: list[IndexedValue]) -> None:
        self.dim, self.consumed, self.masks = dim, consumed, masks
        self.directions: dict[Value, int | None] = {}
        self.everywhere = _BeyondBound(dim, None)

    def candidates(self) -> Iterator[IndexedValue]:
        """Comparisons of an index along the dimension among the values that the nest evaluates."""
        reached: set[IndexedValue] = set()
        stack = [*self.consumed, *self.masks]
        while stack:
            indexed = stack.pop()
            if indexed in reached or self.dim not in indexed.axes:
                continue
            reached.add(indexed)
            inner = indexed.inner()
            op = indexed.value.op
            if inner is not None:
                stack.append(inner)
            elif isinstance(op, CompareOp):
                if self._is_bound(indexed, op):
                    yield indexed
            elif isinstance(op, LoadOp):
                stack += [
                    IndexedValue(v, indexed.axes) for v in (op.mask, op.other) if v is not None
                ]
            elif op is not None and Trait.ELEMENTWISE in op.traits:
                stack += [IndexedValue(v, indexed.axes) for v in op.operands]

    def _is_bound(self, indexed: IndexedValue, op: CompareOp) -> bool:
        """Whether a comparison may hold for a number of indices and then for none.

        Unsigned arithmetic wraps by definition, so such an index need not be monotonic; `count`
        relies on 32 bits or more.
        """
        low, high = ClippingBound.sides(op)
        element = element_of(low.type)
        return (
            op.predicate in ("lt", "le", "gt", "ge")
            and isinstance(element, DType)
            and element.is_signed
            and element.bits >= 32
            and affine.of(low).direction(self.directions) == 1
            and self.everywhere.is_independent(IndexedValue(high, indexed.axes))
        )

    def clips(self, condition: IndexedValue) -> bool:
        """Whether, where the condition is false, nothing is stored and the consumed values stay the
        same."""
        beyond = _BeyondBound(self.dim, condition)
        return all(map(beyond.is_masked_off, self.masks)) and all(
            map(beyond.is_independent, self.consumed)
        )


class _BeyondBound:
    """Values that are masked off, and values that are independent of the coordinate, where a
    condition is false."""

    __slots__ = ("condition", "dim", "masked_off", "independent")

    def __init__(self, dim: int, condition: IndexedValue | None) -> None:
        self.dim, self.condition = dim, condition
        self.masked_off: dict[IndexedValue, bool] = {}
        self.independent: dict[IndexedValue, bool] = {}

    def is_masked_off(self, mask: IndexedValue) -> bool:
        """Whether a mask is false."""

        def is_false(item: IndexedValue, parts: list[bool]) -> bool:
            return any(parts) or item == self.condition

        return fold(mask, IndexedValue.conjuncts, is_false, self.masked_off)

    def is_independent(self, indexed: IndexedValue) -> bool:
        """Whether a value does not depend on the coordinate."""

        def needs(item: IndexedValue) -> Sequence[IndexedValue]:
            return self._needs(item) or ()

        def combine(item: IndexedValue, parts: list[bool]) -> bool:
            # Without parts: either nothing is needed, or nothing would help.
            return all(parts) if parts else self._needs(item) is not None

        return fold(indexed, needs, combine, self.independent)

    def _needs(self, indexed: IndexedValue) -> Sequence[IndexedValue] | None:
        """The values that must be independent for this one to be; None if it cannot be."""
        value, axes = indexed
        inner = indexed.inner()
        op = value.op
        if self.dim not in axes:
            return ()
        if inner is not None:
            return (inner,)
        if isinstance(op, (SplatOp, ConstantOp)) or self.is_masked_off(indexed):
            return ()
        # Unless its mask is false there, a loaded value changes with the address.
        if isinstance(op, LoadOp):
            if (
                op.volatile
                or op.mask is None
                or not self.is_masked_off(IndexedValue(op.mask, axes))
            ):
                return None
            return () if op.other is None else (IndexedValue(op.other, axes),)
        # Beyond the bound only the other value is selected.
        if isinstance(op, SelectOp) and self.is_masked_off(IndexedValue(op.condition, axes)):
            return (IndexedValue(op.y, axes),)
        if op is None or not op.traits >= {Trait.ELEMENTWISE, Trait.PURE}:
            return None
        return [IndexedValue(v, axes) for v in op.operands]
