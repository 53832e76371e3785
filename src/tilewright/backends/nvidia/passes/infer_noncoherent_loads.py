"""Infer loads of arrays that nothing writes while the kernel runs; they need no order with stores.

    func @f(%w, %out) {                             func @f(%w, %out) {
      %x = mem.load %w + d0                 ->        %x = mem.load %w + d0 {read_only = true}
      mem.store %out + 4 n %row + d0, ...             mem.store %out + 4 n %row + d0, ...

They become `ld.global.nc`, which ptxas may sink past stores. The values loaded for a part of a tile
then need registers only while this part is computed; otherwise all loads precede the first store.
Layer norm's weight and bias, for example, are not in registers together with the row.

An array is read-only if no argument that the kernel stores to may be the same array: the two must
not overlap (`analysis.argument_pairs`), of which a launch warns. Excluded are arrays that may be
modified in place, and kernels with atomic operations that order memory, barriers or assembly, since
other programs may store the values that they wait for. Loads in loops are left alone: the loop's
schedule places them (schedule_loop.py), and a `while` may wait for the loaded value. So are those
in blocks with branches for each element, which are lowered vector by vector: ptxas would make a
thread wait for memory at each vector.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.analysis import argument_pairs, is_fence, roots
from tilewright.backends.nvidia.branching_ops import has_branch
from tilewright.ir import Block, Effect, Function, Pass, Value
from tilewright.ops import AtomicOp, IfOp, LoadOp, StoreOp
from tilewright.support.data_class import dataclass


@dataclass(frozen=True)
class InferNoncoherentLoads(Pass, name="nvidia-infer-noncoherent-loads"):
    """Mark the loads whose values no store of the kernel changes."""

    def run(self, function: Function) -> bool:
        read_only = _read_only_arguments(function)
        marked = [
            load for load in _straight_loads(function.body) if roots(load.pointer) <= read_only
        ]
        for load in marked:
            load.attrs["read_only"] = True
        return bool(marked)


def _straight_loads(block: Block) -> Iterator[LoadOp]:
    """Loads without a mark, in no loop, and in no block with branches for each element."""
    is_straight = not any(map(has_branch, block))
    for op in block:
        if isinstance(op, LoadOp) and not op.read_only and is_straight:
            yield op
        elif isinstance(op, IfOp):
            for region in op.regions:
                yield from _straight_loads(region)


def _read_only_arguments(function: Function) -> frozenset[Value]:
    """Pointers to arrays that do not alias those that the kernel writes."""
    writes = [op for op in function.walk() if Effect.WRITE in op.effects]
    if not all(isinstance(op, StoreOp | AtomicOp) for op in writes) or any(
        is_fence(op) for op in function.walk()
    ):
        return frozenset()
    written = frozenset(
        start for op in writes if isinstance(op, StoreOp | AtomicOp) for start in roots(op.pointer)
    )
    arguments = function.args
    apart = {
        frozenset((arguments[pair.first], arguments[pair.second]))
        for pair in argument_pairs(function)
        if not pair.unless
    }
    return frozenset(
        argument
        for argument in arguments
        if argument not in written and all(frozenset((argument, w)) in apart for w in written)
    )
