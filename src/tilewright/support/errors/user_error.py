"""What all user-visible errors share: rendering, late locations, pickling, suggestions.

The mistakes themselves are in `kernel`, `host` and `c_language`.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import ClassVar, Self

from tilewright.support.diagnostics import (
    Diagnostic,
    Severity,
    SourceLines,
    SourceLoc,
    render_details,
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

    loc: SourceLoc | None = field(default=None, kw_only=True)
    """Where in the user's source; may be given later by `with_loc`."""
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    """Further facts, one printed line each."""
    sources: SourceLines | None = field(default=None, kw_only=True, repr=False)
    """Lines of sources that are no files."""
    advice: str | None = field(default=None, kw_only=True)
    """What to try, set by a front end in place of `hint`."""

    @property
    def message(self) -> str:
        """The filled template: what was expected and what was found, without source and hint."""
        return self.template.format_map(_Attributes(self))

    @property
    def hint(self) -> str | None:
        """What to try, or None."""
        return self.hint_template.format_map(_Attributes(self)) or None

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
        return "\n".join([header, *render_details(self.diagnostic(), self.sources)])

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by fields, so that an error raised in a worker process arrives whole."""
        return _rebuild, (type(self), self._values())

    def _values(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


class _Attributes(dict[str, object]):
    """Lets a template name any attribute of `owner`."""

    def __init__(self, owner: object) -> None:
        super().__init__()
        self._owner = owner

    def __missing__(self, key: str) -> object:
        return getattr(self._owner, key)


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


def listed(words: Iterable[object]) -> str:
    """`'a', 'b', 'c'` for messages; `nothing` for no words."""
    return ", ".join(f"'{word}'" for word in words) or "nothing"
