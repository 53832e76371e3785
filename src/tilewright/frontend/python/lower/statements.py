"""Assignments, `return`, `assert`, `pass`, and the statements that kernels do not have."""

from __future__ import annotations

import ast

from tilewright import language
from tilewright.frontend import semantics
from tilewright.frontend.python.environment import MISSING
from tilewright.frontend.python.lower.activation import (
    Activation,
    Jump,
    Outcome,
    Returned,
    statement,
)
from tilewright.frontend.python.lower.calls import DEBUGGERS, refuse_debugger
from tilewright.frontend.python.lower.inline import is_constexpr_annotation
from tilewright.frontend.python.lower.operators import apply_binary
from tilewright.frontend.python.lower.targets import assign, bind
from tilewright.frontend.python.lower.values import NONE, describe, is_static, is_tuple, static
from tilewright.language import constexpr
from tilewright.support import errors


@statement(ast.Assign)
def assignment(act: Activation, node: ast.Assign) -> Outcome:
    """`a = b = value`."""
    value = act.expression(node.value)
    for target in node.targets:
        assign(act, target, value)
    return None


@statement(ast.AugAssign)
def augmented_assignment(act: Activation, node: ast.AugAssign) -> Outcome:
    """`a += value`."""
    target = node.target
    if not isinstance(target, ast.Name):
        assign(act, target, NONE)
        return None
    before = act.expression(ast.copy_location(ast.Name(target.id, ast.Load()), target))
    value = act.expression(node.value)
    bind(act, target.id, apply_binary(act, node, node.op, before, value))
    return None


@statement(ast.AnnAssign)
def annotated_assignment(act: Activation, node: ast.AnnAssign) -> Outcome:
    """`a: tl.constexpr = value` demands a compile-time value; other annotations say nothing."""
    if node.value is None:
        return None
    value = act.expression(node.value)
    if is_constexpr_annotation(node.annotation):
        if not is_static(value):
            what = f"the constexpr variable '{ast.unparse(node.target)}'"
            act.fail(node.value, errors.NotConstexpr(what, describe(value)))
        if not is_tuple(value):
            value = constexpr(static(value))
    assign(act, node.target, value)
    return None


@statement(ast.Expr)
def expression_statement(act: Activation, node: ast.Expr) -> Outcome:
    """A call for its effects; a docstring."""
    if not isinstance(node.value, ast.Constant):
        act.expression(node.value)
    return None


@statement(ast.Return)
def return_statement(act: Activation, node: ast.Return) -> Outcome:
    """The end of this function."""
    if act.loops:
        instead = "let the loop end by its bounds or condition, and return after it"
        act.unsupported(node, "a 'return' inside a loop", instead)
    value = NONE if node.value is None else act.expression(node.value)
    return Returned(value, node)


@statement(ast.Pass)
def pass_statement(act: Activation, node: ast.Pass) -> Outcome:
    """Nothing."""
    return None


@statement(ast.Break, ast.Continue)
def jump_statement(act: Activation, node: ast.Break | ast.Continue) -> Outcome:
    """The end of an iteration; only unrolled loops can act on it."""
    return Jump(node)


@statement(ast.Assert)
def assert_statement(act: Activation, node: ast.Assert) -> Outcome:
    """At compile time an assertion, at run time `tl.device_assert`."""
    condition = act.expression(node.test)
    message = constexpr("") if node.msg is None else act.expression(node.msg)
    if not is_static(message):
        act.fail(node, errors.NotConstexpr("the message of an assertion", describe(message)))
    if not is_static(condition):
        args = (condition, message)
        semantics.call_builtin(act.at(node), language.device_assert, args, {})
    elif not static(condition):
        detail = str(static(message)) or ast.unparse(node.test)
        act.fail(node.test, errors.CompileTimeAssertionFailure(detail))
    return None


@statement(ast.Delete)
def delete_statement(act: Activation, node: ast.Delete) -> Outcome:
    """Forget names."""
    for target in node.targets:
        if not isinstance(target, ast.Name):
            act.unsupported(target, "deleting anything but a name")
        if act.scope.pop(target.id, MISSING) is MISSING:
            act.fail(target, errors.UndefinedName(target.id, act.scope))
    return None


@statement(ast.Import)
def import_statement(act: Activation, node: ast.Import) -> Outcome:
    """Kernels see the modules that their own module imports."""
    _refuse_import(act, node, [alias.name for alias in node.names])


@statement(ast.ImportFrom)
def import_from_statement(act: Activation, node: ast.ImportFrom) -> Outcome:
    """Kernels see the names that their own module imports."""
    _refuse_import(act, node, [node.module or ""])


def _refuse_import(act: Activation, node: ast.stmt, modules: list[str]) -> None:
    if any(module.partition(".")[0] in DEBUGGERS for module in modules):
        refuse_debugger(act, node)
    act.unsupported(node, "an import", "import at the top of the module")


def _refused(kind: type[ast.stmt], construct: str, instead: str) -> None:
    def refuse(act: Activation, node: ast.stmt) -> Outcome:
        act.unsupported(node, construct, instead)

    statement(kind)(refuse)


_AT_MODULE_LEVEL = "define it at module level"
for _kind, _construct, _instead in (
    (ast.FunctionDef, "a function inside a function", f"{_AT_MODULE_LEVEL}, under @jit"),
    (ast.AsyncFunctionDef, "an async function", "write 'def'"),
    (ast.ClassDef, "a class", _AT_MODULE_LEVEL),
    (ast.Try, "'try'", "check before: kernels raise nothing"),
    (ast.TryStar, "'try'", "check before: kernels raise nothing"),
    (ast.Raise, "'raise'", "use tl.static_assert, or tl.device_assert at run time"),
    (ast.With, "'with'", "call the functions directly"),
    (ast.AsyncWith, "'async with'", "call the functions directly"),
    (ast.AsyncFor, "'async for'", "write 'for'"),
    (ast.Match, "'match'", "write if, elif, else"),
    (ast.Global, "'global'", "kernels cannot assign globals; pass a pointer and store to it"),
    (ast.Nonlocal, "'nonlocal'", "return the value instead"),
):
    _refused(_kind, _construct, _instead)
