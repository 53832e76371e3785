"""Roles of warps, and the programs that a block runs in sequence.

    nvidia.roles {registers = [168, 40, 232]} (%group: u32) {    dots, stores
      ...
      cf.yield
    } {                                                          one more thread: issues TMA loads
      ...
      cf.yield
    }

The roles start together, after the code before the op, and share only buffers and mbarriers. Values
from before are equal in both. There may be several groups of consumers, each with the warps of a
program, in a ping-pong schedule.

    %block = nvidia.block %program : u32           a block runs programs from its index on,
    %blocks = nvidia.blocks %programs : u32        in steps of the number of blocks
    cf.for %p = %block, %programs, %blocks { ...

There are no more blocks than are resident at a time. In NumPy rules each program has a block.

    %other = nvidia.neighbour %program : u32       the program of the other block of a cluster
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tilewright.analysis import affine
from tilewright.ir import (
    Block,
    Effect,
    Op,
    Trait,
    Value,
    attr,
    operand,
    reference,
    region,
    region_rule,
    scalar_integer,
)
from tilewright.ir.types import Type, u32
from tilewright.ops import ForOp, wrong_args, wrong_end

PRODUCER_WARPS = 4
"""A warpgroup, of which one thread works: `setmaxnreg` moves registers by warpgroups."""


CLUSTER_BLOCKS = 2
"""Blocks of a cluster that share loads: clusters of four would leave multiprocessors idle
(ADR 0046)."""


class RolesOp(Op, opcode="nvidia.roles", effects=(Effect.SHARED,)):
    """consumers(0), consumers(1) ... and producer(), concurrently; completes when all have

    groups: of consumers; registers: of each thread at the start of the kernel, then of the
    producer's warpgroup, and of the consumers; shares_copies: blocks are clusters of two.
    """

    consumers: Block = region()
    producer: Block = region()
    registers: tuple[int, ...] = attr()
    groups: int = attr(default=1)
    shares_copies: bool = attr(default=False)

    def verify(self) -> str | None:
        roles = ("`consumers`", self.consumers, (u32,)), ("`producer`", self.producer, ())
        for what, block, args in roles:
            message = wrong_args(what, block, args) or wrong_end(what, block, "cf.yield", ())
            if message is not None:
                return message
        return None


class BlockOp(Op, opcode="nvidia.block", traits=(Trait.PURE,)):
    """result = the index of this block; `program`: its linear program id, if there were as many
    blocks as programs"""

    program: Value = operand(scalar_integer)

    def infer(self) -> Type:
        return self.program.type


class NeighbourOp(Op, opcode="nvidia.neighbour", traits=(Trait.PURE,)):
    """result = the program that the other block of a cluster of two runs at the same time, if there
    are so many; `program` where blocks are no cluster"""

    program: Value = operand(scalar_integer)

    def infer(self) -> Type:
        return self.program.type


class BlocksOp(Op, opcode="nvidia.blocks", traits=(Trait.PURE,)):
    """result = the number of blocks; at most `programs`, and one more where they are pairs"""

    programs: Value = operand(scalar_integer)

    def infer(self) -> Type:
        return self.programs.type


def is_over_programs(loop: ForOp) -> bool:
    """Whether a loop is over programs of a block, all or those of a group. There are so few blocks
    that its index does not wrap."""
    return any(isinstance(factor.op, BlocksOp) for factor in affine.of(loop.step).factors())


@reference(BlockOp, NeighbourOp, BlocksOp)
def block(op: BlockOp | NeighbourOp | BlocksOp, program: Any) -> Any:
    """Each program has a block of its own, alone."""
    return program


@region_rule(RolesOp)
def roles(op: RolesOp, run: Callable[..., object]) -> tuple[()]:
    """The producer runs in its own thread: each waits for the other at barriers. Groups run in
    sequence: each block runs one program."""
    with ThreadPoolExecutor(1) as pool:
        produced = pool.submit(run, op.producer)
        for group in range(op.groups):
            run(op.consumers, np.array(group, np.uint32))
        produced.result()
    return ()
