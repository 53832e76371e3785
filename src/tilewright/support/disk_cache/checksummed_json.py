"""JSON objects with a checksum of their own: `{"sha256": "...",`, then the members."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

_HEAD = b'{"sha256": "'
_AFTER = b'", '
_DIGEST = 64


def sealed(members: Mapping[str, Any]) -> bytes:
    """The text of an object with at least one member, none of them named sha256."""
    # without the opening brace, which precedes the checksum: the file is one valid JSON object
    rest = json.dumps(members).encode()[1:]
    return b"".join([_HEAD, hashlib.sha256(rest).hexdigest().encode(), _AFTER, rest])


def unsealed(text: bytes) -> dict[str, Any]:
    """The members of a text; ValueError for a text that `sealed` did not write."""
    digest_end = len(_HEAD) + _DIGEST
    rest_start = digest_end + len(_AFTER)
    head, digest, rest = text[: len(_HEAD)], text[len(_HEAD) : digest_end], text[rest_start:]
    if head != _HEAD or text[digest_end:rest_start] != _AFTER:
        raise ValueError("its head is invalid")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        raise ValueError("its checksum differs")
    try:
        members: object = json.loads(b"{" + rest)
    # callers treat a ValueError as a damaged file, so a RecursionError becomes one
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    assert isinstance(members, dict)  # the text starts with a brace
    return cast("dict[str, Any]", members)
