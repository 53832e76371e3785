"""Hints of errors in terms of C, which replace shared hints in terms of Python."""

from __future__ import annotations

from tilewright.support import TilewrightError, errors

# By class: the shared message stays; only its advice is about Python.
HINTS: dict[type[TilewrightError], str] = {
    errors.DTypeMismatch: "cast one side: (float) x",
    errors.LiteralOutOfRange: "cast the other side to a wider type: (long) x",
    errors.NotConstexpr: "use a literal or a macro: -DN=64, or defines={...}",
    errors.InconsistentBranches: "cast both sides to one type",
    errors.StoreToConst: "remove 'const' where the pointer is declared",
}
