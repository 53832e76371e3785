"""What a failed `device_assert` tells the host, as text."""

from __future__ import annotations

import json

from tilewright.support import SourceLoc


def packed(message: str, loc: SourceLoc | None) -> str:
    """A message and the place that it is about, as one text."""
    frames = [] if loc is None else [frame[:-1] for frame in loc.frames()]
    return json.dumps([message, frames])


def unpacked(text: str) -> tuple[str, SourceLoc | None]:
    """What `packed` was given."""
    message, frames = json.loads(text)
    loc: SourceLoc | None = None
    for frame in reversed(frames):
        loc = SourceLoc._make([*frame, loc])
    return message, loc


def index_text(*indices: int) -> str:
    """`(1, 2)` for the index of an element; negative numbers stand for dims that there are not."""
    return f"({', '.join(str(n) for n in indices if n >= 0)})"
