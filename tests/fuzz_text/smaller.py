"""Makes a text small that shows a defect: by lines first, then by words."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

_WORD = re.compile(r"\s+|\w+|.", re.DOTALL)


def smaller(text: str, fails: Callable[[str], bool], seconds: float) -> str:
    """What is left when nothing more can be cut out so that it still fails, or time is up."""
    deadline = time.monotonic() + seconds
    for split in (lambda t: t.splitlines(keepends=True), _WORD.findall):
        text = _cut(split(text), fails, deadline)
    return text


def _cut(parts: list[str], fails: Callable[[str], bool], deadline: float) -> str:
    """Cut out runs of parts, long ones first."""
    length = len(parts) // 2
    while length:
        start = 0
        while start < len(parts) and time.monotonic() < deadline:
            rest = parts[:start] + parts[start + length :]
            if rest and fails("".join(rest)):
                parts = rest
            else:
                start += length
        length //= 2
    return "".join(parts)
