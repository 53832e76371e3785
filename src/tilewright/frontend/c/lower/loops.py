"""Loops: `cf.for` where the trip count is computable, else `cf.while`.

for (int k = K; k > 0; k -= 16)        %n = sub %K, 0
    acc += f(k);                ->     %acc = cf.for %t = 0 to %n step 16 carrying (%a = %init)
                                         %k = sub %K, %t
                                         cf.yield (add %a, f(%k))
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import language as tl
from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.lower.branches import held_value, lower_branches
from tilewright.frontend.c.lower.counted_loops import (
    CountedLoop,
    emit_loop_bounds,
    match_counted_loop,
)
from tilewright.frontend.c.lower.declared_conversions import condition as truth
from tilewright.frontend.c.lower.declared_conversions import converted
from tilewright.frontend.c.lower.function_frame import (
    STATEMENTS,
    FunctionFrame,
    Unset,
    Variable,
    statement,
)
from tilewright.frontend.c.lower.statement_sequence import any_jump_happened, lower_statements
from tilewright.frontend.c.syntax_queries import assigned, jump_kinds
from tilewright.frontend.semantics import LoopBounds
from tilewright.ir import Block, Value
from tilewright.ir.types import i1
from tilewright.language import constexpr, tensor, unwrap
from tilewright.ops import ConditionOp, ForOp, WhileOp, YieldOp
from tilewright.support import errors


@statement(syntax.Loop)
def loop(frame: FunctionFrame, node: syntax.Loop) -> None:
    """Any loop."""
    # `break` and `continue` belong to the innermost loop.
    outer = frame.broken, frame.continued
    frame.broken = Variable("broken", i1, hidden=True) if "break" in jump_kinds(node.body) else None
    frame.continued = Variable("continued", i1, hidden=True)
    with frame.scope():
        if node.start is not None:
            STATEMENTS[type(node.start)](frame, node.start)
        count = match_counted_loop(frame, node)
        # None also where the types of the bounds do not permit counting: then it is a `while` loop.
        bounds = None if count is None else emit_loop_bounds(frame, node, count)
        carried = _carried(frame, node)
        if count is not None and bounds is not None:
            _counted_loop(frame, node, carried, count, bounds)
        else:
            _while_loop(frame, node, carried)
    frame.broken, frame.continued = outer


# --- what goes from one iteration to the next -----------------------------------------------------


def _carried(frame: FunctionFrame, node: syntax.Loop) -> list[Variable]:
    """The variables that an iteration may change and the next one may read."""
    parts = [part for part in (node.test, node.step, node.body) if part is not None]
    names = dict.fromkeys(name for part in parts for name in assigned(part))
    variables = [variable for name in names if (variable := frame.find(name)) is not None]
    # A variable without a value is not carried: no iteration may rely on an earlier one's value.
    chosen = [v for v in variables if not isinstance(frame.values[v], Unset)]
    hidden = [frame.broken] if frame.broken is not None else []
    if "return" in jump_kinds(node.body):
        hidden += [frame.returned, *([] if frame.result is None else [frame.result])]
    frame.at(node)
    for variable in hidden:
        # A hidden flag needs an initial value to be carried: false, or zero.
        before = frame.values.get(variable, Unset())
        frame.values[variable] = held_value(frame, variable, before)
    return list(dict.fromkeys([*chosen, *hidden]))


def _bind(frame: FunctionFrame, variables: Sequence[Variable], values: Sequence[Value]) -> None:
    for variable, value in zip(variables, values, strict=True):
        frame.set(variable, tensor(value))


def _add_arguments(block: Block, variables: Sequence[Variable]) -> None:
    for variable in variables:
        block.add_arg(variable.type, "" if variable.hidden else variable.name)


def _held_values(frame: FunctionFrame, variables: Sequence[Variable]) -> tuple[Value, ...]:
    return tuple(held_value(frame, v, frame.values[v]).handle for v in variables)


def _emit_loop(
    frame: FunctionFrame, node: syntax.Loop, op: ForOp | WhileOp, carried: list[Variable]
) -> None:
    """Emit the loop and assign its results; variables that only the loop assigns become unset."""
    construct = f"loop of line {frame.loc(node).line}"
    for variable, value in frame.values.items():
        if isinstance(value, Unset) and variable.name in assigned(node.body):
            # Only the loop assigns it: it has a value only if the loop ran, which is unknown.
            frame.values[variable] = Unset(construct)
    _bind(frame, carried, frame.at(node).emitter.emit(op).results)


def _lower_body(frame: FunctionFrame, node: syntax.Loop) -> None:
    """The statements of one iteration and its step."""
    assert frame.continued is not None
    frame.values[frame.continued] = Unset()
    lower_statements(frame, [node.body])
    step = node.step
    if step is None:
        return
    # C runs the step after `continue` as well, but not after `break` or `return`.
    stopped = any_jump_happened(frame, jump_kinds(node.body) & {"break", "return"})
    if stopped is None:
        frame.expression(step)
        return
    lower_branches(
        frame, node, stopped, lambda: None, lambda: _evaluate(frame, step), "step of the loop"
    )


def _evaluate(frame: FunctionFrame, node: syntax.Expression) -> None:
    frame.expression(node)


# --- the two kinds of loops -----------------------------------------------------------------------


def _counted_loop(
    frame: FunctionFrame,
    node: syntax.Loop,
    carried: list[Variable],
    loop: CountedLoop,
    bounds: LoopBounds,
) -> None:
    inits = _held_values(frame, carried)
    before = frame.values
    body = Block()
    counter = body.add_arg(bounds.lower.type)
    # A variable of the loop itself is local to it: the index need not be carried.
    if not loop.outside:
        position = carried.index(loop.variable)
        carried = [*carried[:position], *carried[position + 1 :]]
        inits = (*inits[:position], *inits[position + 1 :])
    _add_arguments(body, carried)
    frame.values = dict(before)
    with frame.into(body):
        _bind(frame, carried, body.args[1:])
        index = bounds.index(frame.at(node), counter)
        # The index has the common type of the bounds, the variable that of its declaration.
        frame.set(loop.variable, converted(frame, node, index, loop.variable.type))
        if loop.outside:
            _lower_body(frame, node)
        else:
            # `cf.for` performs the step.
            _lower_body(frame, _without_step(node))
        frame.at(node).emitter.emit(YieldOp(_held_values(frame, carried)))
    frame.values = before
    _emit_loop(frame, node, ForOp(bounds.lower, bounds.upper, bounds.step, inits, body), carried)


def _without_step(node: syntax.Loop) -> syntax.Loop:
    # A new node: its body is the same object, so cached queries of the body still hold.
    return syntax.Loop(node.span, node.keyword, node.start, node.test, None, node.body)


def _while_loop(frame: FunctionFrame, node: syntax.Loop, carried: list[Variable]) -> None:
    first = None
    if node.keyword == "do":
        # `do` runs once before its test: the test of `cf.while` reads a flag, true at first.
        first = Variable("again", i1, hidden=True)
        frame.raise_flag(first, True)
        carried = [*carried, first]
    inits = _held_values(frame, carried)
    base = frame.values
    before, body = Block(), Block()
    _add_arguments(before, carried)
    frame.values = dict(base)
    with frame.into(before):
        _bind(frame, carried, before.args)
        go = _condition(frame, node) if first is None else before.args[-1]
        frame.at(node).emitter.emit(ConditionOp(go, _held_values(frame, carried)))
    _add_arguments(body, carried)
    frame.values = dict(base)
    with frame.into(body):
        _bind(frame, carried, body.args)
        _lower_body(frame, node)
        if first is not None:
            frame.values[first] = tensor(_condition(frame, node))
        frame.at(node).emitter.emit(YieldOp(_held_values(frame, carried)))
    frame.values = base
    _emit_loop(frame, node, WhileOp(inits, before, body), carried)


def _condition(frame: FunctionFrame, node: syntax.Loop) -> Value:
    """Whether there is another iteration: no jump has left the loop, and its condition holds."""
    left = jump_kinds(node.body) & {"break", "return"}
    stopped = any_jump_happened(frame, left)
    if stopped is None:
        return _test(frame, node, left)
    go = Variable("go", i1, hidden=True)
    frame.raise_flag(go, False)

    def test_again() -> None:
        # After a jump the test is not evaluated: in C its effects would not happen.
        frame.values[go] = tensor(_test(frame, node, left))

    lower_branches(frame, node, stopped, lambda: None, test_again, "condition of the loop")
    # pop: the flag belongs to this test and must not be joined later.
    return held_value(frame, go, frame.values.pop(go)).handle


def _test(frame: FunctionFrame, node: syntax.Loop, left: frozenset[str]) -> Value:
    condition: object = constexpr(True) if node.test is None else frame.expression(node.test)
    if isinstance(condition, tensor):
        assert node.test is not None
        return truth(frame, node.test, condition)
    # Without an exit the launch would hang.
    if unwrap(condition) and not left:
        reason = "its condition is always true, and nothing leaves it"
        frame.fail(node, errors.InvalidOperation("run this loop", reason, "add a 'break'"))
    return semantics.cast_to(frame.at(node), bool(unwrap(condition)), tl.int1).handle
