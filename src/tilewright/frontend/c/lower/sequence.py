"""Runs statement lists; jumps become conditions, since control flow is structured.

A jump sets a hidden variable of what it leaves; what comes after a statement that may have jumped
runs only where none of its jumps has happened. Where one side of an `if` always jumps, the rest of
the list goes to the other side instead, which is what people mean by an early return:

    if (i >= n) return;            cf.if %c
    work();                 ->       then {}
                                     else { work() }
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.jumps import Jumps, ends, jumps
from tilewright.frontend.c.lower.activation import STATEMENTS, Activation, Unset, statement
from tilewright.frontend.c.lower.branches import branch
from tilewright.frontend.c.lower.conversion import condition as truth
from tilewright.frontend.c.lower.conversion import converted
from tilewright.ir import Value
from tilewright.language import tensor, unwrap
from tilewright.support import errors
from tilewright.support.deep import nested

Statements = Sequence[syntax.Statement]


@nested
def run(act: Activation, statements: Statements) -> None:
    """Lower a statement list."""
    todo = list(reversed(statements))
    while todo:
        node = todo.pop()
        if isinstance(node, syntax.If):
            condition = act.expression(node.test)
            if not isinstance(condition, tensor):
                chosen = node.then if unwrap(condition) else node.orelse
                todo += [] if chosen is None else [chosen]
                continue
            test = truth(act, node.test, condition)
            if ends(node.then) or ends(node.orelse):
                _run_either(act, node, test, todo[::-1])
                return
            _run_either(act, node, test, ())
        else:
            STATEMENTS[type(node)](act, node)
            if ends(node):
                return
        jumped = flags(act, jumps(node)) if todo else None
        if jumped is not None:
            _run_unless(act, node, jumped, todo[::-1])
            return


def _run_unless(act: Activation, node: syntax.Statement, jumped: Value, rest: Statements) -> None:
    """What follows a statement that may have jumped."""
    branch(act, node, jumped, lambda: None, lambda: run(act, rest), _construct(act, node))


def _run_either(act: Activation, node: syntax.If, test: Value, rest: Statements) -> None:
    """An `if`; what follows it in its list, if that is given, goes to the side that goes on."""
    follow: list[Statements] = [rest, ()] if ends(node.orelse) else [(), rest]
    lists = [
        [*([] if side is None else [side]), *more]
        for side, more in zip((node.then, node.orelse), follow, strict=True)
    ]
    then, orelse = (lambda: run(act, lists[0])), (lambda: run(act, lists[1]))
    branch(act, node, test, then, orelse, _construct(act, node))


def flags(act: Activation, left: Jumps) -> Value | None:
    """Whether one of some jumps has happened; None where none of them ever can have."""
    variables = {"break": act.broken, "continue": act.continued, "return": act.returned}
    happened: tensor | None = None
    for word in sorted(left):
        variable = variables[word]
        value = Unset() if variable is None else act.values.get(variable, Unset())
        if isinstance(value, Unset):
            continue
        ctx = act.ctx
        happened = value if happened is None else semantics.logical(ctx, "or", happened, value)
    return None if happened is None else happened.handle


def _construct(act: Activation, node: syntax.Node) -> str:
    return f"'if' of line {act.loc(node).line}"


@statement(syntax.If)
def if_statement(act: Activation, node: syntax.If) -> None:
    """An `if` that is the whole body of a loop or of another `if`."""
    run(act, [node])


@statement(syntax.Block)
def block(act: Activation, node: syntax.Block) -> None:
    """`{ ... }`."""
    with act.scope():
        run(act, node.body)


@statement(syntax.Evaluate)
def evaluate(act: Activation, node: syntax.Evaluate) -> None:
    """An expression for its effects."""
    act.expression(node.value)


@statement(syntax.Jump)
def jump(act: Activation, node: syntax.Jump) -> None:
    """`break`, `continue`, `return`: note that it has happened."""
    if node.keyword == "return":
        _return(act, node)
        return
    variable = act.broken if node.keyword == "break" else act.continued
    if variable is None:
        act.fail(node, errors.UnsupportedLanguageConstruct(f"'{node.keyword}' outside of a loop"))
    act.at(node)
    act.raise_flag(variable, True)


def _return(act: Activation, node: syntax.Jump) -> None:
    result = act.result
    if (node.value is None) is not (result is None):
        found = "no value" if node.value is None else "a value"
        reason = "it is declared void" if result is None else "its declaration promises one"
        operation = f"return {found} from {act.function.name}()"
        instead = "" if result is not None else "store it through a pointer parameter"
        act.fail(node, errors.InvalidOperation(operation, reason, instead))
    if node.value is not None and result is not None:
        act.set(result, converted(act, node.value, act.expression(node.value), result.type))
    act.at(node)
    act.raise_flag(act.returned, True)
