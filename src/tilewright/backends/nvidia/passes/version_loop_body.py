"""Version the loop body: straight-line code without masks, where all dots run, and general code.

    cf.for ... {                                     cf.for ... {
      %o = nvidia.wgmma %p, %y, %acc, true, %runs      %common = %runs and %full
      %t = nvidia.wgmma_wait %s {pending = 1}          %r = cf.if %common {
      %m = cf.if %full {                                 %o = nvidia.wgmma %p, %y, %acc
        cf.yield %t                                      %t = nvidia.wgmma_wait %s {pending = 1}
      } {                                    ->          %w = ... %t ...
        ...                                              %u = nvidia.wgmma_wait %o {pending = 0}
      }                                                  cf.yield ... %u
      %w = ... %m ...                                  } {
      %u = nvidia.wgmma_wait %o {pending = 0}            all as it was
      cf.yield ... %u                                  }
    }                                                  cf.yield %r
                                                     }

ptxas sinks the wait for a dot to its last use within a basic block only; after a branch it waits at
once, and the tensor cores idle while threads compute (figures in docs/adr/0030-dependent-dots.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.register_model import instruction_estimate
from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Value, is_pure
from tilewright.ir.types import DType
from tilewright.ops import ForOp, IfOp, YieldOp
from tilewright.support.data_class import dataclass
from tilewright.transforms import set_operands

_MOST_INSTRUCTIONS = 2048
"""Instructions of a version, at most: two must fit into the instruction cache of a multiprocessor
next to the rest of the loop."""


@dataclass(frozen=True)
class VersionLoopBody(Pass, name="nvidia-version-loop-body"):
    """Branch once in an iteration, before its last dot."""

    def run(self, function: Function) -> bool:
        loops = [op for op in function.walk() if isinstance(op, ForOp)]
        return any([_version(loop) for loop in loops])


def _version(loop: ForOp) -> bool:
    """Version a loop whose last dot, after another one, has a deferred wait and a predicate.

    Between dots that are split into parts ptxas would wait for each.
    """
    dots = [op for op in loop.body if isinstance(op, WgmmaOp)]
    may_run = [op.runs is not None for op in dots]
    if len(dots) < 2 or any(may_run[:-1]) or not may_run[-1]:
        return False
    if any(op.pending is not None for op in dots):
        return False
    first, end = dots[-1], loop.body.terminator
    if instruction_estimate(_ops_from(first)) > _MOST_INSTRUCTIONS:
        return False
    _move_scalars_before(first)
    inside = _ops_from(first)[:-1]
    masks = [op for op in inside if isinstance(op, IfOp) and _is_mask(op, inside)]
    builder = Builder.at(first)
    conditions = [*first.operands[-1:], *(mask.condition for mask in masks)]
    common = reduce(builder.bit_and, conditions)
    left = list(dict.fromkeys(v for v in end.operands if _is_in(v, inside)))
    mapping: dict[Value, Value] = {}
    straight = _straight(inside, masks, mapping)
    Builder(straight, None, loop.loc).emit(YieldOp(tuple(mapping[v] for v in left)))
    other = Block()
    for op in inside:
        loop.body.detach(op)
        other.insert(op)
    Builder(other, None, loop.loc).emit(YieldOp(tuple(left)))
    types = tuple(value.type for value in left)
    results = Builder.at(end).emit(IfOp(common, straight, other, result_types=types)).results
    for value, result in zip(left, results, strict=True):
        Rewriter.replace_operand(end, value, result)
    return True


def _straight(ops: Sequence[Op], masks: Sequence[IfOp], mapping: dict[Value, Value]) -> Block:
    """A block with the ops, without masks, in which the dot runs."""
    block = Block()
    for op in ops:
        if op in masks:
            kept = op.regions[0].terminator.operands
            mapping |= {r: mapping.get(v, v) for r, v in zip(op.results, kept, strict=True)}
            continue
        copy = op.clone(mapping)
        block.insert(copy)
        if isinstance(op, WgmmaOp):
            # The accumulator is kept, and the dot runs.
            set_operands(copy, copy.operands[:3])
    return block


def _move_scalars_before(dot: WgmmaOp) -> None:
    """Move the scalars of masks and slot counters before a dot."""
    following = _ops_from(dot)
    for op in following:
        needed = {v.op for v in op.operands}
        is_scalar = is_pure(op) and all(isinstance(v.type, DType) for v in op.results)
        if is_scalar and not op.regions and op.results and needed.isdisjoint(_ops_from(dot)):
            Rewriter.move_before(op, dot)


def _ops_from(first: Op) -> list[Op]:
    """The ops of a block from one on."""
    ops: list[Op] = []
    op: Op | None = first
    while op is not None:
        ops.append(op)
        op = op.next
    return ops


def _is_mask(op: IfOp, ops: Sequence[Op]) -> bool:
    """Whether a branch passes values through where its condition, which is computed before some
    ops, holds."""
    return len(list(op.regions[0])) == 1 and op.condition.op not in ops


def _is_in(value: Value, ops: Sequence[Op]) -> bool:
    return value.op in ops
