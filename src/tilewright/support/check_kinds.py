"""Kinds of checks of memory accesses, as `check=` and TILEWRIGHT_CHECK select them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from . import errors

CHECK_KINDS = ("bounds", "race", "overflow", "uninit")
"""The kinds of checks. Bounds are always checked, since the other checks read the same memory."""


def checks_of(words: object) -> tuple[str, ...]:
    """The kinds in an option or setting, in the order of CHECK_KINDS.

    words: "bounds,race", or a sequence. Errors: InvalidOption.
    """
    if not words:
        return ()
    if not isinstance(words, str | list | tuple | set | frozenset):
        raise errors.InvalidOption("check", f"some of {', '.join(CHECK_KINDS)}", words)
    names = words.split(",") if isinstance(words, str) else list(cast("Sequence[Any]", words))
    kinds = {str(name).strip() for name in names} - {""}
    for kind in kinds:
        if kind not in CHECK_KINDS:
            raise errors.InvalidOption("check", f"some of {', '.join(CHECK_KINDS)}", kind)
    return tuple(kind for kind in CHECK_KINDS if kind in kinds)
