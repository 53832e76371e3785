"""Structured control flow, the grid, and reports to the user."""

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
    pointer,
    region,
    scalar_integer,
    variadic,
)
from tilewright.ir.types import PointerType, Type, element_of, i1, i32, i64, shape_of
from tilewright.ops.region_checks import not_in_a_region, types_of, wrong_args, wrong_end


class ForOp(Op, opcode="cf.for"):
    """for (i = lower; i < upper; i += step) carried = body(i, *carried); results = carried

    step > 0 if lower < upper. i + step does not wrap: past the end of the index type the loop
    exits. The body takes the index and the loop-carried values, and yields their next values.
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
        return types_of(self.inits)

    def verify(self) -> str | None:
        index, carried = self.lower.type, types_of(self.inits)
        if self.upper.type is not index or self.step.type is not index:
            return f"bounds and step differ in type: {index}, {self.upper.type}, {self.step.type}"
        return wrong_args("the body", self.body, (index, *carried)) or wrong_end(
            "the body", self.body, "cf.yield", carried
        )

    @property
    def index(self) -> Value:
        return self.body.args[0]

    @property
    def carried(self) -> list[Value]:
        """The loop-carried values as arguments of the body."""
        return self.body.args[1:]


class WhileOp(Op, opcode="cf.while", traits=(Trait.ENDLESS,)):
    """while true: (go, carried) = before(*carried); if not go: break; carried = body(*carried)

    `before` ends with `cf.condition go, *carried`, `body` with `cf.yield`; results = carried.
    """

    inits: tuple[Value, ...] = variadic()
    before: Block = region()
    body: Block = region()

    def infer(self) -> tuple[Type, ...]:
        return types_of(self.inits)

    def verify(self) -> str | None:
        carried = types_of(self.inits)
        return (
            wrong_args("`before`", self.before, carried)
            or wrong_end("`before`", self.before, "cf.condition", (i1, *carried))
            or wrong_args("the body", self.body, carried)
            or wrong_end("the body", self.body, "cf.yield", carried)
        )


class IfOp(Op, opcode="cf.if"):
    """results = then() if condition else orelse()"""

    condition: Value = operand(boolean)
    then: Block = region()
    orelse: Block = region()
    result_types: tuple[Type, ...] = attr(default=())

    def verify(self) -> str | None:
        if self.condition.type is not i1:
            return f"the condition must be i1, not {self.condition.type}"
        for what, block in (("`then`", self.then), ("`orelse`", self.orelse)):
            message = wrong_args(what, block, ()) or wrong_end(
                what, block, "cf.yield", self.result_types
            )
            if message is not None:
                return message
        return None


class YieldOp(Op, opcode="cf.yield", traits=(Trait.TERMINATOR,)):
    """Terminate a region: the operands are its results."""

    values: tuple[Value, ...] = variadic()

    def verify(self) -> str | None:
        return not_in_a_region(self)


class ConditionOp(Op, opcode="cf.condition", traits=(Trait.TERMINATOR,)):
    """Terminate the `before` region of a while: whether to continue, and with which values."""

    go: Value = operand(boolean)
    values: tuple[Value, ...] = variadic()

    def verify(self) -> str | None:
        return not_in_a_region(self)


class ReturnOp(Op, opcode="cf.return", traits=(Trait.TERMINATOR,)):
    """Terminate the program instance."""

    def verify(self) -> str | None:
        parent = self.parent
        if parent is not None and isinstance(parent.owner, Op):
            return "cf.return cannot end a region"
        return None


class StopOp(Op, opcode="cf.stop", effects=(Effect.OBSERVE,)):
    """Exit the program instance from any region, after record[i] = words[i]."""

    record: Value = operand(pointer)
    words: tuple[Value, ...] = variadic(scalar_integer)

    def verify(self) -> str | None:
        pointed = element_of(self.record.type)
        assert isinstance(pointed, PointerType)
        same = all(word.type is pointed.element for word in self.words)
        return None if same else "the words must be what the record points to"


class ProgramIdOp(Op, opcode="cf.program_id", traits=(Trait.PURE,)):
    """result = index of this program instance along an axis of the grid"""

    axis: int = attr(choices=(0, 1, 2))

    def infer(self) -> Type:
        return i32


class NumProgramsOp(Op, opcode="cf.num_programs", traits=(Trait.PURE,)):
    """result = size of the grid along an axis"""

    axis: int = attr(choices=(0, 1, 2))

    def infer(self) -> Type:
        return i32


class TimerOp(Op, opcode="cf.timer", effects=(Effect.OBSERVE,)):
    """result = a monotonic clock: in ns on GPUs, in ticks of the time-stamp counter on CPUs"""

    def infer(self) -> Type:
        return i64


class AssumeOp(Op, opcode="cf.assume", effects=(Effect.OBSERVE,)):
    """Assume that the condition holds; otherwise behaviour is undefined."""

    condition: Value = operand(boolean)


class AssertOp(Op, opcode="cf.assert", effects=(Effect.OBSERVE,)):
    """Abort the launch with the message unless all elements of the condition (where mask) hold."""

    condition: Value = operand(boolean)
    message: str = attr()
    mask: Value | None = optional_operand(boolean, default=None)

    def verify(self) -> str | None:
        if self.mask is not None and shape_of(self.mask.type) != shape_of(self.condition.type):
            return f"the mask {self.mask.type} does not fit the condition {self.condition.type}"
        return None


class PrintOp(Op, opcode="cf.print", effects=(Effect.OBSERVE,)):
    """Print the prefix and the operands, each element with its index, to the program's output.

    extents: the shapes of the tiles in order, without padding; () if there is no padding.
    """

    args: tuple[Value, ...] = variadic(any_type)
    prefix: str = attr()
    hex: bool = attr(default=False)
    extents: tuple[int, ...] = attr(default=())
