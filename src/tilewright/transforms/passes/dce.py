"""Dead-code elimination (`dce`): remove ops on which no effect depends.

    %a, %n = cf.for ... %x, %y (%i, %b, %m) {          %a = cf.for ... %x (%i, %b) {
      %m2 = arith.add %m, %one                  ->       ...
      ...                                                cf.yield %b2
      cf.yield %b2, %m2                                }
    }                     %n is not used

Marks ops with effects and, from there, all that they need, slot by slot of loops and branches: a
carried value that only computes itself is not needed. Unmarked ops are removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from tilewright.ir import Block, Function, Op, Pass, Rewriter, Trait, Value, removable
from tilewright.ops import WhileOp
from tilewright.transforms.region_slots import (
    Structured,
    feeding,
    first_init,
    is_structured,
    remove_slots,
    slot_of,
)


class Dce(Pass, name="dce"):
    """Remove ops, carried values and results of branches that nothing needs."""

    def run(self, function: Function) -> bool:
        return remove_dead(function)


def remove_dead(function: Function) -> bool:
    """Remove the ops and slots that nothing needs; whether there were any. A pass that leaves
    values without uses calls it, so that no later pass sees them."""
    return keep_slice(function.body, [op for op in function.walk() if is_root(op)])


def backward_slice(roots: Iterable[Op]) -> set[Op]:
    """The backward slice of some ops, with the loops and branches around them."""
    return _Needed.of(roots).ops


def keep_slice(block: Block, roots: Iterable[Op]) -> bool:
    """Reduce a block to the slice of some of its ops; whether anything was removed."""
    ops, needed = list(block.walk()), _Needed.of(roots)
    # terminators are removed with their blocks; `shrink` removes their dead operands
    dead = [op for op in ops if op not in needed.ops and Trait.TERMINATOR not in op.traits]
    # Users before definitions, so that nothing is erased that is still used.
    for op in reversed(dead):
        if op.parent is not None:
            Rewriter.drop(op)
    # An inner slot may be the last use of an outer one.
    inner_first = [op for op in reversed(ops) if op in needed.ops and is_structured(op)]
    shrunk = [needed.shrink(op) for op in inner_first]
    return bool(dead) or any(shrunk)


def is_root(op: Op) -> bool:
    """Whether an op has effects; a loop or branch only if it may run for ever."""
    if Trait.TERMINATOR in op.traits:
        return isinstance(op.parent, Block) and isinstance(op.parent.owner, Function)
    if is_structured(op):
        # A `cf.while` may never end, and then nothing after it may run; a `cf.for` always ends.
        return isinstance(op, WhileOp)
    return not removable(op)


class _Needed:
    """Needed ops and slots, and the worklist of values."""

    __slots__ = ("ops", "pending", "slots")

    def __init__(self) -> None:
        self.ops: set[Op] = set()
        self.slots: set[tuple[Structured, int]] = set()
        self.pending: list[Value] = []

    @classmethod
    def of(cls, roots: Iterable[Op]) -> Self:
        """The needed ops and slots, starting from some ops."""
        needed = cls()
        for op in roots:
            needed.add_op(op)
        needed.close()
        return needed

    def add_op(self, op: Op | None) -> None:
        """Mark an op and the ops around it."""
        while op is not None and op not in self.ops:
            self.ops.add(op)
            self._add_uses(op)
            owner = op.parent.owner if op.parent is not None else None
            op = owner if isinstance(owner, Op) else None

    def _add_uses(self, op: Op) -> None:
        """Follow the operands of a needed op; those of slots once the slot is needed."""
        if isinstance(op, WhileOp):
            self.pending.append(op.before.terminator.operands[0])
        elif is_structured(op):
            self.pending += op.operands[: first_init(op)]
        else:
            self.pending += op.operands
            for inner in op.walk() if op.regions else ():
                self.ops.add(inner)
                self.pending += inner.operands

    def close(self) -> None:
        """Follow all values to what they need."""
        while self.pending:
            value = self.pending.pop()
            slot = slot_of(value)
            if slot is not None and slot not in self.slots:
                self.slots.add(slot)
                self.pending += feeding(*slot)
            owner = value.owner.owner if isinstance(value.owner, Block) else value.owner
            if isinstance(owner, Op):
                self.add_op(owner)

    def shrink(self, op: Structured) -> bool:
        """Remove the slots of a needed op that are not needed."""
        dead = [k for k in range(len(op.results)) if (op, k) not in self.slots]
        if dead:
            remove_slots(op, dead)
        return bool(dead)
