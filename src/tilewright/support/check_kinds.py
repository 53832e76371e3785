"""What `check=` and TILEWRIGHT_CHECK ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from . import errors

CHECK_KINDS = ("bounds", "race", "overflow", "uninit")
"""What can be checked. Bounds are checked always: the other checks look at the same memory."""


def checks_of(words: object) -> tuple[str, ...]:
    """The kinds in an option or setting: "bounds,race", or a sequence; in the order of CHECK_KINDS.
    Errors: InvalidOption."""
    if not words:
        return ()
    names = words.split(",") if isinstance(words, str) else list(cast("Sequence[Any]", words))
    kinds = {str(name).strip() for name in names} - {""}
    for kind in kinds:
        if kind not in CHECK_KINDS:
            raise errors.InvalidOption("check", f"some of {', '.join(CHECK_KINDS)}", kind)
    return tuple(kind for kind in CHECK_KINDS if kind in kinds)
