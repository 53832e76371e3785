"""Estimate of how many programs the caller runs sooner alone than with threads that it has to wake.

The estimate counts the vector instructions of one program: each load, store and op on loaded values
once for each vector of its tile, a quotient or root as several; indices and addresses are scalars.
A precision of a factor of two is enough, since near the limit both ways take the same time.
"""

from __future__ import annotations

from math import prod

from tilewright.backends.cpu.lower.fusion import OP_COSTS, is_inlinable, touches_tiles
from tilewright.ir import Function, Op, Trait, Value
from tilewright.ir.types import PointerType, dtype_of, element_of, shape_of
from tilewright.ops import (
    LoadOp,
    NumProgramsOp,
    ProgramIdOp,
    ReduceOp,
    ReturnOp,
    StoreOp,
)

_WORTH_WAKING = 1 << 14
"""Instructions above which waking a second thread pays: half of their time exceeds the wake-up."""


def programs_alone(function: Function, vector_bits: int) -> int:
    """The number of programs up to which a grid runs on the caller; 0 where the work is unknown, as
    of loops and dots, and where programs may wait for each other."""
    ops = [op for op in function.body if op.parent is function.body]
    if not all(map(_is_counted, ops)):
        return 0
    data: set[Value] = set()
    instructions = 0
    for op in ops:
        if isinstance(op, LoadOp | StoreOp) or not data.isdisjoint(op.operands):
            data.update(op.results)
            instructions += _instructions(op, vector_bits)
    return _WORTH_WAKING // max(1, instructions)


def _is_counted(op: Op) -> bool:
    if isinstance(op, StoreOp | ReduceOp | ReturnOp | ProgramIdOp | NumProgramsOp) or is_inlinable(
        op
    ):
        return True
    return not touches_tiles(op) and (isinstance(op, LoadOp) or Trait.PURE in op.traits)


def _instructions(op: Op, vector_bits: int) -> int:
    """The cost of an op for each vector of the largest tile that is no tile of addresses."""
    values = (*op.operands, *op.results)
    vectors = max((_vectors(v, vector_bits) for v in values if not _is_address(v)), default=0)
    return vectors * OP_COSTS.get(type(op), 1)


def _is_address(value: Value) -> bool:
    return isinstance(element_of(value.type), PointerType)


def _vectors(value: Value, vector_bits: int) -> int:
    bits = prod(shape_of(value.type)) * max(dtype_of(value.type).bits, 8)
    return -(-bits // vector_bits)
