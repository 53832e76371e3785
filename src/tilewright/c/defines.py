"""Values of macros: from what Python has to the text that C has; lists of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import cast

from tilewright.frontend.c import in_words
from tilewright.language import dtype
from tilewright.support import errors

Defines = Mapping[str, object]


def text_of(name: str, value: object) -> str:
    """The definition of a macro: a string is a list of tokens, a tuple such a list with commas.

    Errors: InvalidOption.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dtype):
        return in_words(value.ir)  # pyright: ignore[reportArgumentType] -- a dtype names a scalar
    if isinstance(value, tuple):
        return ",".join(text_of(name, item) for item in cast("tuple[object, ...]", value))
    expected = "a number, a string, a dtype, or a list of these"
    raise errors.InvalidOption(f"define {name}", expected, f"a {type(value).__name__}")


def texts_of(defines: Defines) -> dict[str, str]:
    """The definition of each macro; of a list its first value."""
    return {name: text_of(name, values_of(name, value)[0]) for name, value in defines.items()}


def values_of(name: str, value: object) -> list[object]:
    """What a macro may be: the items of a list, or the one value. Errors: EmptyDefine."""
    if not name.isidentifier():
        raise errors.InvalidOption("defines", "names of macros as keys", repr(name))
    if not isinstance(value, list):
        return [value]
    items = cast("list[object]", value)
    if not items:
        raise errors.EmptyDefine(name)
    return items


def is_tuned(value: object) -> bool:
    """Whether a macro has several values to choose from."""
    return isinstance(value, list)


def choices_of(defines: Defines) -> list[dict[str, object]]:
    """Every combination of the values of the macros that are given as lists."""
    tuned = {name: values_of(name, v) for name, v in defines.items() if is_tuned(v)}
    return [dict(zip(tuned, values, strict=True)) for values in product(*tuned.values())]


def warps_of(num_warps: int | Sequence[int]) -> list[int]:
    """The numbers of warps to choose from. Errors: InvalidOption."""
    found = [num_warps] if isinstance(num_warps, int) else list(num_warps)
    if not found:
        raise errors.InvalidOption("num_warps", "a number, or a list with at least one", "[]")
    return found
