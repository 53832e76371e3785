"""What all user-visible errors share: rendering, late locations, pickling, suggestions.

The mistakes themselves are in `kernel`, `host` and `c_language`.
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import field, fields
from itertools import islice
from typing import ClassVar, Self, cast

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
    """Arguments of a launch overlap in memory, and the kernel does not use them element by element:
    natively, an element may be stored before it is loaded."""


@dataclass(eq=False)
class TilewrightError(Exception):
    """Base of every error that a user can cause, and of the one that only a compiler bug causes.

    A subclass is one mistake: a `code`, a `template` and perhaps a `hint_template`, both formatted
    with the instance's fields and properties. Where more is to be decided, it overrides `hint`.
    """

    code: ClassVar[str] = "TW000"
    template: ClassVar[str] = "error"
    hint_template: ClassVar[str] = ""
    triton_template: ClassVar[str] = ""
    """What Triton says of the same mistake, in words that its users and their tests look for."""

    loc: SourceLoc | None = field(default=None, kw_only=True)
    """Where in the user's source; may be given later by `with_loc`."""
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    """Further facts, one printed line each."""
    sources: SourceLines | None = field(default=None, kw_only=True, repr=False)
    """Lines of sources that are no files."""
    advice: str | None = field(default=None, kw_only=True)
    """What to try, set by a front end in place of `hint`."""
    triton: str | None = field(default=None, kw_only=True, repr=False)
    """Triton's words, in place of the template's."""

    @property
    def message(self) -> str:
        """The filled template: what was expected and what was found, without source and hint."""
        return self.template.format_map(_Attributes(self))

    @property
    def hint(self) -> str | None:
        """What to try, or None."""
        return self.hint_template.format_map(_Attributes(self)) or None

    @property
    def triton_words(self) -> str | None:
        """Triton's words for this mistake, or None."""
        return self.triton or self.triton_template.format_map(_Attributes(self)) or None

    @property
    def error_message(self) -> str:
        """The message, and below it Triton's words (Triton's name for what an error says)."""
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
        """This error, now located at `loc` unless it already has a place; returns itself."""
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
        """What is shown below an error while Tilewright stands for Triton: its place and words."""
        place = None if self.loc is None else place_in_function(self.loc, self.sources)
        where = None if place is None else f"at {place[0]}:{place[1]}:"
        said = " ".join(filter(None, (where, self.triton_words)))
        return [f"  Triton: {said}"] if said else []

    def inner(self) -> Self | None:
        """This error as the function saw it that the kernel, or the last function, has called:
        without the outermost call; None for an error without calls."""
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
    """Whether errors show Triton's place and words below their own: while it stands for Triton."""

    shown = False


triton_words = TritonWords()


def place_in_function(loc: SourceLoc, sources: SourceLines | None) -> tuple[int, int] | None:
    """Line, counted from the `def`, and column from its indentation, of the outermost call that
    led to a place; None where the source is not at hand."""
    frame = list(loc.frames())[-1]
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
    """Lets a template name any attribute of `owner`."""

    def __init__(self, owner: object) -> None:
        super().__init__()
        self._owner = owner

    def __missing__(self, key: str) -> object:
        return shown_value(getattr(self._owner, key))


_MOST_BITS = 1024
"""Of an integer that is printed; Python refuses to print those of more than 4300 digits."""


def shown_value(value: object) -> object:
    """A value for a message; a long integer by its size."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"
    return value


def _rebuild(kind: type[TilewrightError], values: dict[str, object]) -> TilewrightError:
    # past the constructor: exceptions pickle by `args`, which lack the keyword-only fields
    error = kind.__new__(kind)
    for name, value in values.items():
        setattr(error, name, value)
    return error


_LONGEST_NAME = 80
_MAX_NAMES = 4000
"""Comparing more, or longer ones, takes longer than a question is worth."""


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    """A question that offers the ones of `names` closest to `name`, or None if none is close."""
    if len(name) > _LONGEST_NAME:
        return None
    candidates = [word for word in islice(names, _MAX_NAMES) if len(word) <= _LONGEST_NAME]
    close = difflib.get_close_matches(name, candidates, n=2, cutoff=0.6)
    if not close:
        return None
    return "did you mean " + " or ".join(f"'{candidate}'" for candidate in close) + "?"


def with_article(noun: str) -> str:
    """A noun, perhaps with adjectives, behind "a" or "an"."""
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"


def listed(words: Iterable[object]) -> str:
    """`'a', 'b', 'c'` for messages; `nothing` for no words."""
    return ", ".join(f"'{word}'" for word in words) or "nothing"
