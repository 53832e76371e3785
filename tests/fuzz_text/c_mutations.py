"""Changes sources in Triton-C so that most of them still are sentences of its grammar.

Tokens are exchanged for others of their kind; statements are copied, removed and moved; numbers,
names and parentheses become larger expressions; macros come in between.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from tests.fuzz_text.corpus import CText, c_texts, right_c_texts

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*|\d[\w.]*|\.\.\.|<<=|>>=|[-+*/%&|^<>=!]=|'
                    r"<<|>>|&&|\|\||\+\+|--|\S|\n")  # fmt: skip
_NUMBERS = (
    "0", "1", "2", "3", "8", "16", "32", "255", "1000", "2147483647", "2147483648", "4294967295u",
    "0x7fffffff", "9223372036854775807", "18446744073709551615u", "09", "0b11", "1.5", "2.5f",
    "1e39", "1e-50", "1e400", ".5", "'a'", "100000000000000000000000", "3l", "-1", "1u",
)  # fmt: skip
_TYPES = (
    "int", "float", "half", "char", "unsigned char", "short", "unsigned", "long", "unsigned long",
    "double", "bool", "bfloat16", "fp8e4m3", "void", "const int",
)  # fmt: skip
_OPERATORS = (
    "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&&",
    "||", "@", "...", "=", "+=", "-=", "<<=", "@=", ",", "?", ":",
)  # fmt: skip
_WRAPPERS = (
    "(-{})", "(~{})", "(!{})", "(^{})", "(*{})", "((char) {})", "((half) {})", "((long) {})",
    "({} + 1)", "({} * {})", "(1 ? {} : 0)", "({} ? 1 : 2)", "({} > 0 ? {} : 3)", "({})[+]",
    "({})[:, newaxis]", "({})[0]", "({})[0:2, :]", "exp({})", "sum({})", "max({}, 1)", "abs({})",
    "({} << 3)", "({} / 0)", "({} && {})", "({} = 1)", "({}++)", "(0 ... {})", "f({})", "({}, {})",
)  # fmt: skip
_STATEMENTS = (
    "int q{0} = 3;", "float t{0}[16] = 0 ... 16;", "if ({1}) {{ return; }}", "{{ ; }}", ";",
    "for (int q{0} = 0; q{0} < 4; q{0}++) {{ if (q{0}) break; }}", "while (0) ;", "{1};",
    "unsigned char q{0} = {1};", "break;", "continue;", "return {1};", "*a = {1};",
    "do {{ int z = {1}; }} while (0);", "if ({1}) ; else {{ {1}; }}", "bool q{0}[8] = {1};",
)  # fmt: skip
_LINES = (
    "#define n 3", "#define F(x) x x", "#define F(x, ...) #x", "#define i j", "#undef n", "#if 0",
    "#endif", "#else", "#if n > 2", "#ifdef F", "#error no", "#pragma once", '#include "x.h"',
    "#define int long", "#define A A + B", "#define B A A", "#if 1 << 70", "#", "#line 3",
)  # fmt: skip

_LONGEST = 60_000
"""Characters after which a source is changed no more: what is only long is told in other tests."""


def c_text(random: Random) -> CText:
    """A source, changed in one to five places."""
    base = random.choice(c_texts() if random.random() < 0.2 else right_c_texts())
    text, defines = base.text, dict(base.defines)
    for _ in range(random.choice((1, 1, 1, 2, 2, 4))):
        change = random.choices(
            (_other_token, _wrapped, _other_statements, _other_line, _any_token), (5, 4, 5, 1, 0.5)
        )[0]
        text = change(random, text)
        if len(text) > _LONGEST:
            break
    if defines and random.random() < 0.15:
        defines[random.choice(list(defines))] = _definition(random)
    return CText(text, defines)


def _definition(random: Random) -> Any:
    return random.choice((*_NUMBERS, *_TYPES, 0, 3, 64, None, "", "(", ":,newaxis", "x + y", "TM"))


def _spans(text: str, form: str = r"\S+") -> list[tuple[int, int]]:
    tokens = (match for match in _TOKEN.finditer(text) if re.fullmatch(form, match[0]))
    return [match.span() for match in tokens]


def _replaced(text: str, span: tuple[int, int], new: str) -> str:
    return text[: span[0]] + new + text[span[1] :]


def _names(text: str) -> list[str]:
    return sorted(set(re.findall(r"\b[a-z]\w*\b", text))) or ["a"]


def _other_token(random: Random, text: str) -> str:
    """A token of the same kind instead of one."""
    spans = _spans(text)
    if not spans:
        return text
    span = random.choice(spans)
    old = text[slice(*span)]
    if old[0].isdigit():
        return _replaced(text, span, random.choice(_NUMBERS))
    if old in _TYPES:
        return _replaced(text, span, random.choice(_TYPES))
    if old in _OPERATORS:
        return _replaced(text, span, f" {random.choice(_OPERATORS[:22])} ")
    if old[0].isalpha():
        return _replaced(text, span, random.choice(_names(text)))
    return text


def _wrapped(random: Random, text: str) -> str:
    """A larger expression around a name or number."""
    spans = _spans(text, r"[a-z]\w*|\d[\w.]*")
    if not spans:
        return text
    span = random.choice(spans)
    inner = text[slice(*span)]
    for _ in range(random.choice((1, 1, 1, 2, 20, 200)) if random.random() < 0.2 else 1):
        inner = random.choice(_WRAPPERS).replace("{}", inner)
        if len(inner) > _LONGEST // 4:
            break
    return _replaced(text, span, inner)


def _other_statements(random: Random, text: str) -> str:
    """A statement copied, removed, moved or made."""
    ends = [match.end() for match in re.finditer(r"[;{}]", text)]
    if len(ends) < 2:
        return text
    at = random.randrange(len(ends) - 1)
    span = ends[at], ends[at + 1]
    statement = text[slice(*span)]
    kind = random.random()
    if kind < 0.25:
        return _replaced(text, span, statement * random.choice((2, 2, 3, 50)))
    if kind < 0.45:
        return _replaced(text, span, "")
    if kind < 0.6:
        target = random.choice(ends)
        return text[:target] + statement + text[target:]
    if kind < 0.7:
        return _replaced(text, span, f" {{ {statement} }} ")
    expression = random.choice((*_names(text), *_NUMBERS))
    made = random.choice(_STATEMENTS).format(random.randrange(3), expression)
    return text[: span[0]] + " " + made + text[span[0] :]


def _other_line(random: Random, text: str) -> str:
    """A directive in front of some line."""
    lines = text.splitlines()
    lines.insert(random.randrange(len(lines) + 1), random.choice(_LINES))
    return "\n".join(lines)


def _any_token(random: Random, text: str) -> str:
    """Any token instead of any other; a character that is none."""
    spans = _spans(text)
    if not spans:
        return text
    span, other = random.choice(spans), random.choice(spans)
    new = random.choice((
        "", text[slice(*other)], random.choice(_OPERATORS), "$", "\x00", "\u00e9", '"', "'", "\\",
        "/*", "##",
    ))  # fmt: skip
    return _replaced(text, span, new)
