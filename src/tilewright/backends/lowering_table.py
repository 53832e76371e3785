"""How a backend lowers each op class: the table that `@lowering` fills.

lowering = LoweringTable[State]("cpu")

@lowering(ForOp, WhileOp)
def lower_loop(state: State, op: ForOp | WhileOp) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tilewright.ir import Op
from tilewright.support.errors import LoweringMissing

StateT = TypeVar("StateT")
OpT = TypeVar("OpT", bound=Op)


class LoweringTable(Generic[StateT]):
    """Handlers by op class. Calling the table makes the decorator that registers one.

    StateT: what the lowering of one function keeps, the first argument of each handler.
    """

    __slots__ = ("backend", "handlers")

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.handlers: dict[type[Op], Callable[[StateT, Any], None]] = {}

    def __call__(
        self, *op_classes: type[OpT]
    ) -> Callable[[Callable[[StateT, OpT], None]], Callable[[StateT, OpT], None]]:
        """Register a function as the handler of these op classes, which its `op` may be."""

        def register(handler: Callable[[StateT, OpT], None]) -> Callable[[StateT, OpT], None]:
            for op_class in op_classes:
                assert op_class not in self.handlers, f"two handlers of {op_class.opcode}"
                self.handlers[op_class] = handler
            return handler

        return register

    def has(self, op: Op) -> bool:
        """Whether the class of an op has a handler."""
        return type(op) in self.handlers

    def lower(self, state: StateT, op: Op) -> None:
        """Run the handler of an op. Errors: LoweringMissing."""
        handler = self.handlers.get(type(op))
        if handler is None:
            raise self.missing(op)
        handler(state, op)

    def missing(self, op: Op) -> LoweringMissing:
        """The error of an op that this backend does not lower, at its source line."""
        error = LoweringMissing(op=op.opcode, backend=self.backend)
        return error.with_loc(op.loc)
