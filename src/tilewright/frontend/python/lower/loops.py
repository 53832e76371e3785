"""`for` and `while`: `cf.for`, `cf.while`, or copies of the body where the items are constants.

for k in range(K, 0, -16):        %n = sub %K, 0
    acc += f(k)              ->   %acc = cf.for %t = 0 to %n step 16 carrying (%a = %init)
                                    %k = sub %K, %t
                                    cf.yield (add %a, f(%k))

A loop that a `break` may leave is a `cf.while`, also over a range; see `jump_flags`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, cast

from tilewright import language
from tilewright.frontend import semantics
from tilewright.frontend.dtype_promotion import typed_as
from tilewright.frontend.python.lower.assignment_targets import assign
from tilewright.frontend.python.lower.branches import emit_if, unless_jumped
from tilewright.frontend.python.lower.control_flow_joins import Join, as_value
from tilewright.frontend.python.lower.function_frame import (
    FunctionFrame,
    Outcome,
    Returned,
    statement,
)
from tilewright.frontend.python.lower.iterables import iterate
from tilewright.frontend.python.lower.jump_flags import (
    ITERATION_OVER,
    LOOP_LEFT,
    NO,
    UnlessJumped,
    begin_iteration,
    has_jumped,
)
from tilewright.frontend.python.lower.language_values import DeferredError, is_static, static_value
from tilewright.frontend.python.lower.loop_carried import (
    CarriedVariables,
    FixpointState,
    RetryLowering,
    carried_variables,
)
from tilewright.frontend.python.lower.statement_sequence import (
    ContinuationUnknown,
    lower_statements,
)
from tilewright.frontend.python.lower.syntax_queries import (
    assigned_in,
    assigned_in_loop,
    has_break,
    is_used_outside_loops,
)
from tilewright.frontend.python.lower.truth_values import logical_not
from tilewright.frontend.semantics import LoopBounds, constant, erase_ops, warn_once
from tilewright.ir import Block, Value
from tilewright.ir.types import i1
from tilewright.language import tensor, unwrap
from tilewright.ops import ConditionOp, ForOp, WhileOp, YieldOp
from tilewright.support import errors


@statement(ast.For)
def for_statement(frame: FunctionFrame, node: ast.For) -> Outcome:
    """A loop over a range, or over compile-time items."""
    iterable = frame.expression(node.iter)
    if isinstance(iterable, language.range):
        if node.orelse:
            frame.unsupported(node.orelse[0], "'else' of a run-time loop", "put it after the loop")
        _run_time_for(frame, node, iterable)
        return None
    # Everything but `tl.range` has a constant number of items, so the body is copied.
    return _unrolled(frame, node, iterate(frame, node.iter, iterable))


def _unrolled(frame: FunctionFrame, node: ast.For, items: Iterable[object]) -> Outcome:
    """One copy of the body for each item."""
    flags = (ITERATION_OVER, LOOP_LEFT)
    outer = {flag: frame.scope[flag] for flag in flags if flag in frame.scope}
    try:
        outcome = _copies(frame, node, iter(items))
    except ContinuationUnknown:
        frame.unsupported(node, "a 'return' at run time inside a loop", "compute a flag instead")
    # A flag that did not exist must be removed: an enclosing `if` could not join it.
    for flag in flags:
        frame.scope.pop(flag, None)
    frame.scope.update(outer)
    return outcome


def _copies(frame: FunctionFrame, node: ast.For, items: Iterator[object]) -> Outcome:
    """Copies for the remaining items; after a `break` at run time, under a condition."""
    for item in items:
        assign(frame, node.target, item)
        begin_iteration(frame)
        # None: with copies of the body after it, no side could run to the end of the function.
        outcome = lower_statements(frame, node.body, None)
        if isinstance(outcome, Returned):
            return outcome
        left = has_jumped(frame, LOOP_LEFT)
        if left is True:
            return None
        if left is not False:
            rest = UnlessJumped(node, LOOP_LEFT, lambda: _copies(frame, node, items))
            return unless_jumped(frame, rest)
    return lower_statements(frame, node.orelse, None)


def _run_time_for(frame: FunctionFrame, node: ast.For, loop: language.range) -> None:
    """A `cf.for`. A loop variable that is used elsewhere is carried, so that it has its last value
    after the loop; without a value before, a loop of no iterations leaves it at the start."""
    ctx = frame.at(node.iter)
    bounds = semantics.range_bounds(ctx, *semantics.integer_bounds(ctx, loop))
    targets = assigned_in([node.target])
    # A variable used in the loop only is computed from the counter, without a carried value.
    lasting = [name for name in targets if is_used_outside_loops(frame.source, name)]
    for name in lasting:
        # A carried value needs an initial one, where the name is undefined in Python.
        if name not in frame.scope or isinstance(frame.scope[name], DeferredError):
            frame.scope[name] = tensor(bounds.first)
    names = [n for n in assigned_in_loop(frame.source, node) if n not in targets] + lasting

    def iteration(carried: CarriedVariables, counter: Value, values: Sequence[Value]) -> None:
        carried.bind(frame, values)
        assign(frame, node.target, bounds.index(frame.at(node.iter), counter))
        _lower_body(frame, node)

    def attempt(carried: CarriedVariables, body: Block) -> ForOp | WhileOp:
        if carried.state.may_be_left:
            return _counting_while(frame, node, bounds, carried, body, iteration)
        counter = body.add_arg(bounds.lower.type)
        carried.add_arguments(body)
        with frame.into(body):
            iteration(carried, counter, body.args[1:])
            if has_jumped(frame, LOOP_LEFT) is not False:
                carried.state.may_be_left = True
                raise RetryLowering
            frame.at(node).emitter.emit(YieldOp(tuple(carried.next_values(frame))))
        inits = carried.initial_values(frame)
        return ForOp(bounds.lower, bounds.upper, bounds.step, inits, body, **_hints(loop))

    _emit_loop(frame, node, names, attempt)


def _counting_while(
    frame: FunctionFrame,
    node: ast.For,
    bounds: LoopBounds,
    carried: CarriedVariables,
    body: Block,
    iteration: Callable[[CarriedVariables, Value, Sequence[Value]], None],
) -> WhileOp:
    """A loop over a range that a `break` may leave; its last carried values are the counter and
    whether the loop has ended."""
    before = Block()
    for block in (before, body):
        carried.add_arguments(block)
        block.add_arg(bounds.lower.type)
        block.add_arg(i1, LOOP_LEFT)
    with frame.into(before):
        go = _not(frame, before.args[-1])
        frame.at(node).emitter.emit(ConditionOp(go, tuple(before.args)))
    try:
        with frame.into(body):
            *values, counter, _ = body.args
            iteration(carried, counter, values)
            ctx = frame.at(node)
            following, is_last = bounds.advance(ctx, counter)
            flag = tensor(as_value(ctx, frame.scope[LOOP_LEFT], i1))
            left = semantics.logical(ctx, "or", flag, tensor(is_last)).handle
            ctx.emitter.emit(YieldOp((*carried.next_values(frame), following, left)))
    except RetryLowering:
        erase_ops(before)
        raise
    inits = carried.initial_values(frame)
    return WhileOp((*inits, bounds.lower, bounds.is_empty(frame.ctx)), before, body)


def _hints(loop: language.range) -> dict[str, Any]:
    return {
        "stages": loop.num_stages,
        "unroll": loop.loop_unroll_factor,
        "flatten": loop.flatten,
        "warp_specialize": loop.warp_specialize,
        "licm": not loop.disable_licm,
    }


@statement(ast.While)
def while_statement(frame: FunctionFrame, node: ast.While) -> Outcome:
    """A loop while a scalar condition holds; the last carried value: a `break` has occurred."""
    if node.orelse:
        frame.unsupported(node.orelse[0], "'else' of a run-time loop", "put it after the loop")
    names = assigned_in_loop(frame.source, node)
    may_be_left = has_break(frame.source, node)

    def attempt(carried: CarriedVariables, body: Block) -> WhileOp | None:
        before = Block()
        for block in (before, body):
            carried.add_arguments(block)
            if may_be_left:
                block.add_arg(i1, LOOP_LEFT)
        try:
            with frame.into(before):
                carried.bind(frame, before.args)
                go = _has_next_iteration(frame, node, before.args[-1] if may_be_left else None)
                if go is None:
                    erase_ops(before)
                    return None
                # `before` forwards its arguments unchanged: a test has no effects on variables.
                frame.at(node).emitter.emit(ConditionOp(go, tuple(before.args)))
            with frame.into(body):
                carried.bind(frame, body.args)
                _lower_body(frame, node)
                flags = [frame.scope[LOOP_LEFT]] if may_be_left else []
                yielded = (*carried.next_values(frame), *_as_flags(frame, flags))
                frame.at(node).emitter.emit(YieldOp(yielded))
        except RetryLowering:
            erase_ops(before)
            raise
        flags = [NO] if may_be_left else []
        inits = (*carried.initial_values(frame), *_as_flags(frame, flags))
        return WhileOp(inits, before, body)

    _emit_loop(frame, node, names, attempt)
    return None


def _as_flags(frame: FunctionFrame, flags: Sequence[object]) -> list[Value]:
    return [as_value(frame.ctx, flag, i1) for flag in flags]


def _not(frame: FunctionFrame, left: Value) -> Value:
    return cast("tensor", logical_not(frame.ctx, tensor(left))).handle


def _has_next_iteration(frame: FunctionFrame, node: ast.While, left: Value | None) -> Value | None:
    """Whether there is another iteration; None if the condition is false at compile time.

    left: whether a `break` has occurred, in a loop with one: then the condition is not evaluated.
    """
    test = Block()
    with frame.into(test) if left is not None else nullcontext():
        go = _condition(frame, node)
    if not isinstance(go, bool):
        return go if left is None else _unless(frame, node, left, test, go)
    if not go:
        return None
    if left is not None:
        return _not(frame, left)
    reason, advice = "its condition is always true, and nothing leaves it", "add a 'break'"
    if not _reads_variable(frame, node.test):
        frame.fail(node.test, errors.InvalidOperation("run this loop", reason, advice))
    # In Triton a variable is a run-time value.
    warn_once(f"this loop never ends: {reason}", frame.loc(node.test), hint=advice)
    return constant(frame.at(node.test), True, i1)


def _reads_variable(frame: FunctionFrame, test: ast.expr) -> bool:
    """Whether an expression reads a number that a variable holds."""
    names = [part.id for part in ast.walk(test) if isinstance(part, ast.Name)]
    return any(typed_as(unwrap(frame.scope.get(name))) is not None for name in names)


def _unless(
    frame: FunctionFrame, node: ast.While, left: Value, orelse: Block, value: Value
) -> Value:
    """False if `left` holds, else the value that the block computes."""
    join = Join()
    join.add(NO, tensor(value))
    return emit_if(frame, node, left, Block(), orelse, join)[0]


def _condition(frame: FunctionFrame, node: ast.While) -> Value | bool:
    """The condition of a while loop as i1; True or False if it is a compile-time constant."""
    # A value bound in the test would exist in the `before` region only.
    for inner in ast.walk(node.test):
        if isinstance(inner, ast.NamedExpr):
            frame.unsupported(inner, "':=' in the condition of a loop", "assign inside the loop")
    condition = frame.expression(node.test)
    if isinstance(condition, language.condition):
        condition = condition.condition
    if is_static(condition):
        return bool(static_value(condition))
    return semantics.truth(frame.at(node.test), condition)


def _lower_body(frame: FunctionFrame, node: ast.For | ast.While) -> None:
    """The statements of one iteration."""
    begin_iteration(frame)
    lower_statements(frame, node.body, None)
    frame.at(node)


def _emit_loop(
    frame: FunctionFrame,
    node: ast.For | ast.While,
    names: Sequence[str],
    attempt: Callable[[CarriedVariables, Block], ForOp | WhileOp | None],
) -> None:
    """Lower a loop until the types of its carried variables are stable; then bind its results."""
    before = frame.scope
    state = FixpointState()
    op: ForOp | WhileOp | None = None
    while True:  # ends: each retry drops a variable or tries a type for the first time
        carried = carried_variables(frame, node, names, state)
        body = Block()
        frame.scope = dict(before)
        frame.loops += 1
        try:
            op = attempt(carried, body)
            break
        except RetryLowering:
            # The failed attempt uses values from before the loop; these uses are erased.
            erase_ops(body)
        finally:
            frame.loops -= 1
            frame.scope = before
    if op is None:
        return
    results = frame.at(node).emitter.emit(op).results
    # strict=False: the counter and flag of a loop that may be left follow the variables.
    for name, result in zip(carried.names, results, strict=False):
        result.name = name
    carried.bind(frame, results)
    kept = {variable.name for variable in carried.variables}
    for name in names:
        # Assigned in the loop only: after it, the name has a value if the loop ran at all.
        # Dropped names are bound to their error by `carried.bind`.
        if name not in kept and name not in state.dropped:
            error = errors.PossiblyUndefined(name, carried.construct)
            frame.scope[name] = DeferredError(error)
