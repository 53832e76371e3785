"""Causes of layout conversions: the op that computes a tile, and the one that needs it otherwise.

    "in the loop of line 15: the load of line 16 and the dot of line 18 have different layouts"

Element-wise ops and changes of shape, which take any layout, are followed to the ops that do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.backends.nvidia.buffer_ops import (
    AsyncCopyOp,
    PartOp,
    ReadOp,
    ShareOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilewright.backends.nvidia.exchange_ops import SharedFmaDotOp
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Block, Op, Trait, Value
from tilewright.ir.types import TileType
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    BroadcastOp,
    DescriptorLoadOp,
    DescriptorStoreOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    IfOp,
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

_FOLLOWED = (
    ConvertOp, PartOp, WgmmaWaitOp, BroadcastOp, ExpandDimsOp, ReshapeOp, TransposeOp, SplatOp,
)  # fmt: skip


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
    values, seen = [x], {x}
    for value in values:
        if value.op is not None and type(value.op) in _NAMES:
            return value.op
        if len(values) < _MOST_FOLLOWED:
            new = [v for v in _inputs(value) if isinstance(v.type, TileType) and v not in seen]
            seen.update(new)
            values += new
    return None


def _inputs(value: Value) -> Sequence[Value]:
    """The values that a tile is computed from, also in the iteration before, or in a branch."""
    op, block = value.op, value.owner
    if op is None:
        # Argument 0 is the index.
        if isinstance(block, Block) and isinstance(block.owner, ForOp) and value.index > 0:
            return [block.terminator.operands[value.index - 1]]
        return ()
    if isinstance(op, ForOp | IfOp):
        return [region.terminator.operands[value.index] for region in op.regions]
    return op.operands if _takes_any_layout(op) else ()


def _sinks(results: Sequence[Value]) -> Iterator[Op]:
    """The ops that use tiles in layouts of their own."""
    values, seen = list(results), set(results)
    for value in values:
        for user in value.uses:
            if type(user) in _NAMES:
                yield user
            elif _takes_any_layout(user) and len(values) < _MOST_FOLLOWED:
                new = [v for v in user.results if v not in seen]
                seen.update(new)
                values += new


def _takes_any_layout(op: Op) -> bool:
    return Trait.ELEMENTWISE in op.traits or isinstance(op, _FOLLOWED)


def _named(op: Op) -> str:
    name, loc = _NAMES[type(op)], op.loc
    if loc is None or isinstance(op, YieldOp):
        return name
    return f"{name} of line {loc.outermost.line}"
