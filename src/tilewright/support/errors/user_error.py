"""Base class of all user-visible errors: rendering, late locations, pickling, suggestions.

The errors themselves are in `kernel_errors`, `host_errors` and `c_errors`.
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import field, fields
from itertools import islice
from typing import Any, ClassVar, Self, cast

from tilewright.support.data_class import dataclass
from tilewright.support.diagnostics import (
    Diagnostic,
    Severity,
    SourceLines,
    SourceLoc,
    render_details,
    source_line,
)


class TilewrightWarning(UserWarning):
    """Category of every warning that this package issues."""


class OverlapWarning(TilewrightWarning):
    """Arguments of a launch overlap, and the kernel does not use them element by element.

    In compiled code, an element may be stored before it is loaded.
    """


@dataclass(eq=False)
class TilewrightError(Exception):
    """Base of every error that a user can cause, and of the one that only a compiler bug causes.

    A subclass is one mistake: a `code`, a `template` and optionally a `hint_template`. Both are
    formatted with the fields and properties of the instance. A conditional hint overrides `hint`.
    """

    code: ClassVar[str] = "TW000"
    template: ClassVar[str] = "error"
    hint_template: ClassVar[str] = ""
    triton_template: ClassVar[str] = ""
    """Triton's message for the same mistake, which its users and their tests search for."""

    loc: SourceLoc | None = field(default=None, kw_only=True)
    """The place in the user's source; `with_loc` may set it later."""
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    """Further facts, one printed line each."""
    sources: SourceLines | None = field(default=None, kw_only=True, repr=False)
    """Lines of sources that are not files."""
    advice: str | None = field(default=None, kw_only=True)
    """A hint of a front end, which replaces `hint`."""
    triton: str | None = field(default=None, kw_only=True, repr=False)
    """Triton's words, in place of the template's."""

    @property
    def message(self) -> str:
        """The formatted template, without source and hint."""
        return self.template.format_map(_Attributes(self))

    @property
    def hint(self) -> str | None:
        """The remedy, or None."""
        return self.hint_template.format_map(_Attributes(self)) or None

    @property
    def triton_words(self) -> str | None:
        """Triton's words for this mistake, or None."""
        return self.triton or self.triton_template.format_map(_Attributes(self)) or None

    @property
    def error_message(self) -> str:
        """The message, and below it Triton's words; the name is Triton's."""
        return "\n".join(filter(None, (self.message, self.triton_words)))

    def diagnostic(self) -> Diagnostic:
        """This error as data."""
        return Diagnostic(
            Severity.ERROR,
            self.message,
            self.loc,
            self.notes,
            self.hint if self.advice is None else self.advice,
            code=self.code,
        )

    def with_loc(self, loc: SourceLoc | None, sources: SourceLines | None = None) -> Self:
        """Set the place, unless it is set already; returns itself."""
        if self.loc is None:
            self.loc = loc
        if self.sources is None:
            self.sources = sources
        return self

    def __str__(self) -> str:
        """Message with code, source frames with carets, notes, hint."""
        header = f"{self.message} [{self.code}]"
        lines = [header, *render_details(self.diagnostic(), self.sources)]
        if triton_words.shown:
            lines += self.triton_lines()
        return "\n".join(lines)

    def triton_lines(self) -> list[str]:
        """Triton's place and words, shown below an error while Tilewright replaces Triton."""
        place = None if self.loc is None else place_in_function(self.loc, self.sources)
        where = None if place is None else f"at {place[0]}:{place[1]}:"
        said = " ".join(filter(None, (where, self.triton_words)))
        return [f"  Triton: {said}"] if said else []

    def inner(self) -> Self | None:
        """This error without the outermost call of its place; None without calls."""
        if self.loc is None or self.loc.caller is None:
            return None
        values = {**self._values(), "loc": _without_outermost(self.loc)}
        return cast("Self", _rebuild(type(self), values))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by fields, so that an error raised in a worker process arrives whole."""
        return _rebuild, (type(self), self._values())

    def _values(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


class TritonWords:
    """Whether errors show Triton's place and words, as while Tilewright replaces Triton."""

    shown = False


triton_words = TritonWords()


def place_in_function(loc: SourceLoc, sources: SourceLines | None) -> tuple[int, int] | None:
    """Line and column, relative to the `def`, of the outermost call that led to a place.

    None if the source is not available.
    """
    frame = loc.outermost
    for line in range(frame.line, 0, -1):
        text = source_line(frame._replace(line=line), sources) or ""
        found = re.match(rf"\s*def\s+{re.escape(frame.function)}\b", text)
        if found is not None:
            indentation = len(text) - len(text.lstrip())
            return frame.line - line + 1, max(frame.col - indentation, 0)
    return None


def _without_outermost(loc: SourceLoc) -> SourceLoc | None:
    caller = loc.caller
    return None if caller is None else loc._replace(caller=_without_outermost(caller))


class _Attributes(dict[str, object]):
    """The attributes of an object, by name, for templates."""

    def __init__(self, owner: object) -> None:
        super().__init__()
        self._owner = owner

    def __missing__(self, key: str) -> object:
        return shown_value(getattr(self._owner, key))


_MOST_BITS = 1024
"""Size of the largest integer that is printed; Python refuses to print more than 4300 digits."""


def shown_value(value: object) -> object:
    """A value as messages show it: a long integer by its size."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"
    return value


def _rebuild(kind: type[TilewrightError], values: dict[str, object]) -> TilewrightError:
    # without the constructor: exceptions pickle by `args`, which lack the keyword-only fields
    # By the builtin base with the most fields: of RuntimeError and OSError, OSError's is safe.
    makers = [base for base in kind.__mro__ if "__new__" in vars(base)]
    maker: Any = max(makers, key=lambda base: base.__basicsize__)
    error: TilewrightError = maker.__new__(kind)
    for name, value in values.items():
        setattr(error, name, value)
    return error


_LONGEST_NAME = 80
_MAX_NAMES = 4000
"""Limits of the comparisons for one suggestion."""


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    """A question that offers the closest of `names`, or None if none is close."""
    if len(name) > _LONGEST_NAME:
        return None
    candidates = [word for word in islice(names, _MAX_NAMES) if len(word) <= _LONGEST_NAME]
    close = difflib.get_close_matches(name, candidates, n=2, cutoff=0.6)
    if not close:
        return None
    return "did you mean " + " or ".join(f"'{candidate}'" for candidate in close) + "?"


def with_article(noun: str) -> str:
    """A noun phrase with its indefinite article."""
    sounds_like_a_vowel = noun[:1].lower() in tuple("aeio") or noun.startswith("nd")
    return f"{'an' if sounds_like_a_vowel else 'a'} {noun}"


def listed(words: Iterable[object]) -> str:
    """`'a', 'b', 'c'` for messages; `nothing` for no words."""
    return ", ".join(f"'{word}'" for word in words) or "nothing"
