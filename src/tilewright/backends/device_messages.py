"""Text form of a failed `device_assert`'s message and location."""

from __future__ import annotations

import json

from tilewright.support import SourceLoc


def packed(message: str, loc: SourceLoc | None) -> str:
    """Encode a message and its location as one text."""
    frames = [] if loc is None else [frame[:-1] for frame in loc.frames()]
    return json.dumps([message, frames])


def unpacked(text: str) -> tuple[str, SourceLoc | None]:
    """Decode the text of `packed`."""
    message, frames = json.loads(text)
    loc: SourceLoc | None = None
    for frame in reversed(frames):
        loc = SourceLoc._make([*frame, loc])
    return message, loc


def index_text(*indices: int) -> str:
    """Format the index of an element as `(1, 2)`; negative numbers mark missing dims."""
    return f"({', '.join(str(n) for n in indices if n >= 0)})"
