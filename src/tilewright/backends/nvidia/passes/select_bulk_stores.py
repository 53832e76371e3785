"""Chooses the stores and reductions by tensor descriptors that the copy engine makes.

    mem.descriptor_store %p, %x, ...    ->    mem.descriptor_store %p, %x, ... {bulk = true}

In two steps, as loads (select_bulk_loads.py). `nvidia-select-bulk-stores` comes before the
expansion and keeps what the launch describes. Behind the choice of products
`nvidia-check-bulk-stores` gives up the stores of tiles that no product has made: these are in a
layout in which threads store wide lines themselves, without a way through shared memory. The
fragments of a product go through it anyway. Reductions stay: threads make them one by one.
"""

from __future__ import annotations

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.layouts.store_panels import can_store
from tilewright.backends.nvidia.passes.select_bulk_loads import is_described
from tilewright.backends.nvidia.tensor_maps import has_kind
from tilewright.ir import Block, Function, Op, Pass, Value
from tilewright.ir.types import DType, TileType, bf16, f16, f32, i32, i64, u32, u64
from tilewright.ops import (
    DescriptorReduceOp,
    DescriptorStoreOp,
    DotOp,
    ForOp,
    IfOp,
    LoadOp,
    ReduceOp,
    ScanOp,
    WhileOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms import Canonicalize

_INTEGERS = (i32, u32, i64, u64)

REDUCED_TYPES: dict[str, tuple[DType, ...]] = {
    "add": (i32, u32, u64, f16, bf16, f32),
    **dict.fromkeys(("min", "max"), (*_INTEGERS, f16, bf16)),
    **dict.fromkeys(("and", "or", "xor"), (i32, u32, u64)),
}
"""Elements that the engine combines (PTX ISA, "cp.reduce.async.bulk"; maps of i64 have no bits)."""

_REDUCED_BYTES = 16
"""What the engine combines at a time, also at the end of a row: on an H200 it reached beyond rows
of other lengths; blocks that begin elsewhere, or before the array, are illegal instructions."""

_BulkStore = DescriptorStoreOp | DescriptorReduceOp


@dataclass(frozen=True)
class SelectBulkStores(Pass, name="nvidia-select-bulk-stores"):
    """Keep the stores that the copy engine could make. capability: of the architecture."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        if not row_for(self.capability).tma or not _stores(function):
            return False
        # As for loads: offsets by 0 and the like hide parameters.
        Canonicalize().run(function)
        facts = analyze_alignment(function)
        for op in _stores(function):
            op.attrs["bulk"] = _is_storable(op, function, facts)
        return True


def _stores(function: Function) -> list[_BulkStore]:
    return [op for op in function.walk() if isinstance(op, _BulkStore)]


def _is_storable(op: _BulkStore, function: Function, facts: dict[Value, Alignment]) -> bool:
    if not has_kind(op.element) or not can_store(op.block):
        return False
    if isinstance(op, DescriptorReduceOp) and not _is_reducible(op, facts):
        return False
    return is_described(op, function, facts)


def _is_reducible(op: DescriptorReduceOp, facts: dict[Value, Alignment]) -> bool:
    """Whether the engine combines the elements of a block, wherever it is."""
    columns = (op.shape[-1], op.offsets[-1])
    return (
        op.element in REDUCED_TYPES[op.kind]
        and all(facts[value].natural for value in op.offsets)
        and all(facts[v].every * op.element.bytes % _REDUCED_BYTES == 0 for v in columns)
    )


@dataclass(frozen=True)
class CheckBulkStores(Pass, name="nvidia-check-bulk-stores"):
    """Give up the stores that threads make as well."""

    def run(self, function: Function) -> bool:
        stores = (op for op in _stores(function) if isinstance(op, DescriptorStoreOp) and op.bulk)
        given_up = [op for op in stores if not _is_product(op.stored)]
        for op in given_up:
            op.attrs["bulk"] = False
        return bool(given_up)


def _is_product(tile: Value) -> bool:
    """Whether a tile is computed of a product, element by element."""
    seen, stack = set[Value](), [tile]
    while stack:
        value = stack.pop()
        if value in seen or not isinstance(value.type, TileType):
            continue
        seen.add(value)
        if isinstance(value.op, DotOp | WgmmaOp):
            return True
        stack += _sources(value)
    return False


def _sources(value: Value) -> list[Value]:
    """The tiles of as many elements that a tile may be made of."""
    op = value.op
    if op is None:
        return _of_argument(value)
    if isinstance(op, LoadOp | ReduceOp | ScanOp):
        return []
    if isinstance(op, IfOp | WhileOp | ForOp):
        return [*_yielded(op, value.index), *_inits(op, value.index)]
    return list(op.operands)


def _of_argument(value: Value) -> list[Value]:
    """What a carried value is: its initial value, or what the loop yields."""
    loop = value.owner.owner if isinstance(value.owner, Block) else None
    if not isinstance(loop, ForOp) or not value.index:
        return []
    return [*_yielded(loop, value.index - 1), *_inits(loop, value.index - 1)]


def _yielded(op: Op, index: int) -> list[Value]:
    if isinstance(op, WhileOp):
        return [op.before.terminator.operands[1 + index]]
    return [region.terminator.operands[index] for region in op.regions]


def _inits(op: Op, index: int) -> list[Value]:
    return [op.inits[index]] if isinstance(op, ForOp | WhileOp) else []
