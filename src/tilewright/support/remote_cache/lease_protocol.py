"""Leases: of all clients that lack a kernel, one compiles it and the others wait for the result.

The functions are generators that yield `Step`s and receive their results; their caller does the
input and output. `RemoteTier` runs them for launches, and a simulation for thousands of clients.

Clocks of machines are never compared. A holder changes its lease every `BEAT_SECONDS`; a client
that sees no change for `LEASE_SECONDS` by its own clock creates the lease of the next generation,
which only one client can. No step needs more than "write unless there is one".
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

BEAT_SECONDS = 2.0
LEASE_SECONDS = 10.0
LONGEST_WAIT = 120.0
"""Time after which a client compiles without a lease, whatever the holder does."""
LATE_SECONDS = 3.0
"""Time for which a published object may still be invisible to another machine."""
_STALE_SECONDS = 0.2
"""The same for a lease that was released before the client came: its object was removed since."""
_FIRST_POLL, _LAST_POLL = 0.02, 0.5
"""Seconds between two looks, at first and at most."""
_POLL_GROWTH = 1.5
_LOAD = 5.0
"""Least wait between two looks, in times of the time that a look takes."""

_WORKING, _DONE, _FAILED = b"working", b"done", b"failed"


class Step(NamedTuple):
    """An operation that a protocol requests. kind: "get", "create", "sleep" or "clock";
    seconds: of a sleep"""

    kind: str
    name: str = ""
    content: bytes = b""
    seconds: float = 0.0


class Lease(NamedTuple):
    """The right to compile a kernel. name: of its object; owner: a random text; beats: number of
    changes"""

    name: str
    owner: str
    beats: int = 0

    def content(self) -> bytes:
        """The object while the holder works."""
        return b"%s %s %d" % (_WORKING, self.owner.encode(), self.beats)


Steps = Generator[Step, Any, Lease | bytes | None]


def obtained(entry: str, key: str, owner: str, chance: Callable[[], float]) -> Steps:
    """The object `entry`, or the lease to compile it, or None: compile without a lease.

    key: names the leases; owner: a random text; chance: random numbers from 0 to 1, which keep
    clients from looking at the same times
    """
    content = yield Step("get", entry)
    if content is not None:
        return content
    start = yield Step("clock")
    generation = 0
    while True:
        lease = Lease(f"leases/{key}.{generation}", owner)
        if (yield Step("create", lease.name, lease.content())):
            # the holder of the last generation may have published since the last look
            return (yield Step("get", entry)) or lease
        outcome = yield from _waited(entry, lease.name, start, chance)
        if outcome is not _EXPIRED:
            return outcome
        generation += 1


_EXPIRED = b""
"""The outcome of a wait for a holder that has stopped."""


def _waited(
    entry: str, lease: str, start: float, chance: Callable[[], float]
) -> Generator[Step, Any, bytes | None]:
    """Wait for the holder of a lease: the object, `_EXPIRED`, or None."""
    seen: bytes | None = None
    changed: float = yield Step("clock")
    changes, poll = 0, _FIRST_POLL
    while True:
        asked: float = yield Step("clock")
        state: bytes | None = yield Step("get", lease)
        # while its holder works there is no object, so a look takes one operation
        if state is None or not state.startswith(_WORKING):
            content = yield Step("get", entry)
            if content is not None:
                return content
        now: float = yield Step("clock")
        if state is not None and state.startswith(_FAILED) or now - start > LONGEST_WAIT:
            return None
        if state != seen:
            seen, changed, changes = state, now, changes + 1
        if now - changed > _patience(state, changes):
            return _EXPIRED
        # a server that takes long has too many clients: they wait in proportion
        yield Step("sleep", seconds=max(poll, _LOAD * (now - asked)) * (0.5 + chance()))
        poll = min(poll * _POLL_GROWTH, _LAST_POLL)


def _patience(state: bytes | None, changes: int) -> float:
    """Seconds without a change after which a lease counts as lost."""
    if state is None or not state.startswith(_DONE):
        return LEASE_SECONDS
    return LATE_SECONDS if changes > 1 else _STALE_SECONDS


def refreshed(lease: Lease) -> Lease:
    """The lease after a change that shows that its holder works."""
    return lease._replace(beats=lease.beats + 1)


def released(lease: Lease, published: bool) -> bytes:
    """The object of a lease whose holder has finished. published: whether the object is there"""
    return b"%s %s" % (_DONE if published else _FAILED, lease.owner.encode())
