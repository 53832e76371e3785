"""Ops and loops around ops, and the values that flow into a value at loops and branches, as into a
phi of LLVM.

%r = cf.for ... %init (%i, %x) { ... cf.yield %y }        into %r and %x: %init, %y
%s = cf.if %c { cf.yield %a } { cf.yield %b }             into %s: %a, %b
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.ir import Block, Op, Value
from tilewright.ops.control import ForOp, IfOp, WhileOp


def ancestor_in(block: Block | None, op: Op) -> Op:
    """The op of a block that is or contains another one."""
    while op.parent is not block:
        assert op.parent is not None and isinstance(op.parent.owner, Op)
        op = op.parent.owner
    return op


def blocks_around(block: Block | None) -> Iterator[Block]:
    """A block, and the blocks that contain it, the innermost first."""
    while block is not None:
        yield block
        block = block.owner.parent if isinstance(block.owner, Op) else None


def loops_around(op: Op) -> Iterator[ForOp | WhileOp]:
    """The loops around an op, the innermost first."""
    owners = (block.owner for block in blocks_around(op.parent))
    return (owner for owner in owners if isinstance(owner, ForOp | WhileOp))


def incoming_values(value: Value) -> Sequence[Value]:
    """The values that a result of a loop or branch, or a carried value, takes; none for others."""
    owner = value.owner
    if isinstance(owner, IfOp):
        return [block.terminator.operands[value.index] for block in owner.regions]
    loop = owner.owner if isinstance(owner, Block) else owner
    if isinstance(loop, ForOp):
        slot = value.index - 1 if owner is loop.body else value.index  # argument 0 is the index
        return () if slot < 0 else (loop.inits[slot], loop.body.terminator.operands[slot])
    if not isinstance(loop, WhileOp):
        return ()
    if owner is loop.before:
        return (loop.inits[value.index], loop.body.terminator.operands[value.index])
    return (loop.before.terminator.operands[1 + value.index],)
