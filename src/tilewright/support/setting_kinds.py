"""Kinds of values of settings: how a text is read, and what is expected."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Kind(NamedTuple, Generic[T_co]):
    """Values of settings. parse: maps text to a value, or raises ValueError for text that is not
    `expected`."""

    parse: Callable[[str], T_co]
    expected: str


def flag(text: str) -> bool:
    """The flag that a word means."""
    if text.lower() in ("1", "true", "on", "yes", "y"):
        return True
    if text.lower() in ("0", "false", "off", "no", "n"):
        return False
    raise ValueError(text)


def count(text: str) -> int:
    """A non-negative integer."""
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def seconds(text: str) -> float:
    """A finite, non-negative number."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def url(text: str) -> str:
    """A URL with a scheme, unchanged."""
    if not re.match(r"[a-z][a-z0-9+.-]*://.", text):
        raise ValueError(text)
    return text


def program_id(text: str) -> tuple[int, int, int]:
    """One to three numbers; missing ones are 0."""
    ids = [count(part) for part in text.split(",")]
    if len(ids) > 3:
        raise ValueError(text)
    x, y, z = (ids + [0, 0])[:3]
    return x, y, z


def one_of(words: Sequence[str]) -> Kind[str]:
    """The kind of a setting that is one of some words, in any case."""

    def parse(text: str) -> str:
        return words[words.index(text.lower())]

    return Kind(parse, f"one of {', '.join(words)}")


def arch(text: str) -> str:
    """The name of an architecture."""
    if not re.fullmatch(r"\w+", text):
        raise ValueError(text)
    return text


def path(text: str) -> Path:
    """A path; a leading ~ is a home folder."""
    path = os.path.expanduser(text)
    # expanduser keeps the name of an unknown user
    if path.startswith("~") or "\0" in path:
        raise ValueError(text)
    return Path(path)


def paths(text: str) -> tuple[Path, ...]:
    """Paths, separated as in PATH."""
    return tuple(path(part) for part in text.split(os.pathsep) if part)


FLAG = Kind(flag, "0 or 1")
FOLDER = Kind(path, "a folder")
SECONDS = Kind(seconds, "a number of seconds, 0 for no limit")
