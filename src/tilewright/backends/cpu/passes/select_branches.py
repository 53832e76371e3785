"""Computes both sides of a branch that yields tiles, where they compute little.

    %y = cf.if %c : tile<64xf32> () {
      cf.yield %x
    } () {
      %z = arith.add %x, %w : tile<64xf32>
      cf.yield %z
    }
becomes
    %z = arith.add %x, %w : tile<64xf32>
    %cs = tile.splat %c {shape = [64]} : tile<64xi1>
    %y = arith.select %cs, %x, %z : tile<64xf32>

A branch ends loop nests: the tiles that it reads and yields are in buffers. Without the branch, a
sum over a loop that starts with its first element (Inductor's means and variances) is one nest
instead of three.
"""

from __future__ import annotations

from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Trait, Value
from tilewright.ir.types import TileType, dtype_of, shape_of
from tilewright.ops import ConstantOp, DivOp, IfOp, MathOp, RemOp, YieldOp

_OPS_OF_A_BUFFER = 4
"""Ops of both sides for each result that cost as much as a buffer written and read twice."""


class SelectBranches(Pass, name="cpu-select-branches"):
    """Replace branches by selections."""

    def run(self, function: Function) -> bool:
        branches = [op for op in function.walk() if isinstance(op, IfOp) and _pays(op)]
        for op in branches:
            builder = Builder.at(op)
            sides = [Rewriter.inline_block(block, (), builder) for block in (op.then, op.orelse)]
            results = [_selected(builder, op.condition, *pair) for pair in zip(*sides, strict=True)]
            Rewriter.replace(op, results)
        return bool(branches)


def _pays(branch: IfOp) -> bool:
    tiles = [value for value in branch.results if isinstance(value.type, TileType)]
    costs = [_cost(block) for block in (branch.then, branch.orelse)]
    return bool(tiles) and sum(costs) <= _OPS_OF_A_BUFFER * len(tiles)


def _cost(block: Block) -> float:
    """Number of ops that compute; infinite where one is not speculatable or takes long."""
    ops = [op for op in block if not isinstance(op, ConstantOp | YieldOp)]
    return len(ops) if all(map(_is_speculatable, ops)) else float("inf")


def _is_speculatable(op: Op) -> bool:
    """Whether an op is a function of elements that cannot trap, as quotients of integers may."""
    plain = {Trait.PURE, Trait.ELEMENTWISE} <= set(op.traits) and not op.regions
    traps = isinstance(op, DivOp | RemOp) and not dtype_of(op.results[0].type).is_float
    return plain and not traps and not isinstance(op, MathOp)


def _selected(builder: Builder, condition: Value, x: Value, y: Value) -> Value:
    if isinstance(x.type, TileType):
        condition = builder.splat(condition, shape_of(x.type))
    return builder.select(condition, x, y)
