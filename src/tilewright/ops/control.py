"""Structured control flow, the grid, and what a program tells its user."""

from __future__ import annotations

from tilewright.ir import (
    Block,
    Effect,
    Op,
    Trait,
    Value,
    any_type,
    attr,
    boolean,
    operand,
    optional_operand,
    region,
    scalar_integer,
    variadic,
)
from tilewright.ir.types import Type, i32


class ForOp(Op, opcode="cf.for"):
    """for (i = lower; i < upper; i += step) carried = body(i, *carried); results = carried

    step > 0. The body takes the index and the carried values and yields the new carried values.
    stages, unroll, ...: hints of `tl.range`.
    """

    lower: Value = operand(scalar_integer)
    upper: Value = operand(scalar_integer)
    step: Value = operand(scalar_integer)
    inits: tuple[Value, ...] = variadic()
    body: Block = region()
    stages: int | None = attr(default=None)
    unroll: int | None = attr(default=None)
    flatten: bool = attr(default=False)
    warp_specialize: bool = attr(default=False)
    licm: bool = attr(default=True)

    def infer(self) -> tuple[Type, ...]:
        return tuple(v.type for v in self.inits)

    @property
    def index(self) -> Value:
        return self.body.args[0]

    @property
    def carried(self) -> list[Value]:
        """The carried values as the body sees them."""
        return self.body.args[1:]


class WhileOp(Op, opcode="cf.while"):
    """while true: (go, carried) = before(*carried); if not go: break; carried = body(*carried)

    `before` ends with `cf.condition go, *carried`, `body` with `cf.yield`; results = carried.
    """

    inits: tuple[Value, ...] = variadic()
    before: Block = region()
    body: Block = region()

    def infer(self) -> tuple[Type, ...]:
        return tuple(v.type for v in self.inits)


class IfOp(Op, opcode="cf.if"):
    """results = then() if condition else orelse()"""

    condition: Value = operand(boolean)
    then: Block = region()
    orelse: Block = region()
    result_types: tuple[Type, ...] = attr(default=())

    def infer(self) -> tuple[Type, ...]:
        return self.result_types


class YieldOp(Op, opcode="cf.yield", traits=(Trait.TERMINATOR,)):
    """Ends a region: its operands are the results of the region."""

    values: tuple[Value, ...] = variadic()

    def infer(self) -> None:
        return None


class ConditionOp(Op, opcode="cf.condition", traits=(Trait.TERMINATOR,)):
    """Ends the `before` region of a while: whether to go on, and the values to go on with."""

    go: Value = operand(boolean)
    values: tuple[Value, ...] = variadic()

    def infer(self) -> None:
        return None


class ReturnOp(Op, opcode="cf.return", traits=(Trait.TERMINATOR,)):
    """Ends the program instance."""

    def infer(self) -> None:
        return None


class ProgramIdOp(Op, opcode="cf.program_id", traits=(Trait.PURE,)):
    """result = index of this program instance along an axis of the grid"""

    axis: int = attr(choices=(0, 1, 2))

    def infer(self) -> Type:
        return i32


class NumProgramsOp(Op, opcode="cf.num_programs", traits=(Trait.PURE,)):
    """result = extent of the grid along an axis"""

    axis: int = attr(choices=(0, 1, 2))

    def infer(self) -> Type:
        return i32


class AssumeOp(Op, opcode="cf.assume", effects=(Effect.OBSERVE,)):
    """The condition holds; anything may be concluded from it."""

    condition: Value = operand(boolean)

    def infer(self) -> None:
        return None


class AssertOp(Op, opcode="cf.assert", effects=(Effect.OBSERVE,)):
    """Stops the launch with the message unless each element of the condition (where mask) holds."""

    condition: Value = operand(boolean)
    message: str = attr()
    mask: Value | None = optional_operand(boolean, default=None)

    def infer(self) -> None:
        return None


class PrintOp(Op, opcode="cf.print", effects=(Effect.OBSERVE,)):
    """Prints the prefix and the operands, each element with its index, in the program's output."""

    args: tuple[Value, ...] = variadic(any_type)
    prefix: str = attr()
    hex: bool = attr(default=False)

    def infer(self) -> None:
        return None
