"""Search for the text of a function's code: the text is compiled again, and code compared.

A whole file is compiled, since code depends on its context: imports, enclosing functions, the
class, future statements. Line numbers are ignored, so text that has moved is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import cast

from tilewright.support import SourceText
from tilewright.support.asynchronous_exceptions import synchronous

_KIND = 0x04 | 0x08 | 0x20 | 0x80 | 0x200
"""`co_flags`: CO_VARARGS, CO_VARKEYWORDS, CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR."""
_NAMES = ("co_qualname", "co_names", "co_varnames", "co_freevars", "co_cellvars")
_COUNTS = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount")


def lines_of_code(code: CodeType, text: SourceText) -> list[int]:
    """First lines of the functions in a text that compile to `code`; none if the text does not
    compile."""
    return [candidate.co_firstlineno for candidate in _compiled(text) if _same(candidate, code)]


@lru_cache(maxsize=8)  # files whose kernels are being compiled
def _compiled(text: SourceText) -> tuple[CodeType, ...]:
    """All functions in a text."""
    try:
        # dont_inherit: future statements of this module must not affect the text.
        return tuple(_inner(compile("".join(text.lines), "<text>", "exec", dont_inherit=True)))
    except synchronous(SyntaxError, ValueError, RecursionError):
        return ()


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def _same(a: CodeType, b: CodeType) -> bool:
    return (
        all(getattr(a, name) == getattr(b, name) for name in (*_NAMES, *_COUNTS))
        and a.co_code == b.co_code
        and a.co_flags & _KIND == b.co_flags & _KIND
        and _same_constants(a.co_consts, b.co_consts)
    )


def _same_constants(a: object, b: object) -> bool:
    """Equal, and of equal types: 1, 1.0 and True are different, and so are 0.0 and -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return _same(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        first, second = cast("tuple[object, ...]", a), cast("tuple[object, ...]", b)
        return len(first) == len(second) and all(map(_same_constants, first, second))
    return repr(a) == repr(b) if isinstance(a, float | complex) else a == b
