"""`for` and `while`: `cf.for`, `cf.while`, or copies of the body where the items are constants.

for k in range(K, 0, -16):        %n = sub %K, 0
    acc += f(k)              ->   %acc = cf.for %t = 0 to %n step 16 carrying (%a = %init)
                                    %k = sub %K, %t
                                    cf.yield (add %a, f(%k))
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilewright import language
from tilewright.frontend import semantics
from tilewright.frontend.lowering_frame import erase_ops
from tilewright.frontend.python.lower.assignment_targets import assign
from tilewright.frontend.python.lower.branches import refuse_jump
from tilewright.frontend.python.lower.function_frame import FunctionFrame, Jump, Outcome, statement
from tilewright.frontend.python.lower.iterables import iterate
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
    is_used_outside_loops,
)
from tilewright.ir import Block, Value
from tilewright.language import tensor
from tilewright.ops import ConditionOp, ForOp, WhileOp, YieldOp
from tilewright.support import errors


@statement(ast.For)
def for_statement(frame: FunctionFrame, node: ast.For) -> Outcome:
    """A loop over a range, or over what is known at compile time."""
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
    for item in items:
        assign(frame, node.target, item)
        try:
            # None: with copies of the body behind it, no side could run to the end of the function.
            outcome = lower_statements(frame, node.body, None)
        except ContinuationUnknown:
            frame.unsupported(
                node, "a 'return' at run time inside a loop", "compute a flag instead"
            )
        if isinstance(outcome, Jump):
            # `continue` needs nothing: the next copy follows anyway.
            if isinstance(outcome.node, ast.Break):
                return None
        elif outcome is not None:
            return outcome
    return lower_statements(frame, node.orelse, None)


def _run_time_for(frame: FunctionFrame, node: ast.For, loop: language.range) -> None:
    """A `cf.for`. A loop variable that is used elsewhere is carried, so that it has its last value
    after the loop; where it had none before, one that never ran leaves it at the range's start."""
    ctx = frame.at(node.iter)
    bounds = semantics.range_bounds(ctx, *semantics.integer_bounds(ctx, loop))
    targets = assigned_in([node.target])
    # A variable of the loop alone is recomputed from the counter, which costs no carried value.
    lasting = [name for name in targets if is_used_outside_loops(frame.source, name)]
    for name in lasting:
        # A carried value needs an initial one, where Python leaves the name undefined.
        if name not in frame.scope or isinstance(frame.scope[name], DeferredError):
            frame.scope[name] = tensor(bounds.first)
    names = [n for n in assigned_in_loop(frame.source, node) if n not in targets] + lasting

    def attempt(carried: CarriedVariables, body: Block) -> ForOp:
        counter = body.add_arg(bounds.lower.type)
        carried.add_arguments(body)
        with frame.into(body):
            carried.bind(frame, body.args[1:])
            assign(frame, node.target, bounds.index(frame.at(node.iter), counter))
            _lower_body(frame, node, carried)
        inits = carried.initial_values(frame)
        return ForOp(bounds.lower, bounds.upper, bounds.step, inits, body, **_hints(loop))

    _emit_loop(frame, node, names, attempt)


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
    """A loop as long as a scalar condition holds."""
    if node.orelse:
        frame.unsupported(node.orelse[0], "'else' of a run-time loop", "put it after the loop")
    names = assigned_in_loop(frame.source, node)

    def attempt(carried: CarriedVariables, body: Block) -> WhileOp | None:
        before = Block()
        try:
            carried.add_arguments(before)
            with frame.into(before):
                carried.bind(frame, before.args)
                go = _condition(frame, node)
                if go is None:
                    erase_ops(before)
                    return None
                # `before` forwards its arguments unchanged: a test has no effects on variables.
                frame.ctx.emitter.emit(ConditionOp(go, tuple(before.args)))
            carried.add_arguments(body)
            with frame.into(body):
                carried.bind(frame, body.args)
                _lower_body(frame, node, carried)
        except RetryLowering:
            erase_ops(before)
            raise
        return WhileOp(carried.initial_values(frame), before, body)

    _emit_loop(frame, node, names, attempt)
    return None


def _condition(frame: FunctionFrame, node: ast.While) -> Value | None:
    """The condition of a while loop as i1; None if it is false at compile time."""
    # A value bound in the test would exist in the `before` region only.
    for inner in ast.walk(node.test):
        if isinstance(inner, ast.NamedExpr):
            frame.unsupported(inner, "':=' in the condition of a loop", "assign inside the loop")
    condition = frame.expression(node.test)
    if not is_static(condition):
        return semantics.truth(frame.at(node.test), condition)
    if static_value(condition):
        reason = "its condition is always true, and kernels have no 'break'"
        frame.fail(node.test, errors.InvalidOperation("run this loop", reason))
    return None


def _lower_body(frame: FunctionFrame, node: ast.For | ast.While, carried: CarriedVariables) -> None:
    """The statements of a loop, and what the next iteration begins with."""
    outcome = lower_statements(frame, node.body, None)
    if isinstance(outcome, Jump):
        refuse_jump(frame, outcome)
    frame.at(node)
    frame.ctx.emitter.emit(YieldOp(tuple(carried.next_values(frame))))


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
            # The failed attempt uses values from before the loop; their use lists must forget it.
            erase_ops(body)
        finally:
            frame.loops -= 1
            frame.scope = before
    if op is None:
        return
    results = frame.at(node).emitter.emit(op).results
    for name, result in zip(carried.names, results, strict=True):
        result.name = name
    carried.bind(frame, results)
    kept = {variable.name for variable in carried.variables}
    for name in names:
        # Assigned in the loop only: after it, the name has a value if the loop ran at all.
        # Dropped names are bound to their error by `carried.bind`.
        if name not in kept and name not in state.dropped:
            error = errors.PossiblyUndefined(name, carried.construct)
            frame.scope[name] = DeferredError(error)
