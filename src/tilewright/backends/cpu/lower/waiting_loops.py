"""Loops in which a program waits for another one, and kernels whose programs wait for all.

    while tl.atomic_add(flag, 0) == 0:      a spin loop: it polls memory and stores nothing
        pass

A spin loop ends its program where the pool has set `*poll` to LEAVE or more, which it does once no
program has made progress for long (`driver/thread_pool_signals.h`); it then stores its number
there. So every wait ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.backends.cpu.program_waits import ALL_AT_ONCE, IN_ORDER, MANY_AT_ONCE
from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    ConstantOp,
    DotOp,
    ForOp,
    LoadOp,
    NumProgramsOp,
    ProgramIdOp,
    SplatOp,
    StoreOp,
    WhileOp,
)

_NO_READS = frozenset({"max", "min", "and", "xchg", "store"})
_EVERY_AXIS = frozenset({0, 1, 2})


def spin_loops(function: Function) -> list[WhileOp]:
    """The loops that wait, in the order of their numbers."""
    # The checks of an instrumented kernel record each access.
    checked = "checks" in function.attrs
    loops = [op for op in function.walk() if isinstance(op, WhileOp)]
    polling = [loop for loop in loops if any(map(_polls_by, loop.walk()))]
    return [loop for loop in polling if checked or _only_polls(loop)]


def run_together(function: Function) -> int:
    """The mode of programs that may wait until others have reached some point, as the barriers of
    cooperative reductions do: IN_ORDER, MANY_AT_ONCE or ALL_AT_ONCE.

    They do if programs poll one element that they do not store themselves. Where each polls an
    element of its own, as look-back scans do, they wait for those before them, and each thread
    takes programs in order.
    """
    ops = list(function.walk())
    used = frozenset(op.axis for op in ops if isinstance(op, ProgramIdOp)) | {0}
    counted = any(isinstance(op, NumProgramsOp) for op in ops)
    polls = [op for loop in spin_loops(function) for op in loop.walk() if _polls_by(op)]
    shared = [op for op in polls if not used <= _axes(op.operands[0])]
    if any(map(_only_reads, shared)):
        # Without their number, programs wait for an earlier one, or for as many as the kernel's
        # source says.
        return ALL_AT_ONCE if counted else MANY_AT_ONCE
    # Locks need nothing: the holder of one is running.
    return MANY_AT_ONCE if shared and counted else IN_ORDER


def _polls_by(op: Op) -> bool:
    return isinstance(op, AtomicOp | AtomicCasOp) or (isinstance(op, LoadOp) and op.volatile)


def _only_polls(loop: WhileOp) -> bool:
    """Whether a loop does no work: it has no stores, loads of data, or loops inside."""
    inner = (op for op in loop.walk() if op is not loop)
    return not any(
        isinstance(op, StoreOp | DotOp | ForOp | WhileOp)
        or (isinstance(op, LoadOp) and not op.volatile)
        for op in inner
    )


def _only_reads(op: Op) -> bool:
    """Whether an op reads memory without writing it."""
    if isinstance(op, AtomicCasOp):
        return op.expected is op.new or _same_constant(op.expected, op.new)
    if isinstance(op, AtomicOp):
        return op.kind == "load" or (op.kind not in _NO_READS and _constant(op.operand) == 0)
    return isinstance(op, LoadOp) and op.volatile


def _same_constant(x: Value, y: Value) -> bool:
    return _constant(x) is not None and _constant(x) == _constant(y)


def _constant(value: Value) -> object:
    op = value.op
    while isinstance(op, SplatOp):
        op = op.x.op
    return op.value if isinstance(op, ConstantOp) else None


def _axes(address: Value) -> frozenset[int]:
    """The axes of the grid along which programs may have different addresses."""
    found, seen, stack = frozenset[int](), set[Value](), [address]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.op
        if isinstance(op, ProgramIdOp):
            found |= {op.axis}
        elif op is not None and Trait.PURE not in op.traits and not op.regions:
            return _EVERY_AXIS  # a loaded value, such as a ticket, may be any number
        else:
            stack += _sources(value)
    return found


def _sources(value: Value) -> Iterator[Value]:
    """The values that a value is computed from; for loops and branches, all that they depend on."""
    op = value.op
    if op is None:
        block = value.owner
        owner = block.owner if isinstance(block, Block) else None
        if isinstance(owner, Op):
            yield from _of_region_op(owner)
        return
    yield from op.operands
    if op.regions:
        yield from _of_region_op(op)


def _of_region_op(op: Op) -> Iterator[Value]:
    yield from op.operands
    for region in op.regions:
        yield from region.terminator.operands
