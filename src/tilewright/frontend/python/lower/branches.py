"""`if` and `x if c else y`: chosen at compile time where possible, else `cf.if`.

    if c:                      %x = cf.if %c -> i32
        x = a         ->         then { cf.yield %a }
    else:                        else { cf.yield %b }
        x = b

A name that only one side assigns, or that the sides give different types, is an error where it is
used.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.frontend import semantics
from tilewright.frontend.python.captured_names import MISSING
from tilewright.frontend.python.lower.control_flow_joins import Join, Plan, as_value, planned
from tilewright.frontend.python.lower.function_frame import (
    FunctionFrame,
    Jump,
    Outcome,
    Rest,
    Returned,
    expression,
    statement,
)
from tilewright.frontend.python.lower.language_values import Deferred, describe, is_static, static
from tilewright.frontend.python.lower.statement_sequence import (
    ContinuationUnknown,
    is_known,
    run,
    run_to_end,
)
from tilewright.ir import Block, Rewriter, Value
from tilewright.ops import IfOp, YieldOp
from tilewright.support import errors

Scope = dict[str, object]


@dataclass(slots=True)
class Side:
    """One side of an `if`: its block, the names at its end, and how it ended."""

    block: Block
    scope: Scope
    outcome: Outcome


@statement(ast.If)
def if_statement(frame: FunctionFrame, node: ast.If) -> Outcome:
    """`if`, `elif` (an `if` in the else part), `else`."""
    rest = frame.rest
    condition = frame.expression(node.test)
    if is_static(condition):
        return run(frame, node.body if static(condition) else node.orelse, rest)
    test = semantics.truth(frame.at(node.test), condition)
    before = frame.scope
    try:
        sides = _sides(frame, node, before, rest, whole=False)
    except ContinuationUnknown:
        if not is_known(rest):
            raise
        sides = _sides(frame, node, before, rest, whole=True)
    frame.scope = before
    if sides[0].outcome is None and sides[1].outcome is None:
        _merge(frame, node, test, sides)
        return None
    _complete(frame, sides, rest)
    frame.scope = before
    return _return(frame, node, test, sides)


def _sides(
    frame: FunctionFrame, node: ast.If, scope: Scope, rest: Rest | None, *, whole: bool
) -> tuple[Side, Side]:
    """Lower both sides; `whole` also lowers what follows the `if` at the end of each.

    Where the first side returns, the second goes on to the end of the function.
    """
    then = _side(frame, node.body, scope, rest, whole)
    try:
        return then, _side(frame, node.orelse, scope, rest, whole or then.outcome is not None)
    except ContinuationUnknown:
        discard(then.block)
        raise


def _side(
    frame: FunctionFrame,
    statements: Sequence[ast.stmt],
    scope: Scope,
    rest: Rest | None,
    whole: bool,
) -> Side:
    block = Block()
    frame.scope = dict(scope)
    try:
        with frame.into(block):
            outcome = run(frame, statements, rest if whole else None)
            if whole and outcome is None:
                outcome = run_to_end(frame, rest)
    except ContinuationUnknown:
        discard(block)
        raise
    if isinstance(outcome, Jump):
        refuse_jump(frame, outcome)
    return Side(block, frame.scope, outcome)


def _complete(frame: FunctionFrame, sides: tuple[Side, Side], rest: Rest | None) -> None:
    """One side returns: the other runs to the end of the function."""
    try:
        for side in (s for s in sides if s.outcome is None):
            frame.scope = side.scope
            with frame.into(side.block):
                side.outcome = run_to_end(frame, rest)
    except ContinuationUnknown:
        for side in sides:
            discard(side.block)
        raise


def discard(block: Block) -> None:
    """Take the ops out of a block that no op owns."""
    for op in reversed(block):
        Rewriter.drop(op)


def refuse_jump(frame: FunctionFrame, jump: Jump) -> None:
    """`break` and `continue` need a loop that is unrolled and a compile-time condition."""
    word = type(jump.node).__name__.lower()
    instead = "mask the work with tl.where, bound the loop, or use a while loop with a condition"
    frame.unsupported(jump.node, f"'{word}' at run time", instead)


def _merge(frame: FunctionFrame, node: ast.If, test: Value, sides: tuple[Side, Side]) -> None:
    """Both sides go on: join the names that they leave different."""
    then, orelse = sides
    join = Join()
    merged: Scope = {}
    plans: dict[str, Plan] = {}
    for name in dict.fromkeys((*then.scope, *orelse.scope)):
        a = then.scope.get(name, MISSING)
        b = orelse.scope.get(name, MISSING)
        if a is b:
            merged[name] = a
        elif a is MISSING or b is MISSING or isinstance(a, Deferred) or isinstance(b, Deferred):
            merged[name] = _one_sided(name, a, b, f"'if' of line {frame.loc(node).line}")
        else:
            plan = join.add(a, b)
            if plan is None:
                error = errors.InconsistentBranches(f"'{name}'", describe(a), describe(b))
                merged[name] = Deferred(error.with_loc(frame.loc(node)))
            else:
                merged[name], plans[name] = a, plan
    results = emit_if(frame, node, test, then.block, orelse.block, join)
    for name, plan in plans.items():
        merged[name] = planned(merged[name], plan, results, name)
    frame.scope = merged


def _one_sided(name: str, a: object, b: object, construct: str) -> Deferred:
    """A name that not every path defines."""
    for side in (a, b):
        if isinstance(side, Deferred):
            return side
    return Deferred(errors.PossiblyUndefined(name, construct))


def emit_if(
    frame: FunctionFrame,
    node: ast.If | ast.IfExp,
    test: Value,
    then: Block,
    orelse: Block,
    join: Join,
) -> tuple[Value, ...]:
    """End both blocks with the values to join and emit the op; its results."""
    for block, parts in ((then, join.left), (orelse, join.right)):
        with frame.into(block):
            values = [
                as_value(frame.ctx, part, type_)
                for part, type_ in zip(parts, join.types, strict=True)
            ]
            frame.ctx.emitter.emit(YieldOp(tuple(values)))
    op = IfOp(test, then, orelse, result_types=tuple(join.types))
    return frame.at(node).emitter.emit(op).results


def _return(frame: FunctionFrame, node: ast.If, test: Value, sides: tuple[Side, Side]) -> Returned:
    """Both sides return: the `if` gives the value of the function."""
    outcomes = [side.outcome for side in sides]
    first, second = outcomes
    assert isinstance(first, Returned) and isinstance(second, Returned)
    join = Join()
    plan = join.add(first.value, second.value)
    if plan is None:
        found = (describe(first.value), describe(second.value))
        where = second.node or first.node or node
        frame.fail(
            where, errors.InconsistentBranches(f"the result of {frame.source.name}()", *found)
        )
    results = emit_if(frame, node, test, sides[0].block, sides[1].block, join)
    return Returned(planned(first.value, plan, results, ""), first.node or second.node)


@expression(ast.IfExp)
def conditional_expression(frame: FunctionFrame, node: ast.IfExp) -> object:
    """`a if c else b`; at run time only the chosen side is evaluated."""
    condition = frame.expression(node.test)
    if is_static(condition):
        return frame.expression(node.body if static(condition) else node.orelse)
    test = semantics.truth(frame.at(node.test), condition)
    before = frame.scope
    values: list[object] = []
    blocks = (Block(), Block())
    for block, part in zip(blocks, (node.body, node.orelse), strict=True):
        frame.scope = dict(before)
        with frame.into(block):
            values.append(frame.expression(part))
    frame.scope = before
    join = Join()
    plan = join.add(*values)
    if plan is None:
        found = (describe(values[0]), describe(values[1]))
        frame.fail(node, errors.InconsistentBranches("the conditional expression", *found))
    return planned(values[0], plan, emit_if(frame, node, test, *blocks, join), "")
