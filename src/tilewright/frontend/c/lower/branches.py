"""`if` and other constructs that evaluate one of two sides at run time: `cf.if`.

    if (c) x = a; else x = b;    ->    %x = cf.if %c -> i32 then { cf.yield %a } else { ... }

A variable that only one side assigns is undefined after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.frontend.c import syntax
from tilewright.frontend.c.lower.declared_conversions import converted
from tilewright.frontend.c.lower.function_frame import FunctionFrame, Unset, Values, Variable
from tilewright.frontend.c.lower.integer_promotion import joined_type
from tilewright.ir import Block, Value
from tilewright.ir.types import Type
from tilewright.language import tensor
from tilewright.ops import IfOp, YieldOp
from tilewright.support import errors

Side = Callable[[], None]


def lower_branches(
    frame: FunctionFrame, node: syntax.Node, test: Value, then: Side, orelse: Side, construct: str
) -> None:
    """Lower two sides, of which one runs, and join the variables that differ after them."""
    before = frame.values
    blocks, after = _lower_sides(frame, (then, orelse))
    # `before` only: variables declared in a side are local to it.
    joined = [v for v in before if _differs(after[0][v], after[1][v])]
    for variable in joined:
        # Only one side assigns it: a later use is an error that names this construct.
        frame.values[variable] = Unset(construct)
    joined = [v for v in joined if _is_set(v, after[0][v], after[1][v])]
    results = _emit(frame, node, test, blocks, after, joined)
    for variable, result in zip(joined, results, strict=True):
        frame.set(variable, tensor(result))


def _lower_sides(
    frame: FunctionFrame, sides: Sequence[Side]
) -> tuple[tuple[Block, Block], list[Values]]:
    """A block for each of two sides, and the values of the variables at its end."""
    before = frame.values
    blocks = (Block(), Block())
    after: list[Values] = []
    for block, side in zip(blocks, sides, strict=True):
        frame.values = dict(before)
        with frame.into(block):
            side()
        after.append(frame.values)
    frame.values = dict(before)
    return blocks, after


def _differs(a: tensor | Unset, b: tensor | Unset) -> bool:
    if isinstance(a, Unset) or isinstance(b, Unset):
        return a is not b
    return a.handle is not b.handle


def _is_set(variable: Variable, a: tensor | Unset, b: tensor | Unset) -> bool:
    return variable.hidden or not (isinstance(a, Unset) or isinstance(b, Unset))


def _emit(
    frame: FunctionFrame,
    node: syntax.Node,
    test: Value,
    blocks: tuple[Block, Block],
    after: list[Values],
    joined: list[Variable],
) -> tuple[Value, ...]:
    """Yield the values to join from both blocks and emit the op; returns its results."""
    # The constants of hidden variables are emitted inside the side that yields them.
    for block, values in zip(blocks, after, strict=True):
        with frame.into(block):
            end_values = [held_value(frame, variable, values[variable]) for variable in joined]
            frame.at(node).emitter.emit(YieldOp(tuple(end.handle for end in end_values)))
    types: tuple[Type, ...] = tuple(variable.type for variable in joined)
    op = IfOp(test, *blocks, result_types=types)
    return frame.at(node).emitter.emit(op).results


def held_value(frame: FunctionFrame, variable: Variable, value: tensor | Unset) -> tensor:
    """The value of a variable; zero for a hidden one without a value."""
    if not isinstance(value, Unset):
        return value
    assert variable.hidden
    return frame.zero(variable)


def lower_choice(
    frame: FunctionFrame,
    node: syntax.Expression,
    test: Value,
    then: Callable[[], tensor],
    orelse: Callable[[], tensor],
) -> tensor:
    """The value of one of two expressions; only that one is evaluated.

    Errors: InconsistentBranches if their types have none in common.
    """
    chosen: list[tensor] = []
    sides = (lambda: chosen.append(then()), lambda: chosen.append(orelse()))
    before = frame.values
    blocks, after = _lower_sides(frame, sides)
    a, b = chosen
    type_ = joined_type(frame, a, b)
    if type_ is None:
        what = "the conditional expression"
        frame.fail(node, errors.InconsistentBranches(what, a.type, b.type))
    for index, block in enumerate(blocks):
        with frame.into(block):
            chosen[index] = converted(frame, node, chosen[index], type_)
    # The value of the choice is joined as an unnamed variable.
    result = Variable("", type_, hidden=True)
    joined = [v for v in before if _differs(after[0][v], after[1][v])]
    for values, value in zip(after, chosen, strict=True):
        values[result] = value
    results = _emit(frame, node, test, blocks, after, [result, *joined])
    for variable, value in zip(joined, results[1:], strict=True):
        frame.set(variable, tensor(value))
    return tensor(results[0])
