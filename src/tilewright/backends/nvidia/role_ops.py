"""Warps of a program with roles of their own, and the programs that a block runs one by one.

    nvidia.roles {registers = [168, 40, 232]} (%group: u32) {    dots, stores
      ...
      cf.yield
    } {                                                          one thread more: asks for copies
      ...
      cf.yield
    }

The roles start together, behind what comes before the op, and share nothing but buffers and
mbarriers. A value of before is the same in both. There may be several groups of consumers, each
with the warps of a program, which take turns.

    %block = nvidia.block %program : u32           a block runs all programs from its number on,
    %blocks = nvidia.blocks %programs : u32        as many apart as there are blocks
    cf.for %p = %block, %programs, %blocks { ...

Blocks are no more than are resident at a time. As NumPy has it, each program has a block.

    %other = nvidia.neighbour %program : u32       of the other block of a cluster
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
"""A warpgroup, of which one thread works: registers are moved by warpgroups (`setmaxnreg`)."""


CLUSTER_BLOCKS = 2
"""Of a cluster whose blocks share copies: of four, no more than 30 fit on the 132 multiprocessors
of an H200."""


class RolesOp(Op, opcode="nvidia.roles", effects=(Effect.SHARED,)):
    """consumers(0), consumers(1) ... and producer(), at the same time; ends when all have ended

    groups: of consumers; registers: of each thread at the start of the kernel, then of the
    producer's warpgroup, and of the consumers; shares_copies: blocks are clusters of two.
    """

    consumers: Block = region()
    producer: Block = region()
    registers: tuple[int, ...] = attr()
    groups: int = attr(default=1)
    shares_copies: bool = attr(default=False)

    def infer(self) -> None:
        return None

    def verify(self) -> str | None:
        roles = ("`consumers`", self.consumers, (u32,)), ("`producer`", self.producer, ())
        for what, block, args in roles:
            message = wrong_args(what, block, args) or wrong_end(what, block, "cf.yield", ())
            if message is not None:
                return message
        return None


class BlockOp(Op, opcode="nvidia.block", traits=(Trait.PURE,)):
    """result = the number of this block; `program`: of all programs in a row, were there blocks as
    many"""

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
    """result = how many blocks there are; at most `programs`, and one more where they are pairs"""

    programs: Value = operand(scalar_integer)

    def infer(self) -> Type:
        return self.programs.type


def is_over_programs(loop: ForOp) -> bool:
    """Whether a loop goes from program to program of a block, all or those of a group. Blocks are
    so few that its index does not wrap."""
    return any(isinstance(factor.op, BlocksOp) for factor in affine.of(loop.step).factors())


@reference(BlockOp)
def block(op: BlockOp, program: Any) -> Any:
    """Each program has its own."""
    return program


@reference(NeighbourOp)
def neighbour(op: NeighbourOp, program: Any) -> Any:
    """Each block is alone."""
    return program


@reference(BlocksOp)
def blocks(op: BlocksOp, programs: Any) -> Any:
    """As many as there are programs."""
    return programs


@region_rule(RolesOp)
def roles(op: RolesOp, run: Callable[..., object]) -> tuple[()]:
    """The producer in a thread of its own: each waits for the other at barriers. Groups come one
    after the other: each block runs one program."""
    with ThreadPoolExecutor(1) as pool:
        produced = pool.submit(run, op.producer)
        for group in range(op.groups):
            run(op.consumers, np.array(group, np.uint32))
        produced.result()
    return ()
