"""`for` and `while`: `cf.for`, `cf.while`, or copies of the body where the iterations are known.

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
from tilewright.frontend.python.lower.activation import Activation, Jump, Outcome, statement
from tilewright.frontend.python.lower.branches import discard, refuse_jump
from tilewright.frontend.python.lower.carried import Again, Carried, Lessons, carried_variables
from tilewright.frontend.python.lower.facts import assigned_in, assigned_names, outlives
from tilewright.frontend.python.lower.iteration import iterate
from tilewright.frontend.python.lower.sequence import ContinuationUnknown, run
from tilewright.frontend.python.lower.targets import assign
from tilewright.frontend.python.lower.values import Deferred, is_static, static
from tilewright.ir import Block, Value
from tilewright.language import tensor
from tilewright.ops import ConditionOp, ForOp, WhileOp, YieldOp
from tilewright.support import errors


@statement(ast.For)
def for_statement(act: Activation, node: ast.For) -> Outcome:
    """A loop over a range, or over what is known at compile time."""
    iterable = act.expression(node.iter)
    if isinstance(iterable, language.range):
        if node.orelse:
            act.unsupported(node.orelse[0], "'else' of a run-time loop", "put it after the loop")
        _run_time_for(act, node, iterable)
        return None
    return _unrolled(act, node, iterate(act, node.iter, iterable))


def _unrolled(act: Activation, node: ast.For, items: Iterable[object]) -> Outcome:
    """One copy of the body for each item."""
    for item in items:
        assign(act, node.target, item)
        try:
            outcome = run(act, node.body, None)
        except ContinuationUnknown:
            act.unsupported(node, "a 'return' at run time inside a loop", "compute a flag instead")
        if isinstance(outcome, Jump):
            if isinstance(outcome.node, ast.Break):
                return None
        elif outcome is not None:
            return outcome
    return run(act, node.orelse, None)


def _run_time_for(act: Activation, node: ast.For, loop: language.range) -> None:
    """A `cf.for`. A loop variable that is used elsewhere is carried, so that it has its last value
    after the loop; where it had none before, one that never ran leaves it at the range's start."""
    ctx = act.at(node.iter)
    bounds = semantics.range_bounds(ctx, *semantics.integer_bounds(ctx, loop))
    targets = assigned_in([node.target])
    lasting = [name for name in targets if outlives(act.source, name)]
    for name in lasting:
        if name not in act.scope or isinstance(act.scope[name], Deferred):
            act.scope[name] = tensor(bounds.first)
    names = [n for n in assigned_names(act.source, node) if n not in targets] + lasting

    def attempt(carried: Carried, body: Block) -> ForOp:
        counter = body.add_arg(bounds.lower.type)
        carried.add_arguments(body)
        with act.into(body):
            carried.bind(act, body.args[1:])
            assign(act, node.target, bounds.index(act.at(node.iter), counter))
            _lower_body(act, node, carried)
        inits = carried.initial_values(act)
        return ForOp(bounds.lower, bounds.upper, bounds.step, inits, body, **_hints(loop))

    _emit_loop(act, node, names, attempt)


def _hints(loop: language.range) -> dict[str, Any]:
    return {
        "stages": loop.num_stages,
        "unroll": loop.loop_unroll_factor,
        "flatten": loop.flatten,
        "warp_specialize": loop.warp_specialize,
        "licm": not loop.disable_licm,
    }


@statement(ast.While)
def while_statement(act: Activation, node: ast.While) -> Outcome:
    """A loop as long as a scalar condition holds."""
    if node.orelse:
        act.unsupported(node.orelse[0], "'else' of a run-time loop", "put it after the loop")
    names = assigned_names(act.source, node)

    def attempt(carried: Carried, body: Block) -> WhileOp | None:
        before = Block()
        try:
            carried.add_arguments(before)
            with act.into(before):
                carried.bind(act, before.args)
                go = _condition(act, node)
                if go is None:
                    discard(before)
                    return None
                act.ctx.emitter.emit(ConditionOp(go, tuple(before.args)))
            carried.add_arguments(body)
            with act.into(body):
                carried.bind(act, body.args)
                _lower_body(act, node, carried)
        except Again:
            discard(before)
            raise
        return WhileOp(carried.initial_values(act), before, body)

    _emit_loop(act, node, names, attempt)
    return None


def _condition(act: Activation, node: ast.While) -> Value | None:
    """The condition of a while loop as i1; None if it is known to be false."""
    for inner in ast.walk(node.test):
        if isinstance(inner, ast.NamedExpr):
            act.unsupported(inner, "':=' in the condition of a loop", "assign inside the loop")
    condition = act.expression(node.test)
    if not is_static(condition):
        return semantics.truth(act.at(node.test), condition)
    if static(condition):
        reason = "its condition is always true, and kernels have no 'break'"
        act.fail(node.test, errors.InvalidOperation("run this loop", reason))
    return None


def _lower_body(act: Activation, node: ast.For | ast.While, carried: Carried) -> None:
    """The statements of a loop, and what the next iteration begins with."""
    outcome = run(act, node.body, None)
    if isinstance(outcome, Jump):
        refuse_jump(act, outcome)
    act.at(node)
    act.ctx.emitter.emit(YieldOp(tuple(carried.next_values(act))))


def _emit_loop(
    act: Activation,
    node: ast.For | ast.While,
    names: Sequence[str],
    attempt: Callable[[Carried, Block], ForOp | WhileOp | None],
) -> None:
    """Lower a loop, again while that teaches something; then bind its results."""
    before = act.scope
    lessons = Lessons()
    op: ForOp | WhileOp | None = None
    while True:
        carried = carried_variables(act, node, names, lessons)
        body = Block()
        act.scope = dict(before)
        act.loops += 1
        try:
            op = attempt(carried, body)
            break
        except Again:
            discard(body)
        finally:
            act.loops -= 1
            act.scope = before
    if op is None:
        return
    results = act.at(node).emitter.emit(op).results
    for name, result in zip(carried.names, results, strict=True):
        result.name = name
    carried.bind(act, results)
    kept = {variable.name for variable in carried.variables}
    for name in names:
        if name not in kept and name not in lessons.dropped:
            error = errors.PossiblyUndefined(name, carried.construct)
            act.scope[name] = Deferred(error)
