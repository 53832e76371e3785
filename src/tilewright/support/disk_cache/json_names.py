"""File names of documents."""

from __future__ import annotations

import hashlib
import re

_MAX_CHARACTERS = 150
"""Maximum length of a name that is used unchanged; file systems limit names to 255 bytes."""


def file_name(name: str) -> str:
    """A file name for any text; different texts have different names."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    # two names may become the same plain one: the digest separates them
    if plain != name or len(plain) > _MAX_CHARACTERS:
        plain = f"{plain[:_MAX_CHARACTERS]}-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return f"{plain}.json"
