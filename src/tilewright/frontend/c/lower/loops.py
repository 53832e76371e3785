"""`for`, `while` and `do`: `cf.for` where the iterations can be counted, else `cf.while`.

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
from tilewright.frontend.c.jumps import assigned, jumps
from tilewright.frontend.c.lower.activation import (
    STATEMENTS,
    Activation,
    Unset,
    Variable,
    statement,
)
from tilewright.frontend.c.lower.branches import branch, holding
from tilewright.frontend.c.lower.conversion import condition as truth
from tilewright.frontend.c.lower.conversion import converted
from tilewright.frontend.c.lower.counting import Counted, bounds_of, counted
from tilewright.frontend.c.lower.sequence import flags, run
from tilewright.frontend.semantics import Bounds
from tilewright.ir import Block, Value
from tilewright.ir.types import i1
from tilewright.language import constexpr, tensor, unwrap
from tilewright.ops import ConditionOp, ForOp, WhileOp, YieldOp
from tilewright.support import errors


@statement(syntax.Loop)
def loop(act: Activation, node: syntax.Loop) -> None:
    """Any loop."""
    outer = act.broken, act.continued
    act.broken = Variable("broken", i1, hidden=True) if "break" in jumps(node.body) else None
    act.continued = Variable("continued", i1, hidden=True)
    with act.scope():
        if node.start is not None:
            STATEMENTS[type(node.start)](act, node.start)
        found = counted(act, node)
        bounds = None if found is None else bounds_of(act, node, found)
        carried = _carried(act, node)
        if found is not None and bounds is not None:
            _counted_loop(act, node, carried, found, bounds)
        else:
            _while_loop(act, node, carried)
    act.broken, act.continued = outer


# --- what goes from one iteration to the next -----------------------------------------------------


def _carried(act: Activation, node: syntax.Loop) -> list[Variable]:
    """The variables that an iteration may change and the next one may read."""
    parts = [part for part in (node.test, node.step, node.body) if part is not None]
    names = dict.fromkeys(name for part in parts for name in assigned(part))
    found = [variable for name in names if (variable := act.find(name)) is not None]
    chosen = [v for v in found if not isinstance(act.values[v], Unset)]
    hidden = [act.broken] if act.broken is not None else []
    if "return" in jumps(node.body):
        hidden += [act.returned, *([] if act.result is None else [act.result])]
    act.at(node)
    for variable in hidden:
        before = act.values.get(variable, Unset())
        act.values[variable] = holding(act, variable, before)
    return list(dict.fromkeys([*chosen, *hidden]))


def _bind(act: Activation, variables: Sequence[Variable], values: Sequence[Value]) -> None:
    for variable, value in zip(variables, values, strict=True):
        act.set(variable, tensor(value))


def _add_arguments(block: Block, variables: Sequence[Variable]) -> None:
    for variable in variables:
        block.add_arg(variable.type, "" if variable.hidden else variable.name)


def _held(act: Activation, variables: Sequence[Variable]) -> tuple[Value, ...]:
    return tuple(holding(act, v, act.values[v]).handle for v in variables)


def _finish(
    act: Activation, node: syntax.Loop, op: ForOp | WhileOp, carried: list[Variable]
) -> None:
    """Emit the loop; the variables hold its results, and those it alone assigns hold nothing."""
    construct = f"loop of line {act.loc(node).line}"
    for variable, value in act.values.items():
        if isinstance(value, Unset) and variable.name in assigned(node.body):
            act.values[variable] = Unset(construct)
    _bind(act, carried, act.at(node).emitter.emit(op).results)


def _body(act: Activation, node: syntax.Loop) -> None:
    """The statements of one iteration and its step."""
    assert act.continued is not None
    act.values[act.continued] = Unset()
    run(act, [node.body])
    step = node.step
    if step is None:
        return
    stopped = flags(act, jumps(node.body) & {"break", "return"})
    if stopped is None:
        act.expression(step)
        return
    branch(act, node, stopped, lambda: None, lambda: _do(act, step), "step of the loop")


def _do(act: Activation, node: syntax.Expression) -> None:
    act.expression(node)


# --- the two kinds of loops -----------------------------------------------------------------------


def _counted_loop(
    act: Activation, node: syntax.Loop, carried: list[Variable], loop: Counted, bounds: Bounds
) -> None:
    inits = _held(act, carried)
    before = act.values
    body = Block()
    counter = body.add_arg(bounds.lower.type)
    if not loop.outside:
        position = carried.index(loop.variable)
        carried = [*carried[:position], *carried[position + 1 :]]
        inits = (*inits[:position], *inits[position + 1 :])
    _add_arguments(body, carried)
    act.values = dict(before)
    with act.into(body):
        _bind(act, carried, body.args[1:])
        index = bounds.index(act.at(node), counter)
        act.set(loop.variable, converted(act, node, index, loop.variable.type))
        if loop.outside:
            _body(act, node)
        else:
            _body(act, _without_step(node))
        act.at(node).emitter.emit(YieldOp(_held(act, carried)))
    act.values = before
    _finish(act, node, ForOp(bounds.lower, bounds.upper, bounds.step, inits, body), carried)


def _without_step(node: syntax.Loop) -> syntax.Loop:
    return syntax.Loop(node.span, node.keyword, node.start, node.test, None, node.body)


def _while_loop(act: Activation, node: syntax.Loop, carried: list[Variable]) -> None:
    first = None
    if node.keyword == "do":
        first = Variable("again", i1, hidden=True)
        act.raise_flag(first, True)
        carried = [*carried, first]
    inits = _held(act, carried)
    base = act.values
    before, body = Block(), Block()
    _add_arguments(before, carried)
    act.values = dict(base)
    with act.into(before):
        _bind(act, carried, before.args)
        go = _condition(act, node) if first is None else before.args[-1]
        act.at(node).emitter.emit(ConditionOp(go, _held(act, carried)))
    _add_arguments(body, carried)
    act.values = dict(base)
    with act.into(body):
        _bind(act, carried, body.args)
        _body(act, node)
        if first is not None:
            act.values[first] = tensor(_condition(act, node))
        act.at(node).emitter.emit(YieldOp(_held(act, carried)))
    act.values = base
    _finish(act, node, WhileOp(inits, before, body), carried)


def _condition(act: Activation, node: syntax.Loop) -> Value:
    """Whether there is another iteration: no jump has left the loop, and its condition holds."""
    left = jumps(node.body) & {"break", "return"}
    stopped = flags(act, left)
    if stopped is None:
        return _test(act, node, left)
    go = Variable("go", i1, hidden=True)
    act.raise_flag(go, False)

    def ask() -> None:
        act.values[go] = tensor(_test(act, node, left))

    branch(act, node, stopped, lambda: None, ask, "condition of the loop")
    return holding(act, go, act.values.pop(go)).handle


def _test(act: Activation, node: syntax.Loop, left: frozenset[str]) -> Value:
    condition: object = constexpr(True) if node.test is None else act.expression(node.test)
    if isinstance(condition, tensor):
        assert node.test is not None
        return truth(act, node.test, condition)
    if unwrap(condition) and not left:
        reason = "its condition is always true, and nothing leaves it"
        act.fail(node, errors.InvalidOperation("run this loop", reason, "add a 'break'"))
    return semantics.cast_to(act.at(node), bool(unwrap(condition)), tl.int1).handle
