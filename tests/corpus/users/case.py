"""A kernel with the facts of one launch."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Case", "case"]


@dataclass(frozen=True)
class Case:
    """A compilation for each target; `types` and `words` as those of `variants.Variant`."""

    label: str
    kernel: Any
    types: str
    words: tuple[tuple[str, Any], ...]


def case(label: str, kernel: Any, types: str, **words: Any) -> Case:
    """A kernel with argument types and compile-time values.

    types: one word for each run-time parameter: `*fp16` is a 16-byte aligned pointer, `*fp16/1` an
    unaligned one, `i32/16` a multiple of 16 such as a size or a stride, `i32=1` the constant 1 such
    as a unit stride; words: constants and launch options
    """
    given = (text if "/" in text or text[0] != "*" else f"{text}/16" for text in types.split())
    return Case(label, kernel, " ".join(given), tuple(words.items()))
