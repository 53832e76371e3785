"""Builder and Rewriter: the only ways to change IR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from tilewright.ir.arith_builder import ArithmeticBuilder
from tilewright.ir.core import Block, Op, Value
from tilewright.ir.op_definition import Trait
from tilewright.support.diagnostics import SourceLoc
from tilewright.support.fresh_stack import nested

OpT = TypeVar("OpT", bound=Op)


class Emitter(ArithmeticBuilder):
    """Destination of ops: a Builder inserts them, the interpreter evaluates them at once."""

    __slots__ = ()

    loc: SourceLoc | None

    def emit(self, op: OpT) -> OpT:
        """Insert or evaluate a detached op; its results are valid afterwards."""
        raise NotImplementedError

    def value(self, op: Op) -> Value:
        return self.emit(op).result

    def known(self, value: Value) -> int | float | None:
        """The number of a scalar that is a constant, or evaluated; otherwise None."""
        raise NotImplementedError


class Builder(Emitter):
    """Insertion of ops at a point of a block, each with the current source location."""

    __slots__ = ("before", "block", "loc")

    def __init__(
        self, block: Block, before: Op | None = None, loc: SourceLoc | None = None
    ) -> None:
        self.block = block
        self.before = before
        self.loc = loc

    @classmethod
    def at(cls, op: Op) -> Builder:
        """A builder that inserts before `op`, with its location."""
        assert op.parent is not None
        return cls(op.parent, op, op.loc)

    @classmethod
    def after(cls, op: Op) -> Builder:
        assert op.parent is not None
        return cls(op.parent, op.next, op.loc)

    def emit(self, op: OpT) -> OpT:
        if op.loc is None:
            op.loc = self.loc
        self.block.insert(op, self.before)
        return op

    def known(self, value: Value) -> int | float | None:
        op = value.op
        return None if op is None or Trait.CONSTANT not in op.traits else op.attrs["value"]


class Rewriter:
    """Replacement and removal of ops, with their use lists."""

    __slots__ = ()

    @staticmethod
    def replace_uses(old: Value, new: Value) -> None:
        """Replace all uses of `old` by `new`, which inherits its name if it has none."""
        assert old is not new
        # A copy, since `set_operand` changes the uses.
        for op in list(old.uses):
            Rewriter.replace_operand(op, old, new)
        if not new.name:
            new.name = old.name

    @staticmethod
    def replace_operand(op: Op, old: Value, new: Value) -> None:
        """Replace `old` by `new` in the operands of one op."""
        for index, value in enumerate(op.operands):
            if value is old:
                op.set_operand(index, new)

    @classmethod
    def replace(cls, op: Op, values: Value | Sequence[Value]) -> None:
        """Replace the results of `op` and erase it."""
        new = (values,) if isinstance(values, Value) else values
        for result, value in zip(op.results, new, strict=True):
            if result is not value:
                cls.replace_uses(result, value)
        cls.erase(op)

    @classmethod
    def erase(cls, op: Op) -> None:
        """Remove an op whose results are unused, with everything in its regions."""
        assert all(not result.uses for result in op.results), f"{op.opcode} is still used"
        assert op.parent is not None
        op.parent.detach(op)
        for block in op.regions:
            for inner in reversed(block):
                cls.drop(inner)

    @classmethod
    @nested
    def drop(cls, op: Op) -> None:
        """Detach an op inside a dead region, inner ops first."""
        for block in op.regions:
            for inner in reversed(block):
                cls.drop(inner)
        assert op.parent is not None
        op.parent.detach(op)

    @staticmethod
    def move_before(op: Op, anchor: Op) -> None:
        assert op.parent is not None and anchor.parent is not None
        op.parent.detach(op)
        anchor.parent.insert(op, anchor)

    @staticmethod
    def inline_block(block: Block, args: Iterable[Value], builder: Builder) -> list[Value]:
        """Copy the ops of `block` to the builder; returns the operands of its terminator."""
        mapping: dict[Value, Value] = dict(zip(block.args, args, strict=True))
        for op in block:
            if op.next is None:
                return [mapping.get(v, v) for v in op.operands]
            builder.block.insert(op.clone(mapping), builder.before)
        raise AssertionError("block without terminator")
