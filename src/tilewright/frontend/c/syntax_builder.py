"""Build the syntax tree while the parser reduces: one method for each rule of the grammar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from lark import Transformer, v_args  # pyright: ignore[reportUnknownVariableType]

from tilewright.frontend.c import syntax
from tilewright.frontend.c.c_literals import character_literal, integer_literal, string_literal
from tilewright.frontend.c.c_tokens import Span, Token
from tilewright.frontend.c.preprocess import expansion_notes, location
from tilewright.ir.types import i32
from tilewright.support import errors

T = TypeVar("T")

_NOWHERE = Span("", 1, 0, 0)


def _over(parts: Sequence[Any]) -> Span:
    """The span from the first part that has a location to the last."""
    spans = [part.span for part in parts if isinstance(part, syntax.Node | Token)]
    return spans[0].to(spans[-1]) if spans else _NOWHERE


def _at(token: Token, read: Callable[[str], T]) -> T:
    """The value of a literal. Errors: CSyntaxError, with its location."""
    try:
        return read(token.value)
    except errors.CSyntaxError as problem:
        problem.notes = (*problem.notes, *expansion_notes(token.span, {}))
        raise problem.with_loc(location(token.span)) from None


class Build(Transformer[Any, Any]):
    """Semantic actions of the grammar. The arguments of a method are the nodes of the rule's right
    side."""

    def program(self, *items: Any) -> syntax.Program:
        functions = tuple(item for item in items if isinstance(item, syntax.Function))
        constants = tuple(item for item in items if isinstance(item, syntax.Declaration))
        return syntax.Program(_over(items), functions, constants)

    def global_(self, item: syntax.Declaration) -> syntax.Declaration:
        return item

    # `global` is a keyword of Python, so the method of that rule is named here.
    locals()["global"] = global_

    def function(
        self,
        specifiers: list[Token],
        pointers: list[tuple[str, ...]],
        name: Token,
        parameters: tuple[syntax.Parameter, ...] | None,
        body: syntax.Block,
    ) -> syntax.Function:
        type_ = self.type_name(specifiers, pointers)
        return syntax.Function(name.span, type_, name.value, parameters or (), body)

    def parameters(self, *items: syntax.Parameter) -> tuple[syntax.Parameter, ...]:
        return items

    def parameter(
        self,
        specifiers: list[Token],
        pointers: list[tuple[str, ...]],
        name: Token,
        extents: tuple[syntax.Expression, ...] | None,
        *attributes: syntax.Attribute,
    ) -> syntax.Parameter:
        type_ = self.type_name(specifiers, pointers)
        return syntax.Parameter(name.span, type_, name.value, extents or (), attributes)

    def attribute(self, name: Token, amount: syntax.Expression) -> syntax.Attribute:
        return syntax.Attribute(name.span, name.value, amount)

    def plain_attribute(self, name: Token) -> syntax.Attribute:
        return syntax.Attribute(name.span, name.value, None)

    def specifiers(self, *tokens: Token) -> list[Token]:
        return list(tokens)

    def pointers(self, *items: tuple[str, ...]) -> list[tuple[str, ...]]:
        return list(items)

    def pointer(self, *qualifiers: Token) -> tuple[str, ...]:
        return tuple(token.value for token in qualifiers)

    def type_name(
        self, specifiers: list[Token], pointers: list[tuple[str, ...]]
    ) -> syntax.TypeName:
        words = tuple(t.value for t in specifiers if t.type == "TYPE")
        qualifiers = tuple(t.value for t in specifiers if t.type != "TYPE")
        return syntax.TypeName(_over(specifiers), words, qualifiers, tuple(pointers))

    # --- statements -------------------------------------------------------------------------------

    def block(self, *body: syntax.Statement) -> syntax.Block:
        return syntax.Block(_over(body), body)

    def evaluate(self, value: syntax.Expression) -> syntax.Evaluate:
        return syntax.Evaluate(value.span, value)

    def empty(self) -> syntax.Block:
        # Without a token lark passes no argument, so there is no location.
        return syntax.Block(_NOWHERE, ())

    def if_then(self, test: syntax.Expression, then: syntax.Statement) -> syntax.If:
        return syntax.If(test.span, test, then, None)

    def if_else(
        self, test: syntax.Expression, then: syntax.Statement, orelse: syntax.Statement
    ) -> syntax.If:
        return syntax.If(test.span, test, then, orelse)

    def for_loop(
        self,
        start: Any,
        test: syntax.Expression | None,
        step: syntax.Expression | None,
        body: syntax.Statement,
    ) -> syntax.Loop:
        if isinstance(start, syntax.Expression):
            start = syntax.Evaluate(start.span, start)
        parts = [part for part in (start, test, step, body) if part is not None]
        return syntax.Loop(_over(parts), "for", start, test, step, body)

    def while_loop(self, test: syntax.Expression, body: syntax.Statement) -> syntax.Loop:
        return syntax.Loop(test.span, "while", None, test, None, body)

    def do_loop(self, body: syntax.Statement, test: syntax.Expression) -> syntax.Loop:
        return syntax.Loop(test.span, "do", None, test, None, body)

    def jump(self, word: Any, value: syntax.Expression | None = None) -> syntax.Jump:
        span = word.span if value is None else word.span.to(value.span)
        return syntax.Jump(span, word.value, value)

    def declaration(
        self, specifiers: list[Token], *variables: tuple[Any, ...]
    ) -> syntax.Declaration:
        made: list[syntax.Variable] = []
        for pointers, name, extents, value in variables:
            type_ = self.type_name(specifiers, pointers)
            made.append(syntax.Variable(name.span, type_, name.value, extents, value))
        return syntax.Declaration(_over([*specifiers, *made]), tuple(made))

    def variable(
        self, declarator: tuple[Any, ...], value: syntax.Expression | None = None
    ) -> tuple[Any, ...]:
        return (*declarator, value)

    def declarator(
        self,
        pointers: list[tuple[str, ...]],
        name: Token,
        extents: tuple[syntax.Expression, ...] | None,
    ) -> tuple[Any, ...]:
        return pointers, name, extents or ()

    def extents(self, *items: syntax.Expression) -> tuple[syntax.Expression, ...]:
        return items

    # --- expressions ------------------------------------------------------------------------------

    def comma(self, *items: syntax.Expression) -> syntax.Comma:
        return syntax.Comma(_over(items), items)

    def assign(
        self, target: syntax.Expression, operator: str, value: syntax.Expression
    ) -> syntax.Assign:
        # The operator's text is "+=" or "=": without the "=", "+" or nothing.
        return syntax.Assign(_over((target, value)), operator[:-1], target, value)

    def assign_operator(self, token: Token) -> str:
        return token.value

    def conditional(
        self, test: syntax.Expression, then: syntax.Expression, orelse: syntax.Expression
    ) -> syntax.Conditional:
        return syntax.Conditional(_over((test, orelse)), test, then, orelse)

    def binary(
        self, left: syntax.Expression, operator: Token, right: syntax.Expression
    ) -> syntax.Binary:
        return syntax.Binary(_over((left, right)), operator.value, left, right)

    def range(self, first: syntax.Expression, last: syntax.Expression) -> syntax.Range:
        return syntax.Range(_over((first, last)), first, last)

    def unary(self, operator: Token, operand: syntax.Expression) -> syntax.Expression:
        return syntax.Unary(_over((operator, operand)), operator.value, operand)

    def dereference(self, star: Token, pointer: syntax.Expression) -> syntax.Dereference:
        return syntax.Dereference(_over((star, pointer)), None, pointer)

    def masked_dereference(
        self, star: Token, mask: syntax.Expression, pointer: syntax.Expression
    ) -> syntax.Dereference:
        return syntax.Dereference(_over((star, pointer)), mask, pointer)

    def prefix_step(self, operator: Token, target: syntax.Expression) -> syntax.Step:
        return syntax.Step(_over((operator, target)), operator.value[0], target, True)

    def postfix_step(self, target: syntax.Expression, operator: Token) -> syntax.Step:
        return syntax.Step(_over((target, operator)), operator.value[0], target, False)

    def cast(self, start: Token, type_: syntax.TypeName, operand: syntax.Expression) -> syntax.Cast:
        return syntax.Cast(_over((start, operand)), type_, operand)

    def subscripted(self, base: syntax.Expression, *items: Any) -> syntax.Subscript:
        # The last item is the closing bracket, which counts for the location only.
        return syntax.Subscript(_over((base, *items)), base, items[:-1])

    def axis(self, token: Token) -> syntax.Axis:
        return syntax.Axis(token.span, token.value)

    def slice(self, *parts: Any) -> syntax.Slice:
        # Either side of the colon may be missing: its position identifies the present one.
        before_colon = [isinstance(part, Token) for part in parts].index(True)
        start, stop = parts[:before_colon], parts[before_colon + 1 :]
        return syntax.Slice(_over(parts), *(side[0] if side else None for side in (start, stop)))

    def call(self, name: Token, arguments: Any, end: Token) -> syntax.Call:
        return syntax.Call(_over((name, end)), name.value, arguments or ())

    def arguments(self, *items: Any) -> tuple[Any, ...]:
        return items

    def braces(self, *items: Any) -> syntax.Braces:
        return syntax.Braces(_over(items), items)

    def group(self, start: Token, inner: syntax.Expression, end: Token) -> syntax.Expression:
        return inner

    def name(self, token: Token) -> syntax.Name:
        return syntax.Name(token.span, token.value)

    def integer(self, token: Token) -> syntax.Number:
        value, dtype = _at(token, integer_literal)
        return syntax.Number(token.span, value, dtype)

    def floating(self, token: Token) -> syntax.Number:
        return syntax.Number(token.span, float(token.value.rstrip("fFlL")), None)

    def character(self, token: Token) -> syntax.Number:
        return syntax.Number(token.span, _at(token, character_literal), i32)

    def text(self, *tokens: Token) -> syntax.Text:
        # Adjacent strings are one (C17 6.4.5).
        return syntax.Text(_over(tokens), "".join(_at(t, string_literal) for t in tokens))


Builder: Any = cast("Callable[..., Any]", v_args)(inline=True)(Build)
"""`Build` with lark's calling convention: each method gets the parts of its rule as arguments."""
