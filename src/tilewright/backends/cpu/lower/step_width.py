"""The number of lanes of a step of a loop nest."""

from __future__ import annotations

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.fusion import EXPENSIVE, LoopNest, is_inlinable, recompute_cost
from tilewright.backends.cpu.lower.loop_clipping import MIN_STEPS_TO_CLIP
from tilewright.ir import Value
from tilewright.ir.types import PointerType, dtype_of, element_of
from tilewright.ops import ReduceOp, StoreOp

_MOST_ACCUMULATORS = 2
"""Reductions for each of which a nest may keep four vectors in registers."""

_MOST_VALUES = 256
"""Values of an expression that are searched for tables."""

_LOOKUP = "arith.lookup"
"""By its opcode: the op's module is imported only for kernels with functions."""


def lanes_along(state: CpuLowering, nest: LoopNest, dim: int) -> int:
    """Lanes of a step along a dimension."""
    extent, width = nest.shape[dim], full_width(state, nest)
    # Not in short rows, whose steps beyond a mask could not be clipped then.
    if (
        dim == nest.axis
        and extent >= 2 * MIN_STEPS_TO_CLIP * width
        and _waits_for_accumulators(nest)
    ):
        width *= 2
    # The power of two in the extent, so that no step is partial.
    return min(width, extent & -extent)


def _waits_for_accumulators(nest: LoopNest) -> bool:
    """Whether a step of reductions takes less time than the latency of an addition, 4 cycles, in
    which two vectors are read and added twice."""
    inputs = [v for op in nest.sinks if isinstance(op, ReduceOp) for v in op.inputs]
    cheap = all(recompute_cost(value, load=0) < EXPENSIVE for value in inputs)
    return cheap and len(inputs) <= _MOST_ACCUMULATORS


def full_width(state: CpuLowering, nest: LoopNest) -> int:
    """Lanes of two full vectors of the widest number, or of one vector of bytes.

    The widest number that is stored or looked up: tables fill a fourth of the registers, and four
    vectors do not fit together with them. Without tables four vectors are as fast or faster
    (figures in ADR 0033).
    """
    bits = 8
    for value in (*nest.materialized, *(v for s in nest.sinks for v in s.operands)):
        element = element_of(value.type)
        if not isinstance(element, PointerType):
            bits = max(bits, element.bits)
    for op in nest.sinks:
        if isinstance(op, StoreOp):
            bits = max(bits, _bits_looked_up(op.stored))
    return max(1, 2 * state.vector_bits // max(bits, 16))


def _bits_looked_up(value: Value) -> int:
    """Bits of the widest number that is read from a table to compute a value in its nest; else
    0."""
    bits, seen, stack = 0, {value}, [value]
    while stack and len(seen) < _MOST_VALUES:
        op = stack.pop().op
        if op is None or not is_inlinable(op):
            continue
        if op.opcode == _LOOKUP:
            bits = max(bits, dtype_of(op.results[0].type).bits)
        new = [v for v in op.operands if v not in seen]
        seen.update(new)
        stack += new
    return bits
