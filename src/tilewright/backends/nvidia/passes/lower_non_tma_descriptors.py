"""Lower descriptor accesses that TMA cannot issue; mark the others.

    %x = mem.descriptor_load %p, %m, ...         %x = mem.descriptor_load %p, %m, ... {bulk = true}
    %y = mem.descriptor_load %q, %n, ...    ->   %y = mem.load %r, %inside, 0

A marked access is of an array that the launch describes: base, shape and strides are parameters
with the alignment of tensor maps. `nvidia-select-tma` decides about it once MMAs are selected. The
others are lowered now, to be simplified like other code.
"""

from __future__ import annotations

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.layouts.store_panels import can_store
from tilewright.backends.nvidia.passes._tma_loads import parent_op
from tilewright.backends.nvidia.tensor_map_sources import launch_number
from tilewright.backends.nvidia.tensor_maps import MAP_ALIGNMENT, has_kind
from tilewright.ir import Function, Pass, Value
from tilewright.ir.types import (
    DType,
    bf16,
    f16,
    f32,
    i32,
    i64,
    u32,
    u64,
)
from tilewright.ops import (
    DescriptorAccess,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
    ForOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms import Canonicalize, LowerDescriptors

_INTEGERS = (i32, u32, i64, u64)

REDUCED_TYPES: dict[str, tuple[DType, ...]] = {
    "add": (i32, u32, u64, f16, bf16, f32),
    **dict.fromkeys(("min", "max"), (*_INTEGERS, f16, bf16)),
    **dict.fromkeys(("and", "or", "xor"), (i32, u32, u64)),
}
"""Elements that TMA combines (PTX ISA, "cp.reduce.async.bulk"; maps of i64 have no bits)."""

_REDUCED_BYTES = 16
"""TMA combines so many at a time, also past the end of a row of another length; a block that starts
at another multiple, or before the array, is an illegal instruction."""

_Store = DescriptorStoreOp | DescriptorReduceOp


@dataclass(frozen=True)
class LowerNonTmaDescriptors(Pass, name="nvidia-lower-non-tma-descriptors"):
    """Leave only loads, stores and reductions that TMA can issue. capability: of the architecture;
    loads: whether TMA may issue loads."""

    capability: int = 90
    loads: bool = True

    def run(self, function: Function) -> bool:
        marked = row_for(self.capability).tma and self._mark(function)
        return LowerDescriptors().run(function) or marked

    def _mark(self, function: Function) -> bool:
        """Mark the accesses that TMA can issue; whether there are any accesses."""
        if not self._accesses(function):
            return False
        # Offsets by 0 and the like hide parameters; only here, as few kernels have descriptors.
        Canonicalize().run(function)
        facts = analyze_alignment(function)
        for op in self._accesses(function):
            is_candidate = (
                _is_loadable(op) if isinstance(op, DescriptorLoadOp) else (_is_storable(op, facts))
            )
            op.attrs["bulk"] = is_candidate and _is_described(op, function, facts)
        return True

    def _accesses(self, function: Function) -> list[DescriptorLoadOp | _Store]:
        return [
            op
            for op in function.walk()
            if isinstance(op, _Store) or (self.loads and isinstance(op, DescriptorLoadOp))
        ]


def _is_loadable(op: DescriptorLoadOp) -> bool:
    """Whether a loop loads a block of a matrix, with zeros outside of the array."""
    return op.rank == 2 and op.padding == "zero" and isinstance(parent_op(op), ForOp)


def _is_storable(op: _Store, facts: dict[Value, Alignment]) -> bool:
    """Whether TMA stores, or combines, elements of the type in panels."""
    if not has_kind(op.element) or not can_store(op.block):
        return False
    return not isinstance(op, DescriptorReduceOp) or _is_reducible(op, facts)


def _is_reducible(op: DescriptorReduceOp, facts: dict[Value, Alignment]) -> bool:
    """Whether TMA combines the elements of a block, wherever it is."""
    columns = (op.shape[-1], op.offsets[-1])
    return (
        op.element in REDUCED_TYPES[op.kind]
        and all(facts[value].natural for value in op.offsets)
        and all(facts[v].every * op.element.bytes % _REDUCED_BYTES == 0 for v in columns)
    )


def _is_described(op: DescriptorAccess, function: Function, facts: dict[Value, Alignment]) -> bool:
    """Whether the launch describes an array as TMA needs it."""
    numbers = (op.pointer, *op.shape, *op.strides)
    if any(launch_number(value, function.args) is None for value in numbers):
        return False
    size = op.element.bytes
    is_aligned = facts[op.pointer].divisibility[0] >= MAP_ALIGNMENT
    return is_aligned and all(facts[v].every * size >= MAP_ALIGNMENT for v in op.strides)
