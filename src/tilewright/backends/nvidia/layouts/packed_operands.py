"""Layouts of operands that threads narrow: in the register order in which dots read them.

    %f = arith.cast %w : tile<64x128xf8e4m3, A>        an operand in R, the same elements in threads
                                                ->     %v = nvidia.convert %w : tile<64x128xf32, R>
                                                       %f = arith.cast %v : tile<64x128xf8e4m3, R>

Several narrow elements share a register of 32 bits. In another order they would be unpacked and
packed again, by an instruction for each register; elements with registers of their own are only
renumbered.
"""

from __future__ import annotations

from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.layouts.layout_context import LayoutContext
from tilewright.backends.nvidia.layouts.layout_rules import rule_of
from tilewright.backends.nvidia.layouts.operand_chains import register_operand
from tilewright.backends.nvidia.layouts.select_wgmma import wgmma_left
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import dtype_of
from tilewright.layout import LinearLayout, RegisterPermute, plan
from tilewright.ops import CastOp, ForOp

_REGISTER_BITS = 32


def packed_layout(op: Op, context: LayoutContext) -> LinearLayout | None:
    """The layout of a cast to elements that share registers, if a dot reads its result, in
    this iteration or the next, and differs only in the order of registers; else None."""
    if not isinstance(op, CastOp) or (dot := _sole_dot(op.result)) is None:
        return None
    bits = dtype_of(op.type).bits
    if not bits < _REGISTER_BITS <= dtype_of(op.x.type).bits:
        return None
    source, layout = rule_of(op).result(op, context), wgmma_left(dot, context.warps)
    if source is None or not isinstance(plan(source, layout, bits), RegisterPermute):
        return None
    return layout


def _sole_dot(value: Value) -> WgmmaOp | None:
    """The dot that alone reads a value as its operand in registers, as it is or carried to the
    next iteration, and behind the loop."""
    users = list(value.uses)
    if len(users) == 1 and (carried := _carried(users[0], value)) is not None:
        value, users = carried, list(carried.uses)
    dots = [op for op in users if isinstance(op, WgmmaOp) and register_operand(op) is not None]
    reads = [op for op in dots if op.operands[register_operand(op) or 0] is value]
    return reads[0] if len(users) == len(reads) == 1 else None


def _carried(end: Op, value: Value) -> Value | None:
    """The carried value of the next iteration that a yielded value becomes."""
    loop = end.parent.owner if isinstance(end.parent, Block) else None
    if not isinstance(loop, ForOp) or end is not loop.body.last or end.operands.count(value) != 1:
        return None
    return loop.carried[end.operands.index(value)]
