"""Runs sources in Triton-C with one mistake each, and shows their errors without places."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tilewright.c import CSource, kernel
from tilewright.frontend.semantics import FrontendOptions
from tilewright.support import TilewrightError


def shown(source: str, defines: dict[str, Any] | None = None, name: str | None = None) -> str:
    """The error of making and lowering a kernel: message, place, line, caret, notes, hint."""
    with pytest.raises(TilewrightError) as caught:
        _compile(source, defines or {}, name)
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, TilewrightError)
    return without_gutters(str(caught.value))


def _compile(source: str, defines: dict[str, Any], name: str | None) -> None:
    made = kernel(source, defines, name=name)
    values = {k: v[0] if isinstance(v, list) else v for k, v in defines.items()}
    CSource(source, values, made.base_fn.__name__).lower(FrontendOptions())


def without_gutters(text: str) -> str:
    """A message whose places are line:column and whose source lines have lost the gutter."""
    lines: list[str] = []
    for line in text.splitlines():
        place = re.match(r"\s*(?:-->|called from).*?:(\d+):(\d+)", line)
        if place:
            line = f"at {place[1]}:{place[2]}"
        elif re.match(r"\s*\d* \|", line):
            line = line.partition("|")[2][1:]
        lines.append(line.rstrip())
    return "\n".join(line for line in lines if line)
