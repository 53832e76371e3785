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
come in the order in which the device would start them, the first axis fastest. Where their number
says how long they take, each round of programs begins at another block: else the same blocks might
get the longest ones of all rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.role_ops import BlockOp, BlocksOp
from tilewright.ir import Block, Builder, Function, Op, Rewriter, Value
from tilewright.ir.types import i32, u32
from tilewright.ops import (
    AddOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DescriptorLoadOp,
    DivOp,
    ForOp,
    MulOp,
    NumProgramsOp,
    PrintOp,
    ProgramIdOp,
    RemOp,
    ReturnOp,
    SelectOp,
    SubOp,
    WhileOp,
    YieldOp,
)
from tilewright.transforms import backward_slice

_AXES = range(3)

PROGRAM_STAGES = 2
"""Of what a program loads before its loops: one ahead."""


_ROTATION = 20
"""Blocks by which a round begins later than the one before: with causal attention of 1024 to 16384
keys, 132 or 264 blocks, the longest sum is within 1 % of what a common counter would give; without
up to 6 %, or 15 % where heads come in groups."""


def may_loop(function: Function) -> bool:
    """Whether a block may run programs one after the other: they do not wait for each other."""
    return not any(isinstance(op, WhileOp | PrintOp) for op in function.walk())


def are_equal(loads: Sequence[DescriptorLoadOp]) -> bool:
    """Whether no number of a program decides how long the loops of loads run."""
    loops = [op for op in backward_slice(loads) if isinstance(op, ForOp)]
    bounds = [value.op for loop in loops for value in loop.operands[:3] if value.op is not None]
    return not any(isinstance(op, ProgramIdOp) for op in backward_slice(bounds))


def loop_over_programs(function: Function, rotates: bool) -> None:
    """Wrap the body of a function. rotates: rounds begin at different blocks."""
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
    start = Builder(body, body.first)
    chosen = body.args[0]
    if rotates:
        chosen = _rotated(start, body.args[0], block, blocks, programs)
    _number_programs(start, body, chosen, grid)
    Builder.at(function.body.terminator).emit(
        ForOp(block, programs, blocks, (), body, stages=PROGRAM_STAGES)
    )


def _unsigned(builder: Builder, op: Op) -> Value:
    return builder.value(CastOp(builder.value(op), u32))


def _rotated(builder: Builder, turn: Value, block: Value, blocks: Value, programs: Value) -> Value:
    """The program of a turn (block + round * blocks): that of another block in the same round,
    other than in the last one, which may not be full."""
    first = builder.value(SubOp(turn, block))
    number = builder.value(DivOp(first, blocks))
    moved = builder.value(MulOp(number, builder.value(ConstantOp(_ROTATION, u32))))
    place = builder.value(RemOp(builder.value(AddOp(block, moved)), blocks))
    end = builder.value(AddOp(first, blocks))
    is_full = builder.value(CompareOp(end, programs, predicate="le"))
    rotated = builder.value(AddOp(first, place))
    return builder.value(SelectOp(is_full, rotated, turn))


def _number_programs(builder: Builder, body: Block, rest: Value, grid: Sequence[Value]) -> None:
    """The place of a program in the grid; divided out for the axes that are used."""
    used = [op for op in body.walk() if isinstance(op, ProgramIdOp)]
    places: list[Value] = []
    for axis in range(max((op.axis for op in used), default=-1) + 1):
        number = builder.value(RemOp(rest, grid[axis]))
        rest = builder.value(DivOp(rest, grid[axis]))
        places.append(builder.value(CastOp(number, i32)))
    for op in used:
        Rewriter.replace(op, places[op.axis])
