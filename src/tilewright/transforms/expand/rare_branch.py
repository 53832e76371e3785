"""`arith.rare`: an element-wise value with a slow form that few elements need.

Tile ops have no branches, so an expansion that is expensive only for unusual arguments would cost
as much for all. This op holds both forms. It becomes one branch per vector around the slow form,
taken if any lane needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tilewright.ir import (
    REFERENCE_RULES,
    Block,
    Builder,
    Op,
    Trait,
    Value,
    boolean,
    operand,
    reference,
    region,
    variadic,
)
from tilewright.ir.types import Type, dtype_of, element_of
from tilewright.llvm import Code, Val, constant, lower_elementwise, lowering_rule
from tilewright.ops import ConstantOp, SelectOp, YieldOp

Lower = Callable[[Code, Op, list[Val]], Val]

_WEIGHTS = '!prof !{!"branch_weights", i32 1, i32 100000}'


class RareOp(Op, opcode="arith.rare", traits=(Trait.PURE, Trait.ELEMENTWISE)):
    """result = slow(args...) where condition, else common

    `slow` takes one element of each of args and yields one of the result; its ops are element-wise,
    on its arguments and constants.
    """

    condition: Value = operand(boolean)
    common: Value = operand()
    args: tuple[Value, ...] = variadic()
    slow: Block = region()

    def infer(self) -> Type:
        return self.common.type

    def verify(self) -> str | None:
        expected = [element_of(arg.type) for arg in self.args]
        if [arg.type for arg in self.slow.args] != expected:
            return f"`slow` must take {expected}"
        end = self.slow.last
        if not isinstance(end, YieldOp) or len(end.operands) != 1:
            return "`slow` must yield one value"
        if end.operands[0].type is not element_of(self.common.type):
            return f"`slow` must yield {element_of(self.common.type)}"
        problems = map(self._slow_problem, self.slow)
        return next((problem for problem in problems if problem is not None), None)

    def _slow_problem(self, op: Op) -> str | None:
        """The problem with an op in `slow`, whose ops are computed for a vector of lanes."""
        for value in op.operands:
            inside = value in self.slow.args or (value.op is not None and value.op in self.slow)
            if not inside and not isinstance(value.op, ConstantOp):
                return f"`slow` must not use {value}: it has its arguments and constants"
        if isinstance(op, YieldOp | ConstantOp):
            return None
        if op.regions or Trait.ELEMENTWISE not in op.traits:
            return f"`slow` must not hold {op.opcode}: its ops are element-wise"
        return None


def rarely(
    builder: Builder,
    condition: Value,
    common: Value,
    x: Value,
    slow: Callable[[Builder, Value], Value],
) -> Value:
    """`slow(x)` where the condition holds, else `common`."""
    block = Block((element_of(x.type),), ("x",))
    inner = Builder(block, loc=builder.loc)
    inner.emit(YieldOp((slow(inner, block.args[0]),)))
    return builder.value(RareOp(condition, common, (x,), block))


@reference(RareOp)
def rare_reference(op: RareOp, condition: Any, common: Any, *args: Any) -> Any:
    """Compute both forms and select."""

    def rule(inner: Op, operands: list[Any]) -> Any:
        return REFERENCE_RULES[type(inner)](inner, *operands)

    slow = _run(op.slow, dict(zip(op.slow.args, args, strict=True)), rule)
    return REFERENCE_RULES[SelectOp](op, condition, slow, common)


def _run(block: Block, values: dict[Value, Any], rule: Callable[[Op, list[Any]], Any]) -> Any:
    """The values that the block yields; it may use constants of enclosing blocks."""

    def at(value: Value) -> Any:
        if value not in values:
            constant = value.op
            assert isinstance(constant, ConstantOp), "a rare form uses only its arguments"
            values[value] = rule(constant, [])
        return values[value]

    for inner in list(block):
        if isinstance(inner, YieldOp):
            return at(inner.operands[0])
        values[inner.result] = rule(inner, [at(v) for v in inner.operands])
    raise AssertionError("a region without terminator")


@lowering_rule("arith.rare")
def lower_rare(code: Code, op: Op, operands: list[Val], lower: Lower = lower_elementwise) -> Val:
    """Emit a branch in the section of the operands, taken if any lane meets the condition.

    lower: emits an op of the slow form.
    """
    condition, common, *args = operands
    section = code.sections[max(v.level for v in operands)]
    before, slow, done = (code.label(h) for h in ("before", "slow", "done"))
    # a new block, because the phi below has to name its predecessor
    section += [f"br label %{before}", f"{before}:"]
    taken = _any_lane(code, condition)
    section += [f"br i1 {taken}, label %{slow}, label %{done}, {_WEIGHTS}", f"{slow}:"]
    exact = _lower_region(code, cast("RareOp", op).slow, args, lower)
    mixed = code.select(condition, exact, common)
    section += [f"br label %{done}", f"{done}:"]
    ways = f"[ {common}, %{before} ], [ {mixed}, %{slow} ]"
    return code.let(f"phi {common.type} {ways}", common.type, *operands)


def _any_lane(code: Code, condition: Val) -> Val:
    if condition.width == 1:
        return condition
    return code.call(f"llvm.vector.reduce.or.v{condition.width}i1", "i1", condition)


def _lower_region(code: Code, block: Block, args: list[Val], lower: Lower) -> Val:
    width = args[0].width

    def rule(inner: Op, operands: list[Val]) -> Val:
        if isinstance(inner, ConstantOp):
            return constant(inner.value, dtype_of(inner.result_type), width)
        return lower(code, inner, operands)

    return _run(block, dict(zip(block.args, args, strict=True)), rule)
