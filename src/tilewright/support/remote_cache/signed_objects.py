"""Objects of a remote cache: a JSON object and blocks of bytes, with checksum and signature.

    tilewright object 1\\n
    <sha256 of the body>\\n<HMAC-SHA256 of name and body, or 64 zeros>\\n
    body: by zlib: <length of the head, 8 bytes><head><blocks>
    head: {"members": ..., "blocks": [[name, size], ...]}, JSON

The signature covers the name, so that no object can replace another.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from tilewright.support.asynchronous_exceptions import synchronous

_MAGIC = b"tilewright object 1\n"
_DIGITS = 64
_UNSIGNED = b"0" * _DIGITS
_LENGTH_BYTES = 8
LARGEST = 256 << 20
"""Maximum size of an object in bytes, also when it is decompressed."""


class BadObject(ValueError):
    """The content is damaged, or not signed by the shared key."""


class Unsealed(NamedTuple):
    """The content of an object. members: JSON values; blocks: bytes by name"""

    members: dict[str, Any]
    blocks: dict[str, bytes]


class Signer:
    """Writer and reader of objects. secret: the shared key; None: objects are not signed."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret

    def sealed(self, name: str, members: Mapping[str, Any], blocks: Mapping[str, bytes]) -> bytes:
        """The object called `name`."""
        sizes = [[block, len(content)] for block, content in blocks.items()]
        head = json.dumps({"members": members, "blocks": sizes}).encode()
        length = len(head).to_bytes(_LENGTH_BYTES, "big")
        # most of a kernel is text; level 1 is five times as fast as 6, for a tenth more bytes
        body = zlib.compress(b"".join([length, head, *blocks.values()]), level=1)
        digest = hashlib.sha256(body).hexdigest().encode()
        return b"".join([_MAGIC, digest, b"\n", self._signature(name, body), b"\n", body])

    def unsealed(self, name: str, content: bytes) -> Unsealed:
        """The content of the object called `name`. Errors: BadObject."""
        digest_start = len(_MAGIC)
        sign_start = digest_start + _DIGITS + 1
        body_start = sign_start + _DIGITS + 1
        body = content[body_start:]
        if not content.startswith(_MAGIC):
            raise BadObject("it is not an object of a remote cache")
        digest = content[digest_start : digest_start + _DIGITS]
        if hashlib.sha256(body).hexdigest().encode() != digest:
            raise BadObject("its checksum differs")
        signature = content[sign_start : sign_start + _DIGITS]
        if self._secret is not None and not hmac.compare_digest(
            signature, self._signature(name, body)
        ):
            raise BadObject("it is not signed by the shared key")
        try:
            return _parsed(_decompressed(body))
        except synchronous(ValueError, KeyError, TypeError, RecursionError, zlib.error) as problem:
            raise BadObject(f"it is malformed: {problem!r}") from None

    def _signature(self, name: str, body: bytes) -> bytes:
        if self._secret is None:
            return _UNSIGNED
        # the length separates the name from the body
        signed = b"%d %s%s" % (len(name), name.encode(), body)
        return hmac.new(self._secret, signed, hashlib.sha256).hexdigest().encode()


def _decompressed(body: bytes) -> bytes:
    reader = zlib.decompressobj()
    content = reader.decompress(body, LARGEST)
    if not reader.eof:
        raise ValueError("it is cut, or too large")
    return content


def _parsed(body: bytes) -> Unsealed:
    end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "big")
    head = json.loads(body[_LENGTH_BYTES:end])
    blocks: dict[str, bytes] = {}
    for name, size in head["blocks"]:
        if type(name) is not str or type(size) is not int or size < 0:
            raise ValueError("a block has no valid size")
        blocks[name] = body[end : end + size]
        end += size
    if end != len(body) or type(head["members"]) is not dict:
        raise ValueError("its parts do not fit")
    return Unsealed(cast("dict[str, Any]", head["members"]), blocks)
