"""Random expressions and statements on C's integers, as text and as values.

An `Expression` is the text, its type, and a function that computes it for given variables, by the
rules of C17 6.3.1 with two's complement that wraps. Nothing is undefined: shifts are by 0 to 7,
divisors are not 0, and not -1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

Variables = Mapping[str, int]


@dataclass(frozen=True)
class CType:
    """An integer type of C on a machine with a long of 64 bits."""

    name: str
    bits: int
    signed: bool

    def wrap(self, value: int) -> int:
        if self.name == "bool":
            return int(value != 0)
        value %= 1 << self.bits
        return value - (1 << self.bits) if self.signed and value >> (self.bits - 1) else value


INT, UINT = CType("int", 32, True), CType("unsigned int", 32, False)
LONG, ULONG = CType("long", 64, True), CType("unsigned long", 64, False)
TYPES = (
    CType("bool", 1, False),
    CType("signed char", 8, True),
    CType("unsigned char", 8, False),
    CType("short", 16, True),
    CType("unsigned short", 16, False),
    INT,
    UINT,
    LONG,
    ULONG,
)


@dataclass(frozen=True)
class Expression:
    text: str
    type: CType
    value: Callable[[Variables], int]


def promoted(type_: CType) -> CType:
    return INT if type_.bits < 32 else type_


def common(a: CType, b: CType) -> CType:
    """The usual arithmetic conversions."""
    a, b = promoted(a), promoted(b)
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return b if a.signed else a


_ARITHMETIC = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_,
    "|": operator.or_, "^": operator.xor,
}  # fmt: skip
_COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_NUMBERS = (0, 1, 2, 3, 7, 15, 100, 127, 128, 200, 255, 256, 1000, 32767, 65535, 2**31 - 1, 2**31)
_LONG_NUMBERS = (*_NUMBERS, 2**32 - 1, 2**32, 2**40 + 3, 2**63 - 1)


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


class Expressions:
    """Makes expressions on the variables of some types."""

    def __init__(self, random: Random, variables: Mapping[str, CType]) -> None:
        self.random = random
        self.variables = variables

    def make(self, depth: int) -> Expression:
        if depth <= 0 or self.random.random() < 0.1:
            return self.random.choice((self._variable, self._variable, self._literal))()
        kinds = (
            *(self._binary,) * 3, self._shift, self._division, self._comparison, self._unary,
            self._cast, self._conditional, self._logical,
        )  # fmt: skip
        return self.random.choice(kinds)(depth - 1)

    def _variable(self) -> Expression:
        name, type_ = self.random.choice(list(self.variables.items()))
        return Expression(name, type_, lambda v: v[name])

    def _literal(self) -> Expression:
        number = self.random.choice(_LONG_NUMBERS)
        suffix = self.random.choice(("", "", "", "u", "l", "ul"))
        hexadecimal = self.random.random() < 0.3
        for type_ in (INT, UINT, LONG, ULONG):
            wanted = ("u" not in suffix or not type_.signed) and (
                "l" not in suffix or type_.bits == 64
            )
            if hexadecimal or "u" in suffix or type_.signed:
                if wanted and number < 1 << (type_.bits - type_.signed):
                    text = f"{number:#x}{suffix}" if hexadecimal else f"{number}{suffix}"
                    return Expression(text, type_, lambda v: number)
        raise AssertionError(number)

    def _binary(self, depth: int) -> Expression:
        a, b = self.make(depth), self.make(depth)
        symbol = self.random.choice(list(_ARITHMETIC))
        return _combined(symbol, a, b, _ARITHMETIC[symbol])

    def _comparison(self, depth: int) -> Expression:
        a, b = self.make(depth), self.make(depth)
        symbol = self.random.choice(list(_COMPARISONS))
        both, compare = common(a.type, b.type), _COMPARISONS[symbol]
        return Expression(
            f"({a.text} {symbol} {b.text})",
            INT,
            lambda v: int(compare(both.wrap(a.value(v)), both.wrap(b.value(v)))),
        )

    def _shift(self, depth: int) -> Expression:
        a, b = self.make(depth), self.make(depth)
        symbol = self.random.choice(("<<", ">>"))
        shift = operator.lshift if symbol == "<<" else operator.rshift
        type_ = promoted(a.type)
        return Expression(
            f"({a.text} {symbol} ({b.text} & 7))",
            type_,
            lambda v: type_.wrap(shift(type_.wrap(a.value(v)), b.value(v) & 7)),
        )

    def _division(self, depth: int) -> Expression:
        a, b = self.make(depth), self.make(depth)
        if self.random.random() < 0.5:
            divisor = Expression(
                f"(({b.text} & 7) + 1)", promoted(b.type), lambda v: (b.value(v) & 7) + 1
            )
        else:
            type_ = promoted(b.type)
            divisor = Expression(
                f"(-2 - ({b.text} & 7))", type_, lambda v: type_.wrap(-2 - (b.value(v) & 7))
            )
        if self.random.random() < 0.5:
            return _combined("/", a, divisor, quotient)
        return _combined("%", a, divisor, lambda x, y: x - quotient(x, y) * y)

    def _unary(self, depth: int) -> Expression:
        a = self.make(depth)
        symbol = self.random.choice("-+~!")
        if symbol == "!":
            return Expression(f"(!{a.text})", INT, lambda v: int(not a.value(v)))
        apply = {"-": operator.neg, "+": operator.pos, "~": operator.invert}[symbol]
        type_ = promoted(a.type)
        return Expression(f"({symbol} {a.text})", type_, lambda v: type_.wrap(apply(a.value(v))))

    def _cast(self, depth: int) -> Expression:
        a, type_ = self.make(depth), self.random.choice(TYPES)
        return Expression(f"(({type_.name}) {a.text})", type_, lambda v: type_.wrap(a.value(v)))

    def _conditional(self, depth: int) -> Expression:
        test, a, b = self.make(depth), self.make(depth), self.make(depth)
        both = common(a.type, b.type)
        return Expression(
            f"({test.text} ? {a.text} : {b.text})",
            both,
            lambda v: both.wrap(a.value(v) if test.value(v) else b.value(v)),
        )

    def _logical(self, depth: int) -> Expression:
        a, b = self.make(depth), self.make(depth)
        if self.random.random() < 0.5:
            return Expression(
                f"({a.text} && {b.text})", INT, lambda v: int(bool(a.value(v) and b.value(v)))
            )
        return Expression(
            f"({a.text} || {b.text})", INT, lambda v: int(bool(a.value(v) or b.value(v)))
        )


def _combined(
    symbol: str, a: Expression, b: Expression, apply: Callable[[int, int], int]
) -> Expression:
    both = common(a.type, b.type)
    return Expression(
        f"({a.text} {symbol} {b.text})",
        both,
        lambda v: both.wrap(apply(both.wrap(a.value(v)), both.wrap(b.value(v)))),
    )


@dataclass(frozen=True)
class Statements:
    """Declares `name`, changes it, and what it holds in the end.

    `text` has the word EXTENTS behind the name that it declares.
    """

    text: str
    name: str
    value: Callable[[Variables], int]


def statements(made: Expressions, name: str, depth: int) -> Statements:
    """`short t = e;`, then perhaps `t += e;` and `t++;`."""
    random = made.random
    type_, start = random.choice(TYPES[1:]), made.make(depth)
    lines = [f"{type_.name} {name}EXTENTS = {start.text};"]
    steps: list[Callable[[Variables, int], int]] = []
    for _ in range(random.randrange(3)):
        symbol = random.choice((*_ARITHMETIC, "<<", ">>", "++", "--"))
        if symbol in ("++", "--"):
            lines.append(f"{name}{symbol};")
            amount = 1 if symbol == "++" else -1
            steps.append(lambda v, t, amount=amount: type_.wrap(t + amount))
            continue
        operand = made.make(depth - 1)
        if symbol in ("<<", ">>"):
            lines.append(f"{name} {symbol}= ({operand.text} & 7);")
            shift = operator.lshift if symbol == "<<" else operator.rshift
            steps.append(
                lambda v, t, shift=shift, o=operand: type_.wrap(
                    promoted(type_).wrap(shift(t, o.value(v) & 7))
                )
            )
            continue
        lines.append(f"{name} {symbol}= {operand.text};")
        both = common(type_, operand.type)
        steps.append(
            lambda v, t, f=_ARITHMETIC[symbol], o=operand, both=both: type_.wrap(
                both.wrap(f(both.wrap(t), both.wrap(o.value(v))))
            )
        )

    def value(variables: Variables) -> int:
        result = type_.wrap(start.value(variables))
        for step in steps:
            result = step(variables, result)
        return result

    return Statements(" ".join(lines), name, value)
