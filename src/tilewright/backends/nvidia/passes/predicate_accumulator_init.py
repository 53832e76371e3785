"""Lets dots start sums again by a predicate, instead of with zeros that are written before.

    cf.for ... (%acc) {                                cf.for ... (%acc, %k = true) {
      %c = nvidia.wgmma %a, %b, %acc                     %c = nvidia.wgmma %a, %b, %acc, %k
      %d = cf.if %last {                        ->       cf.if %last {
        mem.store ..., %c                                  mem.store ..., %c
        cf.yield %zeros                                  }
      } { cf.yield %c }                                  cf.yield %c, not %last
      cf.yield %d                                      }
    }

As in a loop over the blocks of K of all tiles of a program. The sums then stay in their registers,
so dots can go on while the next iteration starts (deferred_waits.py).
"""

from __future__ import annotations

from math import copysign

from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.ir import Block, Builder, Function, Op, Pass, Value
from tilewright.ir.types import i1
from tilewright.ops import ConstantOp, ForOp, IfOp, SelectOp, SplatOp
from tilewright.support.data_class import dataclass
from tilewright.transforms import add_slot, defining_block, set_operands, yield_more


@dataclass(frozen=True)
class PredicateAccumulatorInit(Pass, name="nvidia-predicate-accumulator-init"):
    """Let wgmma dots start sums again."""

    def run(self, function: Function) -> bool:
        dots = [op for op in function.walk() if isinstance(op, WgmmaOp)]
        return any([_restart_before(op) or _restart_behind(op) for op in dots])


@dataclass(frozen=True, slots=True)
class _Restart:
    """A tile that is `sums`, or zeros.

    condition: a scalar; zeros_if: of which value of the condition; op: that chooses
    """

    sums: Value
    condition: Value
    zeros_if: bool
    op: Op

    def keep(self, builder: Builder) -> Value:
        """Whether it is the sums."""
        if not self.zeros_if:
            return self.condition
        return builder.bit_xor(self.condition, True)


def _restart_before(dot: WgmmaOp) -> bool:
    """Where zeros are chosen for what a dot adds to."""
    restart = _restart_of(dot.acc)
    if restart is None:
        return False
    builder = Builder.at(dot)
    _add_predicate(dot, restart.sums, restart.keep(builder), builder)
    return True


def _restart_behind(dot: WgmmaOp) -> bool:
    """Where zeros are chosen for the next iteration, which alone uses them."""
    acc, body = dot.acc, dot.acc.owner
    if not isinstance(body, Block) or body is not dot.parent:
        return False
    loop, slot = body.owner, acc.index - 1
    if not isinstance(loop, ForOp) or list(acc.uses) != [dot] or loop.results[slot].uses:
        return False
    end = body.terminator
    restart = _restart_of(end.operands[slot])
    if restart is None or list(end.operands[slot].uses) != [end]:
        return False
    true = Builder.at(loop).constant(True, i1)
    (keep,) = add_slot(loop, true, "keep")
    yield_more(loop, restart.keep(Builder.at(end)))
    end.set_operand(slot, restart.sums)
    _add_predicate(dot, acc, keep, Builder.at(dot))
    return True


def _add_predicate(dot: WgmmaOp, sums: Value, keep: Value, builder: Builder) -> None:
    if dot.keep is not None:
        keep = builder.bit_and(dot.keep, keep)
    set_operands(dot, (dot.a, dot.b, sums, keep))


def _restart_of(value: Value) -> _Restart | None:
    """How a tile is chosen from sums and zeros, if it is."""
    op = value.op
    if isinstance(op, SelectOp):
        condition = op.condition.op.x if isinstance(op.condition.op, SplatOp) else op.condition
        values = [op.x, op.y]
    elif isinstance(op, IfOp):
        condition = op.condition
        values = [block.terminator.operands[value.index] for block in op.regions]
    else:
        return None
    zeros = [_is_zero(v) for v in values]
    if condition.type is not i1 or zeros.count(True) != 1:
        return None
    sums = values[zeros.index(False)]
    if _is_inside(sums, op):
        return None
    return _Restart(sums, condition, zeros[0], op)


def _is_zero(value: Value) -> bool:
    op = value.op
    if isinstance(op, SplatOp):
        op = op.x.op
    return isinstance(op, ConstantOp) and op.value == 0 and copysign(1, op.value) > 0


def _is_inside(value: Value, op: Op) -> bool:
    """Whether a value is made in the regions of an op."""
    block = defining_block(value)
    return any(block is region for inner in op.walk() for region in inner.regions)
