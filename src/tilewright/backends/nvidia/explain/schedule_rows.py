"""Modelled schedules of pipelined loops: copies, waits and dots of an iteration, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tilewright.backends.explanation import ScheduledOp, ScheduleRow
from tilewright.backends.nvidia.buffer_ops import (
    AsyncCopyOp,
    WaitOp,
    WgmmaOp,
    alloc_of,
    buffer_type,
)
from tilewright.backends.nvidia.bulk_ops import BulkCopyOp, MbarrierWaitOp
from tilewright.backends.nvidia.role_ops import RolesOp
from tilewright.ir import Function, Op
from tilewright.ops import DotOp, ForOp


def schedule_rows(function: Function) -> tuple[ScheduleRow, ...]:
    """The loops with copies ahead; the loop of a producer warp together with that of its
    consumers."""
    roles = next((op for op in function.walk() if isinstance(op, RolesOp)), None)
    if roles is not None:
        return tuple(_of_roles(roles))
    loops = [op for op in function.walk() if isinstance(op, ForOp)]
    rows = [_row(loop, [*_ops(loop)], "the threads that compute") for loop in loops]
    return tuple(dict.fromkeys(row for row in rows if row is not None))


def _of_roles(roles: RolesOp) -> Iterator[ScheduleRow]:
    """Loops of the producer, each with the consumers' loop of the same line."""
    inside = (inner for op in roles.consumers for inner in op.walk())
    consumers = [loop for loop in inside if isinstance(loop, ForOp)]
    for op in roles.producer.walk():
        if isinstance(op, ForOp):
            dots = next((ops for c in consumers if c.loc == op.loc and (ops := [*_ops(c)])), None)
            ops = [*_waiting(_ops(op), _EMPTY), *_waiting(dots or (), _FULL)]
            row = _row(op, ops, "a producer warp")
            if row is not None:
                yield row


_EMPTY, _FULL = "producer waits for an empty slot", "wait for a full slot"


def _waiting(ops: Iterable[ScheduledOp], text: str) -> Iterator[ScheduledOp]:
    """The ops of a role, whose waits are for one kind of mbarrier."""
    return (replace(op, text=text) if op.kind == "wait" else op for op in ops)


def _row(loop: ForOp, ops: list[ScheduledOp], issuer: str) -> ScheduleRow | None:
    ahead = [op.ahead for op in ops if op.kind == "copy"]
    if not ahead:
        return None
    return ScheduleRow(_line(loop), issuer, max(ahead) + 1, tuple(dict.fromkeys(ops)))


def _ops(loop: ForOp) -> Iterator[ScheduledOp]:
    """The scheduled ops of a loop's own body, also in branches, not in loops inside."""
    stack = [iter(loop.body)]
    while stack:
        op = next(stack[-1], None)
        if op is None:
            stack.pop()
            continue
        yield from _scheduled(op)
        if not isinstance(op, ForOp):
            stack += [iter(region) for region in reversed(op.regions)]


def _scheduled(op: Op) -> Iterator[ScheduledOp]:
    if isinstance(op, AsyncCopyOp | BulkCopyOp):
        buffer = op.buffer if isinstance(op, AsyncCopyOp) else op.target
        slots = buffer_type(alloc_of(buffer).results[0]).slots
        how = "cp.async" if isinstance(op, AsyncCopyOp) else "TMA"
        line = _line(op.x.op) if op.x.op is not None else _line(op)
        yield ScheduledOp("copy", line, f"{how} copy", ahead=slots - 1)
    elif isinstance(op, WaitOp):
        yield ScheduledOp("wait", _line(op), "wait for copies", pending=op.pending)
    elif isinstance(op, MbarrierWaitOp):
        yield ScheduledOp("wait", _line(op), "wait for an mbarrier")
    elif isinstance(op, WgmmaOp):
        yield ScheduledOp("dot", _line(op), "wgmma", pending=op.pending)
    elif isinstance(op, DotOp):
        yield ScheduledOp("dot", _line(op), "mma")


def _line(op: Op) -> int | None:
    return None if op.loc is None else op.loc.outermost.line
