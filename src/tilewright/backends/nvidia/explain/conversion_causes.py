"""Causes of layout conversions: the op that computes a tile, and the one that needs it otherwise.

    "in the loop of line 15: the load of line 16 and the dot of line 18 have different layouts"

Element-wise ops and changes of shape, which take any layout, are followed to the ops that do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from tilewright.backends.nvidia.buffer_ops import (
    AsyncCopyOp,
    ReadOp,
    ShareOp,
    WgmmaOp,
)
from tilewright.backends.nvidia.exchange_ops import SharedFmaDotOp
from tilewright.backends.nvidia.explain.operand_sources import PASSED_ON, yielded_values
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import TileType
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    BroadcastOp,
    DescriptorLoadOp,
    DescriptorStoreOp,
    DotOp,
    ExpandDimsOp,
    LoadOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SplatOp,
    StoreOp,
    TransposeOp,
    YieldOp,
    loops_around,
)
from tilewright.support.reachable import nearest_first

_MOST_FOLLOWED = 256
"""Values that are followed in search of an op; most chains are short."""

_NAMES: dict[type[Op], str] = {
    **dict.fromkeys((LoadOp, DescriptorLoadOp, AsyncCopyOp, ReadOp), "load"),
    **dict.fromkeys((StoreOp, DescriptorStoreOp), "store"),
    **dict.fromkeys((DotOp, WgmmaOp, SharedFmaDotOp, ShareOp), "dot"),
    **dict.fromkeys((AtomicOp, AtomicCasOp), "atomic"),
    ReduceOp: "reduction",
    ScanOp: "scan",
    YieldOp: "next iteration",
}
"""Ops with a layout of their own, as readers of the source call them."""

_FOLLOWED = (*PASSED_ON, BroadcastOp, ExpandDimsOp, ReshapeOp, TransposeOp, SplatOp)


def conversion_cause(op: Op, x: Value, results: Sequence[Value]) -> str:
    """Where a conversion is, and why. op: the conversion; x: its tile before; results: after it"""
    loop = next(loops_around(op), None)
    place = "" if loop is None or loop.loc is None else f"in the loop of line {loop.loc.line}: "
    source, sink = _source(x), next(_sinks(results), None)
    if source is None or sink is None:
        return f"{place}its uses need other layouts"
    return f"{place}the {_named(source)} and the {_named(sink)} have different layouts"


def _source(x: Value) -> Op | None:
    """The op that a tile is from."""
    values = islice(nearest_first([x], _inputs), _MOST_FOLLOWED)
    return next((value.op for value in values if type(value.op) in _NAMES), None)


def _inputs(value: Value) -> list[Value]:
    """The tiles that a tile is computed from, also in the iteration before, or in a branch."""
    op = value.op
    operands = op.operands if op is not None and _takes_any_layout(op) else []
    return [v for v in yielded_values(value) or operands if isinstance(v.type, TileType)]


def _sinks(results: Sequence[Value]) -> Iterator[Op]:
    """The ops that use tiles in layouts of their own."""

    def computed(value: Value) -> Iterator[Value]:
        return (x for user in value.uses if _takes_any_layout(user) for x in user.results)

    for value in islice(nearest_first(results, computed), _MOST_FOLLOWED):
        yield from (user for user in value.uses if type(user) in _NAMES)


def _takes_any_layout(op: Op) -> bool:
    return Trait.ELEMENTWISE in op.traits or isinstance(op, _FOLLOWED)


def _named(op: Op) -> str:
    name, loc = _NAMES[type(op)], op.loc
    if loc is None or isinstance(op, YieldOp):
        return name
    return f"{name} of line {loc.outermost.line}"
