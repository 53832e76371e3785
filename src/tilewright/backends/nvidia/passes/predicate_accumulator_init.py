"""Initialize accumulators by the predicate of wgmma, not by writing zeros.

    cf.for ... (%acc) {                                cf.for ... (%acc, %k = true) {
      %c = nvidia.wgmma %a, %b, %acc                     %c = nvidia.wgmma %a, %b, %acc, %k
      %d = cf.if %last {                        ->       cf.if %last {
        mem.store ..., %c                                  mem.store ..., %c
        cf.yield %zeros                                  }
      } { cf.yield %c }                                  cf.yield %c, not %last
      cf.yield %d                                      }
    }

The pattern is a loop over the K blocks of all tiles of a program. The accumulator then stays in its
registers, so the wait can be deferred to the next iteration (deferred_waits.py).
"""

from __future__ import annotations

from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.schedule.schedule_loop import is_zero
from tilewright.ir import Block, Builder, Function, Op, Pass, Value
from tilewright.ir.types import i1
from tilewright.ops import ForOp, IfOp, SelectOp, SplatOp
from tilewright.support.data_class import dataclass
from tilewright.transforms import (
    add_slot,
    remove_dead,
    set_operands,
    yield_more,
)


@dataclass(frozen=True)
class PredicateAccumulatorInit(Pass, name="nvidia-predicate-accumulator-init"):
    """Give wgmma dots the predicate."""

    def run(self, function: Function) -> bool:
        dots = [op for op in function.walk() if isinstance(op, WgmmaOp)]
        changed = any([_restart_before(op) or _restart_after(op) for op in dots])
        if changed:
            remove_dead(function)  # selects of zeros
        return changed


@dataclass(frozen=True, slots=True)
class _Restart:
    """A tile that is an accumulator, or zeros.

    condition: a scalar; zeros_if: the value of the condition that selects zeros; op: the choice
    """

    accumulator: Value
    condition: Value
    zeros_if: bool
    op: Op

    def keep(self, builder: Builder) -> Value:
        """Whether the tile is the accumulator."""
        if not self.zeros_if:
            return self.condition
        return builder.bit_xor(self.condition, True)


def _restart_before(dot: WgmmaOp) -> bool:
    """Rewrite a choice of zeros for the operand of a dot."""
    restart = _restart_of(dot.acc)
    if restart is None:
        return False
    builder = Builder.at(dot)
    _add_predicate(dot, restart.accumulator, restart.keep(builder), builder)
    return True


def _restart_after(dot: WgmmaOp) -> bool:
    """Rewrite a choice of zeros that only the next iteration uses."""
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
    end.set_operand(slot, restart.accumulator)
    _add_predicate(dot, acc, keep, Builder.at(dot))
    return True


def _add_predicate(dot: WgmmaOp, accumulator: Value, keep: Value, builder: Builder) -> None:
    if dot.keep is not None:
        keep = builder.bit_and(dot.keep, keep)
    set_operands(dot, (dot.a, dot.b, accumulator, keep))


def _restart_of(value: Value) -> _Restart | None:
    """The choice between an accumulator and zeros that a tile is; None for other tiles."""
    op = value.op
    if isinstance(op, SelectOp):
        condition = op.condition.op.x if isinstance(op.condition.op, SplatOp) else op.condition
        values = [op.x, op.y]
    elif isinstance(op, IfOp):
        condition = op.condition
        values = [block.terminator.operands[value.index] for block in op.regions]
    else:
        return None
    zeros = [is_zero(v) for v in values]
    if condition.type is not i1 or zeros.count(True) != 1:
        return None
    accumulator = values[zeros.index(False)]
    if _is_inside(accumulator, op):
        return None
    return _Restart(accumulator, condition, zeros[0], op)


def _is_inside(value: Value, op: Op) -> bool:
    """Whether a value is defined in the regions of an op."""
    block = value.block
    return any(block is region for inner in op.walk() for region in inner.regions)
