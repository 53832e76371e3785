"""Values of macros: from Python objects or shell words to C text, and lists of values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import cast

from tilewright.frontend.c import c_spelling
from tilewright.language import dtype
from tilewright.support import errors

Defines = Mapping[str, object] | str | Sequence[str]
"""Macro definitions from users: values by name, or compiler options such as `-DSIZE=[32, 64]`."""

# -D after a space or at the start only: `-DX=A-DB` is one definition.
_DEFINITION = re.compile(r"(?:^|\s)-D\s*(?=[A-Za-z_])")
_AXES = frozenset({":", "newaxis"})
"""Items that only a subscript has: `[:, newaxis]` is a subscript, not a list of values."""


def definitions(defines: Defines | None) -> dict[str, object]:
    """The values of macros by name; a list for one that is tuned.

    defines: a mapping; a text such as "-DSIZE=[32, 64] -DTYPE=float"; or several texts, each with
    one definition or more, whose -D may be missing. Also in a mapping the text "[32, 64]" is a list
    of two values. Decimal numbers in texts become integers. Errors: InvalidOption, EmptyDefine.
    """
    if defines is None:
        return {}
    if isinstance(defines, str):
        return _from_texts([defines])
    if isinstance(defines, Mapping):
        return {_checked(name): _listed(name, value) for name, value in defines.items()}
    texts = list(cast("Sequence[object]", defines))
    if not all(isinstance(text, str) for text in texts):
        raise errors.InvalidOption("defines", "a mapping, or texts such as 'SIZE=32'", repr(texts))
    return _from_texts(cast("list[str]", texts))


def _from_texts(texts: Sequence[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for text in texts:
        parts = [part.strip() for part in _DEFINITION.split(text.strip())]
        for part in filter(None, parts):
            name, equals, value = part.partition("=")
            name = _checked(name.strip())
            # As in compilers: `-DNAME` without a value is 1.
            values[name] = _listed(name, _number(value.strip()) if equals else 1)
    return values


def _checked(name: object) -> str:
    """Check the name of a macro. Errors: InvalidOption."""
    if not isinstance(name, str) or not name.isidentifier():
        shown = f"{name!r}"
        raise errors.InvalidOption("defines", "names of macros as keys, or NAME=TEXT", shown)
    return name


def _listed(name: str, value: object) -> object:
    """A text `[a, b]` as the list of its items, each a text; anything else as it is."""
    if not isinstance(value, str) or not value.startswith("[") or not value.endswith("]"):
        return value
    items = _items(value[1:-1])
    # `x[:, newaxis]` in a macro: brackets, but no list of values.
    if items is None or _AXES & set(items):
        return value
    if items == [""]:
        raise errors.EmptyDefine(name)
    if "" in items:
        raise errors.InvalidOption(f"define {name}", "a value between all commas", value)
    return [_number(item) for item in items]


def _number(text: str) -> int | str:
    """A decimal integer as one, so that grids can compute with it; any other text as it is."""
    # At most 18 digits, so that the number fits 64 bits; a leading 0 is octal in C, so it stays
    # text.
    return int(text) if re.fullmatch(r"0|[1-9]\d{0,17}", text, re.ASCII) else text


def _items(text: str) -> list[str] | None:
    """The parts between top-level commas; None if a bracket closes too early.

    `[0] + [1]` has such a bracket, and is no list.
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return None
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def text_of(name: str, value: object) -> str:
    """The definition of a macro: a string is a list of tokens, a tuple such a list with commas.

    Errors: InvalidOption.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    # C has no True: macros of bools are 0 and 1.
    if isinstance(value, bool):
        return str(int(value))
    # repr keeps all digits of a float.
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dtype):
        return c_spelling(value.ir)  # pyright: ignore[reportArgumentType] -- a dtype names a scalar
    if isinstance(value, tuple):
        return ",".join(text_of(name, item) for item in cast("tuple[object, ...]", value))
    expected = "a number, a string, a dtype, or a list of these"
    raise errors.InvalidOption(f"define {name}", expected, f"a {type(value).__name__}")


def texts_of(defines: Mapping[str, object]) -> dict[str, str]:
    """The definition of each macro, with the first value of each list."""
    return {name: text_of(name, values_of(name, value)[0]) for name, value in defines.items()}


def values_of(name: str, value: object) -> list[object]:
    """The possible values of a macro: the items of a list, or one value. Errors: EmptyDefine."""
    if not isinstance(value, list):
        return [value]
    items = cast("list[object]", value)
    if not items:
        raise errors.EmptyDefine(name)
    return items


def is_tuned(value: object) -> bool:
    """Whether a macro has several values to choose from."""
    return isinstance(value, list)


def choices_of(defines: Mapping[str, object]) -> list[dict[str, object]]:
    """Every combination of the values of macros with lists."""
    tuned = {name: values_of(name, v) for name, v in defines.items() if is_tuned(v)}
    return [dict(zip(tuned, values, strict=True)) for values in product(*tuned.values())]


def warps_of(num_warps: int | Sequence[int]) -> list[int]:
    """The numbers of warps to choose from. Errors: InvalidOption."""
    counts = [num_warps] if isinstance(num_warps, int) else list(num_warps)
    if not counts:
        raise errors.InvalidOption("num_warps", "a number, or a list with at least one", "[]")
    return counts
