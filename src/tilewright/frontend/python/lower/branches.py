"""`if` and `x if c else y`: chosen at compile time where possible, else `cf.if`.

    if c:                      %x = cf.if %c -> i32
        x = a         ->         then { cf.yield %a }
    else:                        else { cf.yield %b }
        x = b

A name that only one side assigns, or that has different types on the two sides, is an error where
it is used.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tilewright.frontend import semantics
from tilewright.frontend.python.captured_names import MISSING
from tilewright.frontend.python.lower.control_flow_joins import (
    Join,
    JoinPlan,
    as_value,
    joined_value,
    leaves,
    rebuild,
)
from tilewright.frontend.python.lower.function_frame import (
    Continuation,
    Ending,
    FunctionFrame,
    Outcome,
    Returned,
    expression,
    statement,
)
from tilewright.frontend.python.lower.jump_flags import NO, YES, UnlessJumped, has_jumped
from tilewright.frontend.python.lower.language_values import (
    DeferredError,
    describe,
    is_static,
    static_value,
)
from tilewright.frontend.python.lower.statement_sequence import (
    ContinuationUnknown,
    lower_statements,
    lower_to_function_end,
    reaches_function_end,
)
from tilewright.frontend.semantics import erase_ops, warn_once
from tilewright.ir import Block, Value
from tilewright.ir.types import DType, element_of
from tilewright.language import tensor
from tilewright.ops import HintOp, IfOp, YieldOp
from tilewright.support import errors
from tilewright.support.data_class import dataclass

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
    continuation = frame.continuation
    condition = frame.expression(node.test)
    # No op for a compile-time condition: the other side may not even be valid for these types.
    if is_static(condition):
        return lower_statements(
            frame, node.body if static_value(condition) else node.orelse, continuation
        )
    test = semantics.truth(frame.at(node.test), condition)
    before = frame.scope
    try:
        # First attempt: the statements after the `if` are lowered once, after it.
        sides = _lower_sides(frame, node, before, continuation, whole=False)
    except ContinuationUnknown:
        # An enclosing attempt has left the continuation open; it has to retry, not this one.
        if not reaches_function_end(continuation):
            raise
        # A nested `if` returns on some paths only: lower the rest of the function on both sides.
        sides = _lower_sides(frame, node, before, continuation, whole=True)
    if not any(isinstance(side.outcome, Returned) for side in sides):
        outcome = _lower_rest_of_list(frame, sides, continuation)
        frame.scope = before
        _merge(frame, node, test, sides)
        return outcome
    _lower_rest_of_function(frame, sides, continuation)
    frame.scope = before
    return _return(frame, node, test, sides)


def _lower_sides(
    frame: FunctionFrame,
    node: ast.If,
    scope: Scope,
    continuation: Continuation | None,
    *,
    whole: bool,
) -> tuple[Side, Side]:
    """Lower both sides; `whole` also lowers the statements after the `if` at the end of each.

    If the first side returns, the second continues to the end of the function.
    """

    def lowered(statements: Sequence[ast.stmt], whole: bool) -> Side:
        def lower() -> Outcome:
            outcome = lower_statements(frame, statements, continuation if whole else None)
            if outcome is Ending.JUMP and whole:
                raise ContinuationUnknown
            go_on = whole and outcome is None
            return lower_to_function_end(frame, continuation) if go_on else outcome

        return _lower_side(frame, scope, lower)

    then = lowered(node.body, whole)
    try:
        return then, lowered(node.orelse, whole or isinstance(then.outcome, Returned))
    except ContinuationUnknown:
        # Remaining ops would keep uses of outer values alive and block later rewrites of them.
        erase_ops(then.block)
        raise


def _lower_side(frame: FunctionFrame, scope: Scope, lower: Callable[[], Outcome]) -> Side:
    block = Block()
    # A copy: each side sees the names as they were before the `if`.
    frame.scope = dict(scope)
    try:
        with frame.into(block):
            outcome = lower()
    except ContinuationUnknown:
        erase_ops(block)
        raise
    return Side(block, frame.scope, outcome)


def _lower_rest_of_function(
    frame: FunctionFrame, sides: tuple[Side, Side], continuation: Continuation | None
) -> None:
    """One side returns: the other runs to the end of the function."""
    try:
        for side in (s for s in sides if not isinstance(s.outcome, Returned)):
            if side.outcome is Ending.JUMP:
                raise ContinuationUnknown
            frame.scope = side.scope
            with frame.into(side.block):
                side.outcome = lower_to_function_end(frame, continuation)
    except ContinuationUnknown:
        for side in sides:
            erase_ops(side.block)
        raise


def _lower_rest_of_list(
    frame: FunctionFrame, sides: tuple[Side, Side], continuation: Continuation | None
) -> Outcome:
    """One side jumps: the other one runs to the end of the list, which needs no flag then."""
    jumps = [side.outcome is Ending.JUMP for side in sides]
    if jumps[0] is jumps[1] or continuation is None:
        return None
    side = sides[jumps.index(False)]
    frame.scope = side.scope
    try:
        with frame.into(side.block):
            outcome = lower_statements(frame, continuation.statements, None)
        if isinstance(outcome, Returned):
            raise ContinuationUnknown
    except ContinuationUnknown:
        for each in sides:
            erase_ops(each.block)
        raise
    side.scope = frame.scope
    return Ending.REST_DONE


@statement(UnlessJumped)
def unless_jumped(frame: FunctionFrame, node: UnlessJumped) -> Outcome:
    """Lower the statements after one that may have jumped; see `jump_flags`."""
    before, test = frame.scope, has_jumped(frame, node.flag)
    assert not isinstance(test, bool)

    def rest() -> Outcome:
        outcome = node.rest()
        if isinstance(outcome, Returned):
            raise ContinuationUnknown
        return outcome

    side = _lower_side(frame, before | {node.flag: NO}, rest)
    frame.scope = before
    _merge(frame, node, test.handle, (Side(Block(), before | {node.flag: YES}, None), side))
    return None


def _merge(
    frame: FunctionFrame, node: ast.If | UnlessJumped, test: Value, sides: tuple[Side, Side]
) -> None:
    """Both sides continue: join the names that differ between them."""
    then, orelse = sides
    join = Join()
    merged: Scope = {}
    plans: dict[str, JoinPlan] = {}
    # dict.fromkeys: a set, but in an order that does not differ between processes.
    for name in dict.fromkeys((*then.scope, *orelse.scope)):
        a = then.scope.get(name, MISSING)
        b = orelse.scope.get(name, MISSING)
        a, b = _without_hint(a, b), _without_hint(b, a)
        # The same object on both sides needs no join.
        if a is b:
            merged[name] = a
        elif (
            a is MISSING
            or b is MISSING
            or isinstance(a, DeferredError)
            or isinstance(b, DeferredError)
        ):
            merged[name] = _one_sided(name, a, b, f"'if' of line {frame.loc(node).line}")
        else:
            plan = join.add(a, b)
            if plan is None:
                error = errors.InconsistentBranches(f"'{name}'", describe(a), describe(b))
                # No error yet: a temporary of two types is harmless if nothing reads it later.
                merged[name] = DeferredError(error.with_loc(frame.loc(node)))
            else:
                merged[name], plans[name] = a, plan
    results = emit_if(frame, node, test, then.block, orelse.block, join)
    for name, plan in plans.items():
        merged[name] = joined_value(merged[name], plan, results, name)
    frame.scope = merged


def _without_hint(value: object, other: object) -> object:
    """The other side's value, if this one is that value with a hint."""
    if not isinstance(value, tensor) or not isinstance(other, tensor):
        return value
    op = value.handle.op
    while isinstance(op, HintOp):
        if op.x is other.handle:
            return other
        op = op.x.op
    return value


def _one_sided(name: str, a: object, b: object, construct: str) -> DeferredError:
    """A name that not every path defines."""
    for side in (a, b):
        if isinstance(side, DeferredError):
            return side
    return DeferredError(errors.PossiblyUndefined(name, construct))


def emit_if(
    frame: FunctionFrame,
    node: ast.expr | ast.stmt,
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
    """Both sides return: the results of the `if` are the value of the function."""
    outcomes = [side.outcome for side in sides]
    first, second = outcomes
    assert isinstance(first, Returned) and isinstance(second, Returned)
    first, second = _completed(frame, node, sides, (first, second))
    join = Join()
    plan = join.add(first.value, second.value)
    if plan is None:
        types = (describe(first.value), describe(second.value))
        where = second.node or first.node or node
        what = f"the result of {frame.source.name}()"
        triton = f"Return type mismatch: {types[0]} and {types[1]}"
        frame.fail(where, errors.InconsistentBranches(what, *types, triton=triton))
    results = emit_if(frame, node, test, sides[0].block, sides[1].block, join)
    return Returned(joined_value(first.value, plan, results, ""), first.node or second.node)


def _completed(
    frame: FunctionFrame, node: ast.If, sides: tuple[Side, Side], pair: tuple[Returned, Returned]
) -> tuple[Returned, Returned]:
    """The results of both sides, zeros if one side reaches the end of the function without one.

    In Triton these are undefined, and callers do not use them.
    """
    missing = [returned.node is None for returned in pair]
    given = pair[missing.index(False)] if any(missing) and not all(missing) else None
    if given is None or not any(isinstance(leaf, tensor) for leaf in leaves(given.value)):
        return pair
    with frame.into(sides[missing.index(True)].block):
        ctx = frame.at(node)
        zeros = [_zero(ctx, leaf) for leaf in leaves(given.value)]
    if any(zero is None for zero in zeros):
        return pair
    name = frame.source.name
    message = f"{name}() returns no value on one path; its result is 0 there"
    warn_once(message, frame.loc(node), hint="return a value on every path")
    completed = Returned(rebuild(given.value, iter(zeros)), None)
    return (completed, given) if missing[0] else (given, completed)


def _zero(ctx: semantics.Context, leaf: object) -> object:
    """Zero in place of a run-time leaf; None where there is none."""
    if not isinstance(leaf, tensor):
        return leaf
    type_ = leaf.handle.type
    is_number = isinstance(element_of(type_), DType)
    return tensor(semantics.constant(ctx, 0, type_)) if is_number else None


@expression(ast.IfExp)
def conditional_expression(frame: FunctionFrame, node: ast.IfExp) -> object:
    """`a if c else b`; at run time only the chosen side is evaluated."""
    condition = frame.expression(node.test)
    if is_static(condition):
        return frame.expression(node.body if static_value(condition) else node.orelse)
    test = semantics.truth(frame.at(node.test), condition)
    before = frame.scope
    values: list[object] = []
    blocks = (Block(), Block())
    for block, part in zip(blocks, (node.body, node.orelse), strict=True):
        frame.scope = dict(before)
        with frame.into(block):
            values.append(frame.expression(part))
    # Names bound by `:=` in one side must not be visible after it.
    frame.scope = before
    join = Join()
    plan = join.add(*values)
    if plan is None:
        types = (describe(values[0]), describe(values[1]))
        frame.fail(node, errors.InconsistentBranches("the conditional expression", *types))
    return joined_value(values[0], plan, emit_if(frame, node, test, *blocks, join), "")
