"""The slots of structured ops: the values that a loop carries, or that a branch chooses.

Slot k of a `cf.for` is its initial value k, argument k + 1 of the body, the yielded value k and
result k; a `cf.while` has it in both blocks; a `cf.if` in the values that its blocks yield. These
functions add and remove slots in all places at once. They change ops in place, so that remaining
results keep their identity.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeGuard, TypeVar

from tilewright.ir import Block, Op, Value
from tilewright.ops import ForOp, IfOp, WhileOp

T = TypeVar("T")
Loop = ForOp | WhileOp
Structured = ForOp | WhileOp | IfOp
_STRUCTURED = (ForOp, WhileOp, IfOp)


def is_structured(op: object) -> TypeGuard[Structured]:
    """Whether an op has slots."""
    return isinstance(op, _STRUCTURED)


def first_init(op: Structured) -> int:
    """The number of operands before the initial values."""
    # the bounds and the step of a `cf.for`; the condition of a `cf.if`
    return 3 if isinstance(op, ForOp) else 1 if isinstance(op, IfOp) else 0


def views(loop: Loop, slot: int) -> list[Value]:
    """The arguments of a loop's blocks for a carried value, the body's last."""
    if isinstance(loop, ForOp):
        return [loop.body.args[slot + 1]]
    return [loop.before.args[slot], loop.body.args[slot]]


def yielded(loop: Loop, slot: int) -> Value:
    """The yielded values of the body."""
    return loop.body.terminator.operands[slot]


def passes_through(loop: Loop, slot: int) -> bool:
    """Whether the value reaches the body unchanged; the first block of a `while` may change it."""
    if isinstance(loop, ForOp):
        return True
    return loop.before.terminator.operands[slot + 1] is loop.before.args[slot]


def feeding(op: Structured, slot: int) -> list[Value]:
    """The values that flow into a slot."""
    if isinstance(op, IfOp):
        return [block.terminator.operands[slot] for block in op.regions]
    values = [op.inits[slot], yielded(op, slot)]
    if isinstance(op, WhileOp):
        values.append(op.before.terminator.operands[slot + 1])
    return values


def slot_of(value: Value) -> tuple[Structured, int] | None:
    """The op and slot that a value belongs to; None for a loop index and for all other values."""
    owner = value.owner
    if isinstance(owner, Block):
        op = owner.owner
        if isinstance(op, ForOp):
            return (op, value.index - 1) if value.index else None
        return (op, value.index) if isinstance(op, WhileOp) else None
    return (owner, value.index) if is_structured(owner) else None


def set_operands(op: Op, operands: Sequence[Value]) -> None:
    """Replace the operands of an op in a block; their number may change."""
    block, following = op.parent, op.next
    assert block is not None
    # detached and inserted again, which updates the use lists of old and new operands
    block.detach(op)
    op.operands = list(operands)
    block.insert(op, following)


def add_slot(loop: Loop, init: Value, name: str) -> list[Value]:
    """Carry one more value; returns its views. `yield_more` must follow."""
    set_operands(loop, (*loop.operands, init))
    added = [block.add_arg(init.type, name) for block in loop.regions]
    if isinstance(loop, WhileOp):
        end = loop.before.terminator
        set_operands(end, (*end.operands, added[0]))
    loop.results = (*loop.results, Value(init.type, loop, len(loop.results), name))
    return added


def yield_more(loop: Loop, value: Value) -> None:
    """Yield a value for the slot that `add_slot` added."""
    end = loop.body.terminator
    set_operands(end, (*end.operands, value))


def add_choice(branch: IfOp, values: Sequence[Value], name: str = "") -> Value:
    """Add a result to a branch; returns it. values: yielded by its blocks."""
    for block, value in zip(branch.regions, values, strict=True):
        set_operands(block.terminator, (*block.terminator.operands, value))
    type_ = values[0].type
    branch.attrs["result_types"] = (*branch.result_types, type_)
    branch.results = (*branch.results, Value(type_, branch, len(branch.results), name))
    return branch.results[-1]


def remove_slots(op: Structured, slots: Collection[int]) -> None:
    """Remove slots whose results and views have no uses but those in the slots themselves."""
    if isinstance(op, IfOp):
        op.attrs["result_types"] = tuple(_without(op.result_types, slots, 0))
    else:
        set_operands(op, _without(op.operands, slots, first_init(op)))
    for block in op.regions:
        end = block.terminator
        # operand 0 of `cf.condition` is the condition itself
        set_operands(end, _without(end.operands, slots, int(end.opcode == "cf.condition")))
    for block in op.regions:
        # arguments before the slots: the index of a `cf.for`
        before = len(block.args) - len(op.results)
        # From the last, since removing one renumbers those after it.
        for slot in sorted(slots, reverse=True) if block.args else ():
            block.remove_arg(slot + before)
    op.results = tuple(_without(op.results, slots, 0))
    # Remaining results keep their identity and are renumbered.
    for index, result in enumerate(op.results):
        result.index = index


def _without(items: Sequence[T], slots: Collection[int], start: int) -> list[T]:
    return [item for i, item in enumerate(items) if i - start not in slots]
