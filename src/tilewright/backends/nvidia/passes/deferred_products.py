"""Which warpgroup products of a loop may go on while the next iteration starts.

    cf.for ... (%k, %acc: tile<128x256xf32>) {
      %a = nvidia.share %x                          %x, %y: copied ahead
      %b = nvidia.share %y
      %c = nvidia.wgmma %a, %b, %acc                nothing else uses %acc and %c
      cf.yield %c
    }

Tensor cores then have the next product before the last one ends. Only sums that nothing reads in
the loop, of operands that nothing writes before the product ends: those in registers must not
change at all (PTX ISA, wgmma.fence).
"""

from __future__ import annotations

from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp
from tilewright.backends.nvidia.passes.schedule_loop import LoopSchedule
from tilewright.ir import Op, Value
from tilewright.ops import ForOp, TransposeOp


def deferred_products(schedule: LoopSchedule) -> list[WgmmaOp]:
    """The products of a loop in order, if all of them may go on; else none.

    One that waits for its own end waits for those before it.
    """
    loop = schedule.loop
    products = [op for op in loop.walk() if isinstance(op, WgmmaOp)]
    copied = set[Op](ahead.load for ahead in schedule.copies)
    fit = all(
        _only_sums(op, loop) and all(_is_stable(v, loop, copied) for v in (op.a, op.b))
        for op in products
    )
    return products if fit else []


def _only_sums(op: WgmmaOp, loop: ForOp) -> bool:
    """Whether a product adds to its sum of the last iteration, which nothing else uses."""
    acc, result = op.acc, op.result
    if op.parent is not loop.body or acc.owner is not loop.body or acc is loop.index:
        return False
    end = loop.body.terminator
    is_yielded = end.operands[acc.index - 1] is result and end.operands.count(result) == 1
    return is_yielded and list(acc.uses) == [op] and list(result.uses) == [end]


def _is_stable(value: Value, loop: ForOp, copied: set[Op]) -> bool:
    """Whether an operand stays as it is for further iterations."""
    inside = {region for op in loop.walk() for region in op.regions}
    where = value.owner if value.op is None else value.op.parent
    if where not in inside:
        return True
    op = value.op
    if not isinstance(op, ShareOp):
        return False
    source = op.x.op
    if isinstance(source, TransposeOp):
        source = source.x.op
    return source in copied
