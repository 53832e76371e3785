"""Persistent loop over programs: copies of the next program overlap with stores of the last one.

    %i = cf.program_id {axis = 0}              %b, %n = nvidia.block ..., nvidia.blocks ...
    ...                                 ->     cf.for %p = %b, x * y * z of the grid, %n {
                                                 %i = %p mod x
                                                 ...
                                               }

Tiles that a program loads for dots before its own loops are then copied ahead, like the operands of
any other loop (software_pipeline.py).

The grid is that of the launch, which starts no more blocks than are resident at a time. Programs
run in the order in which the device would start them, the first axis fastest; where they take
different times, persistent_order.py has the order.

    cf.for %p = %b, ... {                      cf.for %p = %b, ... (%i = %b mod x) {
      %i = %p mod x                              ...
      ...                              ->        %j = (%p + %n) mod x
    }                                            cf.yield %j
                                               }

Where a program starts with tiles that were copied ahead, three dependent divisions would delay it:
they are computed for the next program while the last one is stored (`divide_ahead`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.role_ops import BlockOp, BlocksOp
from tilewright.backends.nvidia.schedule.persistent_order import Sweep, number_in_sweeps, row_groups
from tilewright.ir import Block, Builder, Function, Op, Rewriter, Value, is_pure
from tilewright.ir.types import DType, i32, u32
from tilewright.ops import (
    DescriptorLoadOp,
    DivOp,
    ForOp,
    NumProgramsOp,
    PrintOp,
    ProgramIdOp,
    RemOp,
    ReturnOp,
    WhileOp,
    YieldOp,
)
from tilewright.support.reachable import reachable
from tilewright.transforms import add_slot, backward_slice, yield_more

_AXES = range(3)

PROGRAM_STAGES = 2
"""Slots of the tiles that a program loads before its loops: one program ahead."""


def may_loop(function: Function) -> bool:
    """Whether a block may run programs in sequence: they do not wait for each other."""
    return not any(isinstance(op, WhileOp | PrintOp) for op in function.walk())


def are_equal(loads: Sequence[DescriptorLoadOp]) -> bool:
    """Whether the trip counts of the loops of loads are independent of the program id."""
    loops = [op for op in backward_slice(loads) if isinstance(op, ForOp)]
    bounds = [value.op for loop in loops for value in loop.operands[:3] if value.op is not None]
    return not any(isinstance(op, ProgramIdOp) for op in backward_slice(bounds))


def loop_over_programs(function: Function, sweep: Sweep | None = None) -> ForOp:
    """Wrap the body of a function. sweep: for programs of unequal length."""
    ops = [op for op in function.body if not isinstance(op, ReturnOp)]
    builder = Builder(function.body, function.body.first, function.loc)
    grid = [_unsigned(builder, NumProgramsOp(axis=axis)) for axis in _AXES]
    x, y, z = (_unsigned(builder, ProgramIdOp(axis=axis)) for axis in _AXES)
    program = (builder.expr(z) * grid[1] + y) * grid[0] + x
    programs = (builder.expr(grid[0]) * grid[1] * grid[2]).value
    block, blocks = builder.value(BlockOp(program.value)), builder.value(BlocksOp(programs))
    groups = None if sweep is None else row_groups(builder, grid, blocks, sweep)
    body = Block((u32,), ("program",))
    for op in ops:
        function.body.detach(op)
        body.insert(op)
    body.insert(YieldOp(()))
    start = Builder(body, body.first)
    if sweep is None or groups is None:
        places = _divided_out(start, body, grid)
    else:
        places = number_in_sweeps(start, body.args[0], grid, sweep, groups)
    _number_programs(start, body, places)
    loop = ForOp(block, programs, blocks, (), body, stages=PROGRAM_STAGES)
    return Builder.at(function.body.terminator).emit(loop)


def _unsigned(builder: Builder, op: Op) -> Value:
    return builder.cast(builder.value(op), u32)


def _divided_out(builder: Builder, body: Block, grid: Sequence[Value]) -> list[Value]:
    """The program ids of a linear index, for the axes in use."""
    rest, places = body.args[0], list[Value]()
    used = [op.axis for op in body.walk() if isinstance(op, ProgramIdOp)]
    for axis in range(max(used, default=-1) + 1):
        # The last axis has the quotient itself.
        is_last = axis == _AXES[-1]
        places.append(rest if is_last else builder.rem(rest, grid[axis]))
        rest = rest if is_last else builder.div(rest, grid[axis])
    return places


def _number_programs(builder: Builder, body: Block, places: Sequence[Value]) -> None:
    signed = [_signed(builder, place) for place in places]
    for op in [op for op in body.walk() if isinstance(op, ProgramIdOp)]:
        Rewriter.replace(op, signed[op.axis])


def _signed(builder: Builder, place: Value) -> Value:
    """A place as i32 that analysis proves non-negative (`is_place_in_grid`)."""
    if not isinstance(place.op, RemOp):
        place = builder.min(place, i32.max_int)
    return builder.cast(place, i32)


def divide_ahead(loop: ForOp) -> None:
    """Compute divisions that derive from the index of a program one program ahead: for the next one
    at the end of the loop, and for the first one before it."""
    own, needed = _varying(loop), _divided(loop)
    carried = [op for op in loop.body if op in own & needed and not needed >= set(_users(op))]
    end = loop.body.terminator
    start, tail = Builder.at(loop), Builder.at(end)
    first = dict(zip(loop.body.args, (loop.lower, *loop.inits), strict=True))
    following = tail.add(loop.index, loop.step)
    after = dict(zip(loop.body.args, (following, *end.operands), strict=True))
    for builder, mapping in ((start, first), (tail, after)):
        for op in [op for op in loop.body if op in needed]:
            builder.emit(op.clone(mapping))
    for op in carried:
        (result,) = op.results
        users = [user for user in _users(op) if user not in needed]
        (ahead,) = add_slot(loop, first[result], result.name)
        for user in users:
            Rewriter.replace_operand(user, result, ahead)
        yield_more(loop, after[result])


def _users(op: Op) -> list[Op]:
    return list(op.results[0].uses)


def _divided(loop: ForOp) -> set[Op]:
    """The divisions of scalars that derive from the index of a program, with their operands."""

    def sources(op: Op) -> list[Op]:
        makers = (value.op for value in op.operands)
        return [op for op in makers if op is not None and op.parent is loop.body]

    return set(reachable([op for op in _varying(loop) if isinstance(op, DivOp | RemOp)], sources))


def _varying(loop: ForOp) -> set[Op]:
    """The scalars of a body that derive from its index and from invariants alone."""
    varying, fixed = set[Op](), set[Op]()
    for op in loop.body:
        owners = {value.owner for value in op.operands} - fixed
        inside = {
            o for o in owners if o is loop.body or isinstance(o, Op) and o.parent is loop.body
        }
        if _is_scalar(op) and inside <= varying | {loop.body}:
            (varying if inside else fixed).add(op)
    return varying


def _is_scalar(op: Op) -> bool:
    return is_pure(op) and not op.regions and all(isinstance(v.type, DType) for v in op.results)
