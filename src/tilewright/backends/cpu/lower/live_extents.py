"""Rows and columns of a matrix that reach memory.

    for ... { acc = dot a, b, acc }
    m = (rows < M) & (columns < N)
    store p, cast acc, m                 rows of acc from M - rows[0] on are not stored

The masks may be computed after the matrix: their operands are evaluated early where possible.
"""

from __future__ import annotations

from itertools import islice

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.evaluate_lanes import INDEX_FUNCTIONS
from tilewright.backends.cpu.lower.loop_clipping import store_bounds
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import shape_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import HintOp, LoadOp, StoreOp, blocks_around

_MOST_OPS = 64
"""Limit of the ops between a matrix and its stores, and of those of a mask."""


def live_extents(state: CpuLowering, before: Op, matrix: Value) -> list[Val]:
    """Rows and columns beyond which no element of a matrix is stored or otherwise used, as i32.

    before: the op before which they are evaluated
    """
    shape = shape_of(matrix.type)
    stores = _stores_of(matrix)
    extents: list[Val] = []
    for dim, extent in enumerate(shape):
        all_of_it = integer_literal(extent)
        kept = [_stored(state, before, store, dim, extent) for store in stores or ()]
        known = [n for n in kept if n is not None]
        if not kept or len(known) < len(kept):
            extents.append(all_of_it)
            continue
        most = known[0]
        for other in known[1:]:
            most = state.code.intrinsic("smax", "i32", most, other)
        extents.append(most)
    return extents


def _stores_of(matrix: Value) -> list[StoreOp] | None:
    """The stores of all elements, each to its own address; None if they have other uses."""
    reached, stack, stores = {matrix}, [matrix], list[StoreOp]()
    while stack:
        value = stack.pop()
        for user in value.uses:
            if isinstance(user, StoreOp) and user.stored is value and user.mask is not value:
                stores.append(user)
                continue
            by_element = {Trait.ELEMENTWISE, Trait.PURE} <= user.traits or isinstance(user, HintOp)
            if not by_element or len(reached) > _MOST_OPS:
                return None
            stack += [v for v in user.results if v not in reached]
            reached.update(user.results)
    return stores


def _stored(state: CpuLowering, before: Op, store: StoreOp, dim: int, extent: int) -> Val | None:
    """How many elements along a dimension a store may store; None: all."""
    least: Val | None = None
    if store.mask is None:
        return None
    for bound in islice(store_bounds(store.mask, dim), _MOST_OPS):
        op = bound.condition.value.op
        assert op is not None
        if not bound.is_inside(dim, {}) or not _is_known(state, before, op.operands):
            continue
        counts = bound.count(state, dim, extent, {})
        if counts is not None:
            count, _ = counts
            least = count if least is None else state.code.intrinsic("smin", "i32", least, count)
    return least


def _is_known(state: CpuLowering, before: Op, values: list[Value]) -> bool:
    """Whether values can be evaluated before an op: from existing values, by ops without effects
    that run in any case."""
    blocks, reached, stack = set(blocks_around(before.parent)), set[Value](), list(values)
    while stack:
        value = stack.pop()
        if value in reached or value in state.env.scalars or value in state.env.buffers:
            continue
        reached.add(value)
        op = value.op
        if op is None or op.parent not in blocks or len(reached) > _MOST_OPS:
            return False
        function = type(op) in INDEX_FUNCTIONS or Trait.ELEMENTWISE in op.traits
        if not function or Trait.PURE not in op.traits or isinstance(op, LoadOp):
            return False
        stack += op.operands
    return True
