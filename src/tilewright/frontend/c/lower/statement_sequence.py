"""Statement lists, with jumps as conditions, since control flow is structured.

A jump sets a hidden variable of the loop or function that it leaves. Statements after one that may
have jumped run only where none of its jumps has happened. Where one side of an `if` always jumps,
as for an early return, the rest of the list moves into the other side instead:

    if (i >= n) return;            cf.if %c
    work();                 ->       then {}
                                     else { work() }
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.lower.branches import lower_branches
from tilewright.frontend.c.lower.declared_conversions import condition as truth
from tilewright.frontend.c.lower.declared_conversions import converted
from tilewright.frontend.c.lower.function_frame import STATEMENTS, FunctionFrame, Unset, statement
from tilewright.frontend.c.syntax_queries import Jumps, always_jumps, jump_kinds
from tilewright.ir import Value
from tilewright.language import tensor, unwrap
from tilewright.support import errors
from tilewright.support.fresh_stack import nested

Statements = Sequence[syntax.Statement]


@nested
def lower_statements(frame: FunctionFrame, statements: Statements) -> None:
    """Lower a statement list."""
    # A stack: the chosen side of a compile-time `if` is pushed before the following statements.
    todo = list(reversed(statements))
    while todo:
        node = todo.pop()
        if isinstance(node, syntax.If):
            condition = frame.expression(node.test)
            if not isinstance(condition, tensor):
                chosen = node.then if unwrap(condition) else node.orelse
                todo += [] if chosen is None else [chosen]
                continue
            test = truth(frame, node.test, condition)
            # Where one side always jumps, the rest moves into the other, which then needs no flag.
            if always_jumps(node.then) or always_jumps(node.orelse):
                _lower_if(frame, node, test, todo[::-1])
                return
            _lower_if(frame, node, test, ())
        else:
            STATEMENTS[type(node)](frame, node)
            if always_jumps(node):
                return
        # Nothing follows: the flag need not be tested here; enclosing lists test it.
        jumped = any_jump_happened(frame, jump_kinds(node)) if todo else None
        if jumped is not None:
            _lower_unless_jumped(frame, node, jumped, todo[::-1])
            return


def _lower_unless_jumped(
    frame: FunctionFrame, node: syntax.Statement, jumped: Value, rest: Statements
) -> None:
    """Lower the statements after one that may have jumped."""
    lower_branches(
        frame,
        node,
        jumped,
        lambda: None,
        lambda: lower_statements(frame, rest),
        _construct(frame, node),
    )


def _lower_if(frame: FunctionFrame, node: syntax.If, test: Value, rest: Statements) -> None:
    """An `if`; the statements after it, if given, move into the side that does not jump."""
    # Nothing runs after a side that jumps: the following statements move into the other side.
    follow: list[Statements] = [rest, ()] if always_jumps(node.orelse) else [(), rest]
    lists = [
        [*([] if side is None else [side]), *more]
        for side, more in zip((node.then, node.orelse), follow, strict=True)
    ]
    then, orelse = (
        (lambda: lower_statements(frame, lists[0])),
        (lambda: lower_statements(frame, lists[1])),
    )
    lower_branches(frame, node, test, then, orelse, _construct(frame, node))


def any_jump_happened(frame: FunctionFrame, left: Jumps) -> Value | None:
    """Whether one of some jumps has happened; None where none of them ever can have."""
    variables = {"break": frame.broken, "continue": frame.continued, "return": frame.returned}
    happened: tensor | None = None
    # Sorted, since the order of a frozenset differs between processes and would change the IR.
    for keyword in sorted(left):
        variable = variables[keyword]
        value = Unset() if variable is None else frame.values.get(variable, Unset())
        if isinstance(value, Unset):
            continue
        ctx = frame.ctx
        happened = value if happened is None else semantics.logical(ctx, "or", happened, value)
    return None if happened is None else happened.handle


def _construct(frame: FunctionFrame, node: syntax.Node) -> str:
    return f"'if' of line {frame.loc(node).line}"


@statement(syntax.If)
def if_statement(frame: FunctionFrame, node: syntax.If) -> None:
    """An `if` that is the whole body of a loop or of another `if`."""
    lower_statements(frame, [node])


@statement(syntax.Block)
def block(frame: FunctionFrame, node: syntax.Block) -> None:
    """`{ ... }`."""
    with frame.scope():
        lower_statements(frame, node.body)


@statement(syntax.Evaluate)
def evaluate(frame: FunctionFrame, node: syntax.Evaluate) -> None:
    """An expression for its effects."""
    frame.expression(node.value)


@statement(syntax.Jump)
def jump(frame: FunctionFrame, node: syntax.Jump) -> None:
    """`break`, `continue`, `return`: note that it has happened."""
    if node.keyword == "return":
        _return(frame, node)
        return
    variable = frame.broken if node.keyword == "break" else frame.continued
    if variable is None:
        frame.fail(node, errors.UnsupportedLanguageConstruct(f"'{node.keyword}' outside of a loop"))
    frame.at(node)
    frame.raise_flag(variable, True)


def _return(frame: FunctionFrame, node: syntax.Jump) -> None:
    result = frame.result
    if (node.value is None) is not (result is None):
        returned = "no value" if node.value is None else "a value"
        reason = "it is declared void" if result is None else "its declaration promises one"
        operation = f"return {returned} from {frame.function.name}()"
        instead = "" if result is not None else "store it through a pointer parameter"
        frame.fail(node, errors.InvalidOperation(operation, reason, instead))
    if node.value is not None and result is not None:
        # As in C, a return value converts to the declared type.
        frame.set(result, converted(frame, node.value, frame.expression(node.value), result.type))
    frame.at(node)
    frame.raise_flag(frame.returned, True)
