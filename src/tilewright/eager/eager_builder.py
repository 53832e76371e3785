"""An emitter that computes each op of the semantics when it is emitted."""

from __future__ import annotations

from typing import TypeVar, cast

from tilewright.interp import ConcreteValue, Interpreter, Machine
from tilewright.ir import Emitter, Op, Value
from tilewright.support import SourceLoc

OpT = TypeVar("OpT", bound=Op)


class EagerBuilder(Emitter):
    """An `ir.Emitter` that evaluates each op by its reference rule.

    The results of an emitted op are `ConcreteValue`s. An ordinary builder builds the ops of a
    region (the combine function of a reduction), which run when the op that owns the region is
    emitted.
    """

    __slots__ = ("interpreter", "loc")

    def __init__(self, machine: Machine, loc: SourceLoc | None = None) -> None:
        self.interpreter = Interpreter(machine)
        self.loc = loc

    def emit(self, op: OpT) -> OpT:
        """Evaluate an op whose operands are concrete values."""
        if op.loc is None:
            op.loc = self.loc
        inputs = cast("list[ConcreteValue]", op.operands)
        op.results = tuple(self.interpreter.run(op, inputs))
        # otherwise values of region arguments stay in the environment, and keep their tiles alive
        if op.regions:
            self.interpreter.environment.clear()
        for region in op.regions:
            region.owner = None  # no cycle: the op and the tiles that it holds are freed at once
        return op

    def decide(self, what: str, value: Value) -> None:
        """Check a scalar before Python depends on it. what: CONDITION or BOUND. Errors:
        UndefinedElement.
        """
        checks = self.interpreter.machine.checks
        if checks is not None:
            checks.check_condition(what, cast("ConcreteValue", value))

    def known(self, value: Value) -> int | float | None:
        """The value of a scalar."""
        return cast("ConcreteValue", value).data.item()
