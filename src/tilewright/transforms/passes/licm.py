"""Loop-invariant code motion (`licm`).

    cf.for %0, %n, %1 (%i: i32) {                  %y = arith.mul %a, %b : i32
      %y = arith.mul %a, %b : i32         ->       cf.for %0, %n, %1 (%i: i32) {
      ...                                            ...

Pure ops move whose operands are defined outside; inner loops first, so that code may leave several
of them. Ops that might trap if the loop does not run stay: integer divisions whose divisor may be
zero, and loads, unless the loop certainly runs to its end and nothing in it writes. Code inside a
branch stays there. `tl.range(disable_licm=True)` forbids it for a loop.
"""

from __future__ import annotations

from tilewright.ir import Block, Effect, Function, Op, Pass, Rewriter, Trait, effects_of, is_pure
from tilewright.ir.types import dtype_of
from tilewright.ops import ConstantOp, DivOp, ForOp, LoadOp, RemOp, StopOp, WhileOp
from tilewright.transforms.region_slots import Loop

_CHANGES_MEMORY = frozenset((Effect.WRITE, Effect.BARRIER))


class Licm(Pass, name="licm"):
    """Move loop-invariant ops in front of their loops."""

    def run(self, function: Function) -> bool:
        loops = [op for op in function.walk() if isinstance(op, ForOp | WhileOp)]
        # walk() gives outer loops first.
        changed = [_hoist_from(loop) for loop in reversed(loops)]
        return any(changed)


def _hoist_from(loop: Loop) -> bool:
    if isinstance(loop, ForOp) and not loop.licm:
        return False
    moved = 0
    for block in loop.regions:
        runs = _surely_runs(loop, block)
        # in the order of the text: an op may become invariant when those before it have moved
        for op in block:
            if _is_invariant(op, block) and _may_move(op, loop, runs):
                Rewriter.move_before(op, loop)
                moved += 1
    return moved > 0


def _may_move(op: Op, loop: Loop, runs: bool) -> bool:
    """Whether an invariant op may run before the loop; `runs`: its block does so at least once."""
    if isinstance(op, LoadOp):
        # A `while` may wait for another program's write: its loads are repeated.
        steady = isinstance(loop, ForOp) and not op.volatile and not _may_stop(loop)
        return runs and steady and not effects_of(loop) & _CHANGES_MEMORY
    return is_pure(op) and (runs or not _may_trap(op))


def _may_stop(loop: Loop) -> bool:
    """Whether a program may stop before later loads, whose addresses may be invalid then."""
    return any(isinstance(op, StopOp) for op in loop.walk())


def _is_invariant(op: Op, block: Block) -> bool:
    """Whether no operand of the op, or of ops in it, is defined in the block itself."""
    if Trait.TERMINATOR in op.traits:
        return False
    # A list, not a generator: in these short, hot checks it is faster.
    if any([value.block is block for value in op.operands]):
        return False
    return not op.regions or all(
        value.block is not block for inner in op.walk() for value in inner.operands
    )


def _surely_runs(loop: Loop, block: Block) -> bool:
    """Whether a block of the loop runs at least once."""
    if isinstance(loop, WhileOp):
        # the condition is computed at least once, the body perhaps never
        return block is loop.before
    lower, upper = loop.lower.op, loop.upper.op
    if not isinstance(lower, ConstantOp) or not isinstance(upper, ConstantOp):
        return False
    return lower.value < upper.value


def _may_trap(op: Op) -> bool:
    """Whether an op, or one in it, is an integer division whose divisor may be 0 or -1."""
    return any([_divides_by_unknown(inner) for inner in op.walk()])


def _divides_by_unknown(op: object) -> bool:
    if not isinstance(op, DivOp | RemOp) or dtype_of(op.type).is_float:
        return False
    divisor = op.rhs.op
    # -1 traps for the least integer, whose quotient does not fit.
    return not isinstance(divisor, ConstantOp) or divisor.value in (0, -1)
