"""The conditions of `#if` and `#elif`: integers of 64 bits, with C's operators (C17 6.10.1).

pcpp's own evaluator computes `1 << 99999999999` before it truncates. Here operators work on values
of 64 bits, and unevaluated parts (the right side of `0 && x`) may divide by zero, as in C. Names
that are not macros are 0, `true` is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from tilewright.frontend.c.c_literals import character_literal, integer_literal
from tilewright.frontend.c.c_tokens import PreprocessorToken
from tilewright.ir.types import i64, u64
from tilewright.support import errors
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """A value, and whether it is unsigned, which makes combined values unsigned."""

    value: int
    unsigned: bool = False


def _shifted(a: int, b: int) -> int:
    """`a << b`; 0 for negative amounts; bits shifted out are lost."""
    return a << b if 0 <= b < u64.bits else 0


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: bool(a or b)},
    {"&&": lambda a, b: bool(a and b)},
    {"|": lambda a, b: a | b},
    {"^": lambda a, b: a ^ b},
    {"&": lambda a, b: a & b},
    {"==": lambda a, b: a == b, "!=": lambda a, b: a != b},
    {
        "<": lambda a, b: a < b,
        ">": lambda a, b: a > b,
        "<=": lambda a, b: a <= b,
        ">=": lambda a, b: a >= b,
    },
    # C leaves large amounts undefined; 63 keeps the sign and bounds the work.
    {"<<": _shifted, ">>": lambda a, b: a >> min(max(b, 0), 63)},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": _quotient, "%": lambda a, b: a - _quotient(a, b) * b},
)
"""Binary operators, loosest first."""

_PRECEDENCE = {symbol: level for level, symbols in enumerate(_LEVELS) for symbol in symbols}
_OPERATORS = {symbol: apply for symbols in _LEVELS for symbol, apply in symbols.items()}
_CONDITIONS = frozenset(("||", "&&", "==", "!=", "<", ">", "<=", ">="))
_UNARY: dict[str, Callable[[int], int]] = {
    "-": lambda a: -a, "+": lambda a: a, "~": lambda a: ~a, "!": lambda a: not a,
}  # fmt: skip


def evaluate(tokens: Sequence[PreprocessorToken]) -> int:
    """The value of a condition whose macros are expanded. Errors: PreprocessorError, CSyntaxError.

    tokens: without blanks; not empty.
    """
    reader = _Reader(tokens)
    result = reader.conditional(live=True)
    if reader.at < len(tokens):
        reader.fail()
    return result.value


class _Reader:
    """Parse the tokens of a condition. live: whether the current part is evaluated."""

    def __init__(self, tokens: Sequence[PreprocessorToken]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def next(self) -> str:
        """The text of the current token; empty at the end."""
        return self.tokens[self.at].value if self.at < len(self.tokens) else ""

    def fail(self) -> NoReturn:
        """Raise for an unexpected token."""
        shown = f"'{self.next}'" if self.next else "the end of the line"
        raise errors.PreprocessorError(f"expected a condition on integers, found {shown}")

    def _take(self, symbol: str) -> None:
        """Consume a required symbol."""
        if self.next != symbol:
            self.fail()
        self.at += 1

    def conditional(self, live: bool) -> Number:
        """`test ? a : b`."""
        test = self.binary(0, live)
        if self.next != "?":
            return test
        self.at += 1
        then = self.conditional(live and bool(test.value))
        self._take(":")
        orelse = self.conditional(live and not test.value)
        # Both sides decide the type, even the one that is not taken (C17 6.5.15).
        chosen = then if test.value else orelse
        return _cut(chosen.value, then.unsigned or orelse.unsigned)

    def binary(self, level: int, live: bool) -> Number:
        """Operators of a level and those that bind tighter."""
        left = self.unary(live)
        # Precedence climbing: tighter operators are read by the recursive call.
        while (precedence := _PRECEDENCE.get(self.next, -1)) >= level:
            symbol = self.next
            self.at += 1
            decided = (symbol == "&&" and not left.value) or (symbol == "||" and left.value != 0)
            # + 1: operators of one level associate to the left.
            right = self.binary(precedence + 1, live and not decided)
            left = self._applied(symbol, left, right, live)
        return left

    def _applied(self, symbol: str, left: Number, right: Number, live: bool) -> Number:
        if symbol in ("/", "%") and not right.value:
            if live:
                raise errors.PreprocessorError("a division by 0 in a condition")
            # In an unevaluated part any value will do.
            return Number(0)
        # The amount of a shift does not affect the type of its result.
        unsigned = left.unsigned or (right.unsigned and symbol not in ("<<", ">>"))
        a, b = _cut(left.value, unsigned).value, _cut(right.value, unsigned).value
        # Comparisons and logic give a signed 0 or 1.
        return _cut(_OPERATORS[symbol](a, b), unsigned and symbol not in _CONDITIONS)

    def unary(self, live: bool) -> Number:
        """Prefix operators of a number, a name or parentheses."""
        symbols: list[str] = []
        # Collected in a loop: thousands of `!` must not exhaust the stack.
        while self.next in _UNARY:
            symbols.append(self.next)
            self.at += 1
        operand = self._primary(live)
        for symbol in reversed(symbols):
            unsigned = operand.unsigned and symbol != "!"
            operand = _cut(_UNARY[symbol](operand.value), unsigned)
        return operand

    def _primary(self, live: bool) -> Number:
        if self.at == len(self.tokens):
            self.fail()
        token = self.tokens[self.at]
        self.at += 1
        if token.value == "(":
            inner = self.conditional(live)
            self._take(")")
            return inner
        if token.type == "CPP_INTEGER":
            value, _ = integer_literal(token.value)
            return Number(value, "u" in token.value.lower() or value > i64.max_int)
        if token.type == "CPP_CHAR":
            return Number(character_literal(token.value))
        if token.type == "CPP_ID":
            # Names that are not macros are 0 (C17 6.10.1); `true` is 1 as in C23.
            return Number(int(token.value == "true"))
        self.at -= 1
        self.fail()


def _cut(value: int, unsigned: bool) -> Number:
    return Number((u64 if unsigned else i64).wrap(int(value)), unsigned)
