"""A loop over programs in each block, so that the next one's copies are on their way while the last
one is stored.

    %i = cf.program_id {axis = 0}              %b, %n = nvidia.block ..., nvidia.blocks ...
    ...                                 ->     cf.for %p = %b, x * y * z of the grid, %n {
                                                 %i = %p mod x
                                                 ...
                                               }

What a program loads for its products before its own loops is then copied ahead, like the operands
of any other loop (software_pipeline.py).

The grid is that of the launch, which starts no more blocks than are resident at a time. Programs
come in the order in which the device would start them, the first axis fastest.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.role_ops import BlockOp, BlocksOp
from tilewright.ir import Block, Builder, Function, Op, Rewriter, Value
from tilewright.ir.types import i32, u32
from tilewright.ops import (
    AddOp,
    CastOp,
    DescriptorLoadOp,
    DivOp,
    ForOp,
    MulOp,
    NumProgramsOp,
    PrintOp,
    ProgramIdOp,
    RemOp,
    ReturnOp,
    WhileOp,
    YieldOp,
)
from tilewright.transforms import backward_slice

_AXES = range(3)

_STAGES = 2
"""Of what a program loads before its loops: one ahead."""


def may_loop(function: Function, loads: Sequence[DescriptorLoadOp], are_equal: bool = True) -> bool:
    """Whether a block may run programs one after the other.

    Not where programs may wait for each other, nor, with are_equal, where the number of a program
    decides how long its loops run: then the device spreads programs better, if they are long.
    """
    if any(isinstance(op, WhileOp | PrintOp) for op in function.walk()):
        return False
    if not are_equal:
        return True
    loops = [op for op in backward_slice(loads) if isinstance(op, ForOp)]
    bounds = [value.op for loop in loops for value in loop.operands[:3] if value.op is not None]
    return not any(isinstance(op, ProgramIdOp) for op in backward_slice(bounds))


def loop_over_programs(function: Function) -> None:
    """Wrap the body of a function."""
    ops = [op for op in function.body if not isinstance(op, ReturnOp)]
    builder = Builder(function.body, function.body.first, function.loc)
    grid = [_unsigned(builder, NumProgramsOp(axis=axis)) for axis in _AXES]
    x, y, z = (_unsigned(builder, ProgramIdOp(axis=axis)) for axis in _AXES)
    # (z * Y + y) * X + x, of X * Y * Z
    rows = builder.value(AddOp(builder.value(MulOp(z, grid[1])), y))
    program = builder.value(AddOp(builder.value(MulOp(rows, grid[0])), x))
    area = builder.value(MulOp(grid[0], grid[1]))
    programs = builder.value(MulOp(area, grid[2]))
    block, blocks = builder.value(BlockOp(program)), builder.value(BlocksOp(programs))
    body = Block((u32,), ("program",))
    for op in ops:
        function.body.detach(op)
        body.insert(op)
    body.insert(YieldOp(()))
    _number_programs(body, grid)
    Builder.at(function.body.terminator).emit(
        ForOp(block, programs, blocks, (), body, stages=_STAGES)
    )


def _unsigned(builder: Builder, op: Op) -> Value:
    return builder.value(CastOp(builder.value(op), u32))


def _number_programs(body: Block, grid: Sequence[Value]) -> None:
    """The place of the loop's program in the grid; divided out for the axes that are used."""
    used = [op for op in body.walk() if isinstance(op, ProgramIdOp)]
    builder, rest = Builder(body, body.first), body.args[0]
    places: list[Value] = []
    for axis in range(max((op.axis for op in used), default=-1) + 1):
        number = builder.value(RemOp(rest, grid[axis]))
        rest = builder.value(DivOp(rest, grid[axis]))
        places.append(builder.value(CastOp(number, i32)))
    for op in used:
        Rewriter.replace(op, places[op.axis])
