"""Whether elements of a tile past a bound are dead: nothing that leaves the program uses them.

    %a = mem.load ...                       rows from %M on may hold anything
    %c = tile.dot %a, %b, %acc              row i of %c derives from row i of %a
    %d = arith.cast %c
    mem.store %p, %d, %row < %M             and is stored only where it is below %M

Rows are followed to all uses, along one dim of each value. Ops that combine rows (a reduction over
them), and uses elsewhere (an address, a condition, a print), are taken to use them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tilewright.analysis import Bound, Form, MemoryForms, bound_of, symbols_of
from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp
from tilewright.backends.nvidia.ops import FmaDotOp
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import shape_of
from tilewright.ops import (
    AtomicOp,
    BroadcastOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    IfOp,
    JoinOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    StoreOp,
    TransposeOp,
    YieldOp,
)

_Flow = tuple[Value, int]
"""A value, and the dim along which its elements are those of the tile."""

_BOUNDS = 3
"""Operands of a loop before the carried ones."""

_SAME_DIM = (BroadcastOp, HintOp, JoinOp, ShareOp)


def is_discarded(tile: Value, dim: int, beyond: Form, forms: MemoryForms) -> bool:
    """Whether nothing uses the elements of a tile whose coordinate d along a dim has
    d + beyond >= 0."""
    along = {tile: dim}
    stack = [tile]
    while stack:
        value = stack.pop()
        for flow in _flows(value, along[value], beyond, forms):
            if flow is None or along.get(flow[0], flow[1]) != flow[1]:
                return False
            # Each value once: loops are cyclic.
            if flow[0] not in along:
                stack.append(flow[0])
            along[flow[0]] = flow[1]
    return True


def _flows(value: Value, dim: int, beyond: Form, forms: MemoryForms) -> Iterator[_Flow | None]:
    """The values that use the elements; None for a use of all of them, or elsewhere."""
    for user in value.uses:
        if not _is_masked(user, value, dim, beyond, forms):
            for position in [i for i, operand in enumerate(user.operands) if operand is value]:
                yield from _through(user, position, dim, beyond)


def _is_masked(op: Op, value: Value, dim: int, beyond: Form, forms: MemoryForms) -> bool:
    """Whether an op stores a value, and masks its elements beyond the bound."""
    if not isinstance(op, StoreOp | AtomicOp) or any(result.uses for result in op.results):
        return False
    written = op.stored if isinstance(op, StoreOp) else op.operand
    # Neither the address nor the mask may derive from it.
    if written is not value or op.operands.count(value) > 1:
        return False
    return Bound(dim, True, beyond) in map(bound_of, forms.limits(op))


def _through(op: Op, position: int, dim: int, beyond: Form) -> Iterator[_Flow | None]:
    """The values that an op computes from the elements of an operand."""
    if isinstance(op, YieldOp | ForOp):
        yield from _around(op, position, dim, beyond)
    elif isinstance(op, ReduceOp | ScanOp):
        reduced = isinstance(op, ReduceOp) and dim > op.axis
        yield None if dim == op.axis else (op.results[position], dim - reduced)
    else:
        to = _dim_of_result(op, position, dim)
        yield None if to is None else (op.results[0], to)


def _around(op: YieldOp | ForOp, position: int, dim: int, beyond: Form) -> Iterator[_Flow | None]:
    """The values of a loop or a branch that an operand becomes."""
    target = op.parent.owner if isinstance(op, YieldOp) and op.parent is not None else op
    if not isinstance(target, ForOp):
        yield (target.results[position], dim) if isinstance(target, IfOp) else None
        return
    # The bound may differ in the next iteration.
    is_fixed = target is op or all(target not in s.loops for s in symbols_of(beyond))
    number = position - _BOUNDS if target is op else position
    yield (target.results[number], dim)
    yield (target.carried[number], dim) if is_fixed else None


def _dim_of_result(op: Op, position: int, dim: int) -> int | None:
    """The dim of the result along which the elements are in order; None without one."""
    if Trait.ELEMENTWISE in op.traits or isinstance(op, _SAME_DIM):
        return dim
    if isinstance(op, ExpandDimsOp):
        return dim + (dim >= op.axis)
    if isinstance(op, TransposeOp):
        return op.order.index(dim)
    if isinstance(op, ReshapeOp):
        return _dim_of_reshaped(shape_of(op.x.type), op.shape, dim)
    if isinstance(op, DotOp | FmaDotOp | WgmmaOp):
        return _dim_of_dot(op, position, dim)
    return None


def _dim_of_reshaped(source: Sequence[int], target: Sequence[int], dim: int) -> int | None:
    """The dim of the result that equals one of the source; None if it is split or merged."""
    place = prod(source[:dim]), source[dim]
    found = (d for d, extent in enumerate(target) if (prod(target[:d]), extent) == place)
    return next(found, None)


def _dim_of_dot(op: DotOp | FmaDotOp | WgmmaOp, position: int, dim: int) -> int | None:
    """The dim of the result of a dot, for operand A, B or the accumulator."""
    last = len(shape_of(op.acc.type)) - 1
    contracted = {0: last, 1: last - 1}.get(position)
    return None if dim == contracted or position > len("ab") else dim
