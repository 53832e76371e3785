"""Assignments, `return`, `assert`, `pass`, and the statements that kernels do not support."""

from __future__ import annotations

import ast

from tilewright import language
from tilewright.frontend import semantics
from tilewright.frontend.python.captured_names import MISSING
from tilewright.frontend.python.lower.assignment_targets import assign, bind
from tilewright.frontend.python.lower.calls import DEBUGGERS, refuse_debugger
from tilewright.frontend.python.lower.function_frame import (
    Ending,
    FunctionFrame,
    Outcome,
    Returned,
    statement,
)
from tilewright.frontend.python.lower.inlining import is_constexpr_annotation
from tilewright.frontend.python.lower.jump_flags import ITERATION_OVER, LOOP_LEFT, YES
from tilewright.frontend.python.lower.language_values import (
    NONE,
    describe,
    is_static,
    is_tuple,
    plain_value,
    static_value,
    variable_value,
)
from tilewright.frontend.python.lower.operators import apply_binary
from tilewright.language import constexpr, tensor, unused_result
from tilewright.ops import HintOp
from tilewright.support import errors


@statement(ast.Assign)
def assignment(frame: FunctionFrame, node: ast.Assign) -> Outcome:
    """`a = b = value`."""
    value = variable_value(frame.expression(node.value))
    for target in node.targets:
        assign(frame, target, value)
    return None


@statement(ast.AugAssign)
def augmented_assignment(frame: FunctionFrame, node: ast.AugAssign) -> Outcome:
    """`a += value`."""
    target = node.target
    # Reports that elements and attributes cannot be assigned; the value does not matter.
    if not isinstance(target, ast.Name):
        assign(frame, target, NONE)
        return None
    # A load of the target, so that an undefined name is reported as for any other use.
    before = frame.expression(ast.copy_location(ast.Name(target.id, ast.Load()), target))
    value = frame.expression(node.value)
    result = apply_binary(frame, node, node.op, before, value)
    bind(frame, target.id, variable_value(result))
    return None


@statement(ast.AnnAssign)
def annotated_assignment(frame: FunctionFrame, node: ast.AnnAssign) -> Outcome:
    """`a: tl.constexpr = value` makes a compile-time value a constexpr.

    A run-time value remains one, as in Triton: uses that need a compile-time value fail. Other
    annotations are ignored.
    """
    if node.value is None:
        return None
    value = frame.expression(node.value)
    if not is_constexpr_annotation(node.annotation):
        value = variable_value(value)
    # Tuples stay tuples of language values; numbers become plain constexprs.
    elif is_static(value) and not is_tuple(value):
        value = constexpr(plain_value(value))
    assign(frame, node.target, value)
    return None


@statement(ast.Expr)
def expression_statement(frame: FunctionFrame, node: ast.Expr) -> Outcome:
    """A call for its effects; a docstring."""
    if isinstance(node.value, ast.Call):
        _refuse_unused(frame, node.value.func)
    if not isinstance(node.value, ast.Constant):
        _keep_hint(frame, frame.expression(node.value))
    return None


def _refuse_unused(frame: FunctionFrame, function: ast.expr) -> None:
    """Refuse a call whose result must be used. Errors: UnusedResult."""
    # Other expressions may have side effects, and are evaluated once.
    if isinstance(function, ast.Name | ast.Attribute):
        reason = unused_result(frame.expression(function))
        if reason is not None:
            frame.at(function).fail(errors.UnusedResult, ast.unparse(function), reason)


def _keep_hint(frame: FunctionFrame, value: object) -> None:
    """`tl.multiple_of(x, 16)` as a statement: later uses of x have the property."""
    op = value.handle.op if isinstance(value, tensor) else None
    if not isinstance(op, HintOp):
        return
    for name, bound in frame.scope.items():
        if isinstance(bound, tensor) and bound.handle is op.x:
            frame.scope[name] = value


@statement(ast.Return)
def return_statement(frame: FunctionFrame, node: ast.Return) -> Outcome:
    """The end of this function."""
    # A loop op has no second exit; unrolled loops may return.
    if frame.loops:
        instead = "let the loop end by its bounds or condition, and return after it"
        triton = "Cannot have `return` statements inside `while` or `for` statements in triton."
        frame.unsupported(node, "a 'return' inside a loop", instead, triton)
    value = NONE if node.value is None else variable_value(frame.expression(node.value))
    return Returned(value, node)


@statement(ast.Pass)
def pass_statement(frame: FunctionFrame, node: ast.Pass) -> Outcome:
    """`pass`."""
    return None


@statement(ast.Break, ast.Continue)
def jump_statement(frame: FunctionFrame, node: ast.Break | ast.Continue) -> Outcome:
    """The end of an iteration, and of the loop."""
    frame.scope[ITERATION_OVER] = YES
    if isinstance(node, ast.Break):
        frame.scope[LOOP_LEFT] = YES
    return Ending.JUMP


@statement(ast.Assert)
def assert_statement(frame: FunctionFrame, node: ast.Assert) -> Outcome:
    """At compile time an assertion, at run time `tl.device_assert`."""
    condition = frame.expression(node.test)
    message = constexpr("") if node.msg is None else frame.expression(node.msg)
    if not is_static(message):
        frame.fail(node, errors.NotConstexpr("the message of an assertion", describe(message)))
    if not is_static(condition):
        args = (condition, message)
        semantics.call_builtin(frame.at(node), language.device_assert, args, {})
    elif not static_value(condition):
        detail = str(static_value(message)) or ast.unparse(node.test)
        frame.fail(node.test, errors.CompileTimeAssertionFailure(detail))
    return None


@statement(ast.Delete)
def delete_statement(frame: FunctionFrame, node: ast.Delete) -> Outcome:
    """`del`: unbind names."""
    for target in node.targets:
        if not isinstance(target, ast.Name):
            frame.unsupported(target, "deleting anything but a name")
        if frame.scope.pop(target.id, MISSING) is MISSING:
            frame.fail(target, errors.UndefinedName(target.id, frame.scope))
    return None


@statement(ast.Import)
def import_statement(frame: FunctionFrame, node: ast.Import) -> Outcome:
    """Refuse `import`: the kernel's module imports for it."""
    _refuse_import(frame, node, [alias.name for alias in node.names])


@statement(ast.ImportFrom)
def import_from_statement(frame: FunctionFrame, node: ast.ImportFrom) -> Outcome:
    """Refuse `from ... import`: the kernel's module imports for it."""
    _refuse_import(frame, node, [node.module or ""])


def _refuse_import(frame: FunctionFrame, node: ast.stmt, modules: list[str]) -> None:
    if any(module.partition(".")[0] in DEBUGGERS for module in modules):
        refuse_debugger(frame, node)
    frame.unsupported(node, "an import", "import at the top of the module")


def _refused(kind: type[ast.stmt], construct: str, instead: str) -> None:
    def refuse(frame: FunctionFrame, node: ast.stmt) -> Outcome:
        frame.unsupported(node, construct, instead)

    statement(kind)(refuse)


_AT_MODULE_LEVEL = "define it at module level"
for _kind, _construct, _instead in (
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
