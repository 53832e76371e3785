"""Objects on a Redis server. Needs the extra `remote`."""

from __future__ import annotations

from typing import Any

from tilewright.support.fork_locks import package_late

_PREFIX = "tilewright:"
_LEASE = "leases/"
_LEASE_SECONDS = 3600
"""Time after which the server removes leases, which nothing needs by then."""
_SOCKET_SECONDS = 2.0


class RedisStorage:
    """Objects as keys `tilewright:<name>`; groups are hashes."""

    def __init__(self, url: str) -> None:
        redis: Any = package_late("redis", "pip install 'tilewright[remote]'")
        self._server: Any = redis.Redis.from_url(
            url, socket_timeout=_SOCKET_SECONDS, socket_connect_timeout=_SOCKET_SECONDS
        )

    def get(self, name: str) -> bytes | None:
        """The content, or None."""
        return self._server.get(_PREFIX + name)

    def put(self, name: str, content: bytes) -> None:
        """Write an object, which replaces an older one of that name."""
        self._server.set(_PREFIX + name, content, ex=_expiry(name))

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one of that name; whether it was written."""
        return bool(self._server.set(_PREFIX + name, content, nx=True, ex=_expiry(name)))

    def members(self, group: str) -> dict[str, bytes]:
        """The objects that `put_member` has written to a group."""
        found: dict[bytes, bytes] = self._server.hgetall(_PREFIX + group)
        return {member.decode(): content for member, content in found.items()}

    def put_member(self, group: str, member: str, content: bytes) -> None:
        """Write an object of a group."""
        self._server.hset(_PREFIX + group, member, content)


def _expiry(name: str) -> int | None:
    return _LEASE_SECONDS if name.startswith(_LEASE) else None
