"""Rewriting of a kernel's Python code where Python's constructs differ from the language's.

`not x` calls `x.__bool__` and returns a Python bool; in a kernel it is an int1 for each element.
The same holds for `and`, `or`, chains of comparisons, `is` and `in`; Python's numbers lack the
methods of tensors; and Python does not report which variables a loop or branch has assigned. So
these parts of the function's tree are changed, and it is compiled again under its own file name and
positions: debuggers and tracebacks see no difference. T is HELPER, a `PythonConstructs`:

    not x, ~x             T.logical_not(x), T.invert(x)
    a and b               T.connective("and", b if T.needs_right_operand("and", a) else None)
    a < b < c             a < b and b < c
    a is b, a in b        T.compare("is", a, b), T.compare("in", a, b)
    x.to(tl.int64)        T.attribute(x, "to")(tl.int64)
    for i in items: ...   for i in T.loop(items, ("i", "total")): ...
    while c: ...          T.enter_while(1, ("total",)), then while T.while_condition(1, c): ...
    if c: x = 2           if T.branch_condition(1, c): x = 2; T.join_branch(1, ...)  (in both sides)
    a if c else b         T.conditional_value(1, a if T.branch_condition(1, c) else b, ...)
    f"{x!r}"              f"{T.formatted(x)!r}"
    assert c              assert T.assertion_holds(c)
    x, y = z              x, y = T.check_unpacking(T.variable_value(z), 2)
    x += y                x = T.variable_value(x + y)
    return x              return T.variable_value(x)
"""

from __future__ import annotations

import ast
import copy
import pickle
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from tilewright.frontend.python import (
    COMPARISON_NAMES,
    FunctionSource,
    assigned_in,
    early_reads,
    is_constexpr_annotation,
    local_names,
    misread_chain,
    source_of,
)
from tilewright.language import constexpr, member_names
from tilewright.support import SourceLoc, errors
from tilewright.support.fresh_stack import nested, on_fresh_stack

HELPER = "__tilewright__"
"""The global name of the `PythonConstructs` of rewritten code."""

_WRAPPER = "__tilewright_function__"
_MEMBERS = frozenset(member_names())
_UNARY: dict[type[ast.unaryop], str] = {ast.Not: "logical_not", ast.Invert: "invert"}


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """The code of the functions that a function defines, without comprehensions."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_name == "<lambda>" or not inner.co_name.startswith("<"):
                yield inner
            yield from functions_in(inner)


def rewritten(fn: FunctionType) -> tuple[CodeType, str]:
    """The code to run for a function, and its file, with its lines if they are available.

    The code is the function's own if its source text is not available.
    """
    try:
        source = source_of(fn)
    except errors.SourceNotAvailable:
        return fn.__code__, fn.__code__.co_filename
    key = ("rewritten", source.tree)
    code = source.facts.get(key)
    # Kept with the source: every launch and every thread runs the same code object.
    if code is None:
        code = source.facts[key] = _compiled(fn, source)
    return cast("CodeType", code), source.file


def _compiled(fn: FunctionType, source: FunctionSource) -> CodeType:
    """Compile the changed tree inside a function whose parameters are its free variables.

    Errors: NestedTooDeeply, for a tree that Python itself cannot compile.
    """
    try:
        return on_fresh_stack(_compile, fn, source)
    except RecursionError:
        code = fn.__code__
        loc = SourceLoc(source.file, code.co_firstlineno, 0, function=source.name)
        raise errors.NestedTooDeeply(f"the body of {source.name}()", loc=loc) from None


def _copied(tree: ast.FunctionDef) -> ast.FunctionDef:
    """A copy of a tree: by pickle, which is faster than deepcopy, if it is not too deep."""
    try:
        return cast("ast.FunctionDef", pickle.loads(pickle.dumps(tree)))
    except RecursionError:
        return cast("ast.FunctionDef", _deep_copy(tree))


@nested
def _deep_copy(node: object) -> object:
    if isinstance(node, list):
        return [_deep_copy(item) for item in cast("list[object]", node)]
    if not isinstance(node, ast.AST):
        return node
    fields = {name: _deep_copy(value) for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)


def _compile(fn: FunctionType, source: FunctionSource) -> CodeType:
    original = fn.__code__
    own = _copied(source.tree)
    function = _Rewriter(fn, source).function(own)
    # Free variables of the kernel stay free in the new code: parameters of a wrapper are.
    free = [ast.arg(name) for name in original.co_freevars]
    arguments = ast.arguments([], free, None, [], [], None, [])
    body: list[ast.stmt] = [function]
    # A function that calls itself by a global name must not find the wrapper's local one.
    if original.co_name not in original.co_freevars:
        body = [ast.Global([original.co_name]), function]
    wrapper = ast.FunctionDef(_WRAPPER, arguments, body, [], None)
    ast.copy_location(wrapper, function)
    module = ast.Module([wrapper], [])
    _fix_missing_locations(module)
    ast.increment_lineno(module, source.line_shift)
    # dont_inherit: future statements of this module must not apply to the kernel.
    code = compile(module, original.co_filename, "exec", dont_inherit=True)
    inner = _code_named(_code_named(code, _WRAPPER), original.co_name)
    return inner.replace(co_qualname=original.co_qualname)


def _fix_missing_locations(module: ast.Module) -> None:
    """`ast.fix_missing_locations` without recursion."""
    pending: list[tuple[ast.AST, ast.AST | None]] = [(module, None)]
    while pending:
        node, around = pending.pop()
        if around is not None and "lineno" in node._attributes and not hasattr(node, "lineno"):
            # Parents come first on the stack, so a location to copy is there already.
            ast.copy_location(node, around)
        located = node if hasattr(node, "lineno") else around
        pending += [(child, located) for child in ast.iter_child_nodes(node)]


def _code_named(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


class _Rewriter(ast.NodeTransformer):
    """Changes the copy of a tree in place; a method for each class of node."""

    def __init__(self, fn: FunctionType, source: FunctionSource) -> None:
        self._globals = fn.__globals__
        self._source = source
        self._locals = local_names(source)
        self._tests = 0
        self._temporaries = 0
        self._may_assign = True

    @nested
    def visit(self, node: ast.AST) -> Any:
        return super().visit(node)

    def function(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        """The whole function, without parts that are evaluated at its definition."""
        tree.decorator_list, tree.returns = [], None
        arguments = tree.args
        for parameter in ast.walk(arguments):
            if isinstance(parameter, ast.arg):
                parameter.annotation = None
        # Defaults belong to the function object, made later; their expressions must not run here.
        arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
        arguments.kw_defaults = [ast.Constant(None) for _ in arguments.kw_defaults]
        self.generic_visit(tree)
        tree.body[:0] = [_global_until_assigned(tree, n) for n in self._read_early()]
        return tree

    def _read_early(self) -> list[str]:
        """Names that are read before they are assigned, if they are global constexprs."""
        names = sorted(early_reads(self._source) & self._locals)
        return [name for name in names if isinstance(self._globals.get(name), constexpr)]

    # --- logic ------------------------------------------------------------------------------------

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        method = _UNARY.get(type(node.op))
        return node if method is None else _call(node, method, node.operand)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        result = node.values[0]
        for operand in node.values[1:]:
            result = _connective(
                node, "and" if isinstance(node.op, ast.And) else "or", result, operand
            )
        return result

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        # Before generic_visit, which changes the operands that the message quotes.
        warning = misread_chain(self._source, node)
        span = (node.lineno + self._source.line_shift, node.col_offset, node.end_col_offset)
        self.generic_visit(node)
        result: ast.expr | None = None
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            again = right
            # The last operand is used once; those between are used on both sides.
            if right is not node.comparators[-1]:
                right, again = self._twice(right)
            one = _call(node, "compare", ast.Constant(COMPARISON_NAMES[type(op)]), left, right)
            result = one if result is None else _connective(node, "and", result, one)
            left = again
        assert result is not None
        if warning is None:
            return result
        return _call(node, "warn_of_chain", result, *map(ast.Constant, (warning, *span)))

    def _twice(self, node: ast.expr) -> tuple[ast.expr, ast.expr]:
        """An expression for its first and its second use, which must not evaluate it again."""
        # Names and constants have no effects: they can be written twice.
        if isinstance(node, ast.Name | ast.Constant) or not self._may_assign:
            return node, copy.deepcopy(node)
        self._temporaries += 1
        name = f"__middle_{self._temporaries}"
        first = ast.NamedExpr(ast.Name(name, ast.Store()), node)
        second = ast.Name(name, ast.Load())
        return ast.copy_location(first, node), ast.copy_location(second, node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Check that the iterable of a comprehension assigns no names."""
        # Python forbids `:=` in the iterable of a comprehension.
        outer, self._may_assign = self._may_assign, False
        node.iter = self.visit(node.iter)
        self._may_assign = outer
        node.ifs = [self.visit(condition) for condition in node.ifs]
        return node

    # --- values -----------------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        # Attributes of modules are unchanged: `tl.sum` is not a member of a number.
        if not isinstance(node.ctx, ast.Load) or self._is_module(node.value):
            return node
        if node.attr not in _MEMBERS and node.attr not in ("value", "type"):
            return node
        return _call(node, "attribute", node.value, ast.Constant(node.attr))

    def _is_module(self, node: ast.expr) -> bool:
        """Whether an expression names a global module, or a module in one."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name) or node.id in self._locals:
            return False
        return isinstance(self._globals.get(node.id), ModuleType)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        # Before the visit, which wraps the sides in calls.
        others = tuple(filter(None, map(_name_or_number, (node.body, node.orelse))))
        self.generic_visit(node)
        number = self._test()
        node.test = _call(node.test, "branch_condition", number, node.test)
        return _call(node, "conditional_value", copy.copy(number), node, _constant(others))

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        self.generic_visit(node)
        node.value = _call(node.value, "formatted", node.value)
        return node

    def _test(self) -> ast.Constant:
        self._tests += 1
        return ast.Constant(self._tests)

    # --- statements -------------------------------------------------------------------------------

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.NamedExpr:
        self.generic_visit(node)
        node.value = _variable_value(node.value)
        return node

    def visit_Return(self, node: ast.Return) -> ast.Return:
        self.generic_visit(node)
        node.value = node.value and _variable_value(node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.Assign | ast.AugAssign:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        result = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
        assignment = ast.Assign([node.target], _variable_value(result))
        return ast.copy_location(assignment, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        self.generic_visit(node)
        if node.value is not None:
            method = "variable_value"
            if is_constexpr_annotation(node.annotation):
                method = "constexpr_value"
            node.value = _call(node.value, method, node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        self.generic_visit(node)
        node.value = _variable_value(node.value)
        counts = {
            len(target.elts)
            for target in node.targets
            if isinstance(target, ast.Tuple | ast.List)
            # With a star any number of items fits, within limits that Python checks itself.
            and not any(isinstance(element, ast.Starred) for element in target.elts)
        }
        # Sorted, as the order of a set must not decide what code is compiled.
        for count in sorted(counts):
            node.value = _call(node.targets[0], "check_unpacking", node.value, ast.Constant(count))
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        names = (*assigned_in([node.target]), *assigned_in(node.body))
        self.generic_visit(node)
        node.iter = _call(node.iter, "loop", node.iter, _constant(names))
        return node

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        names = assigned_in([*node.body, node.test])
        self.generic_visit(node)
        number = self._test()
        begin = ast.Expr(_call(node.test, "enter_while", number, _constant(names)))
        node.test = _call(node.test, "while_condition", copy.copy(number), node.test)
        return [ast.copy_location(begin, node.test), node]

    def visit_If(self, node: ast.If) -> ast.If:
        # Before the visit, which may add helper variables.
        others = _joined_names(node)
        self.generic_visit(node)
        if others:
            number = self._test()
            node.test = _call(node.test, "branch_condition", number, node.test)
            for side in (node.body, node.orelse):
                call = _call(node.test, "join_branch", copy.copy(number), _constant(others))
                joined = _at_end_of(side, ast.Expr(call), node.test)
                # Nothing runs after a jump; values that a side sets are joined before it.
                jumps = bool(side) and isinstance(side[-1], ast.Break | ast.Continue)
                side.insert(len(side) - jumps, joined)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        value = node.value
        shown = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
        self.generic_visit(node)
        if isinstance(node.value, ast.Call) and shown:
            function = node.value.func
            node.value.func = _call(function, "unused_call", function, ast.Constant(shown))
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        self.generic_visit(node)
        node.test = _call(node.test, "assertion_holds", node.test)
        return node


Other = tuple[str, object]
"""A simple value that a branch may have instead: ("name", of a variable) or ("number", itself)."""


def _name_or_number(node: ast.expr) -> Other | None:
    """A name, or a number with its sign; None for other expressions."""
    if isinstance(node, ast.Name):
        return "name", node.id
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _name_or_number(node.operand)
        return ("number", -inner[1]) if inner and isinstance(inner[1], int | float) else None
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return "number", node.value
    return None


def _joined_names(node: ast.If) -> tuple[tuple[str, tuple[Other, ...]], ...]:
    """Names that an `if` may give different values, and the numbers among these.

    Names that both sides set alike are left out.
    """
    alike = _common_statements(node.body, node.orelse)
    statements = [s for s in (*node.body, *node.orelse) if s not in alike]
    numbers: dict[str, list[Other]] = {}
    for statement in statements:
        # `x = 1` only: other values are compared when they are computed, at run time
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], _name_or_number(statement.value)
            if isinstance(target, ast.Name) and value is not None and value[0] == "number":
                numbers.setdefault(target.id, []).append(value)
    # an annotated constexpr stays a constant in both sides
    names = assigned_in(s for s in statements if not isinstance(s, ast.AnnAssign))
    return tuple((name, tuple(numbers.get(name, ()))) for name in names)


def _common_statements(body: list[ast.stmt], orelse: list[ast.stmt]) -> set[ast.stmt]:
    """The statements of each side that the other side has as well, textually."""
    texts: list[dict[ast.stmt, str]] = []
    for side, other in ((body, orelse), (orelse, body)):
        # Unparsing is slow: only statements with a counterpart of their kind are compared.
        kinds = set(map(type, other))
        texts.append({s: ast.unparse(s) for s in side if type(s) in kinds})
    both = set(texts[0].values()) & set(texts[1].values())
    return {s for side in texts for s, text in side.items() if text in both}


def _connective(node: ast.expr, word: str, left: ast.expr, right: ast.expr) -> ast.expr:
    """`left and right`; the right operand is evaluated only if the left one does not decide."""
    needs_right = _call(node, "needs_right_operand", ast.Constant(word), left)
    chosen = ast.copy_location(ast.IfExp(needs_right, right, ast.Constant(None)), node)
    return _call(node, "connective", ast.Constant(word), chosen)


def _call(node: ast.expr, method: str, *args: ast.expr) -> ast.Call:
    """A call of a construct that replaces `node`."""
    function = ast.Attribute(ast.Name(HELPER, ast.Load()), method, ast.Load())
    call = ast.Call(function, list(args), [])
    # All parts need locations; `_fix_missing_locations` would give them those of the parent.
    for part in (call, function, function.value):
        ast.copy_location(part, node)
    return call


def _global_until_assigned(tree: ast.FunctionDef, name: str) -> ast.stmt:
    """`name = T.outside("name")`."""
    value = ast.Constant(name)
    ast.copy_location(value, tree)
    target = ast.copy_location(ast.Name(name, ast.Store()), tree)
    return ast.copy_location(ast.Assign([target], _call(value, "outside", value)), tree)


def _variable_value(node: ast.expr) -> ast.expr:
    """The expression for the value of a variable."""
    return _call(node, "variable_value", node)


def _at_end_of(side: list[ast.stmt], added: ast.Expr, otherwise: ast.expr) -> ast.Expr:
    """A statement on the last line of a side of an `if`, so that no debugger stops there."""
    place = side[-1] if side else otherwise
    for part in ast.walk(ast.copy_location(added, place)):
        if isinstance(part, ast.expr | ast.stmt):
            part.lineno = part.end_lineno = place.end_lineno or place.lineno
            part.col_offset = part.end_col_offset = place.end_col_offset or 0
    return added


def _constant(value: Any) -> ast.Constant:
    """A constant of any kind that code objects support, including tuples."""
    return ast.Constant(value)
