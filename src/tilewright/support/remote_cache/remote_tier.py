"""The remote cache of a process: time limits for reads, writes in the background.

All input and output is done by daemon threads. A launch waits for a read until the remote has
wasted `PATIENCE` seconds in all; after that, the remote counts as down, reads return at once and
writes are dropped. A look in the background, at intervals, finds out whether it is up again.
"""

from __future__ import annotations

import atexit
import os
import random
import time
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar, TypeVar

from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.errors import TilewrightError, TilewrightWarning
from tilewright.support.fork_locks import ForkLock
from tilewright.support.remote_cache.lease_protocol import (
    BEAT_SECONDS,
    Lease,
    Step,
    Steps,
    obtained,
    refreshed,
    released,
)
from tilewright.support.remote_cache.signed_objects import Signer
from tilewright.support.remote_cache.storage import Storage, open_storage, shown_url
from tilewright.support.settings_table import Cache

T = TypeVar("T")

PATIENCE = 0.4
"""Seconds that failures of the remote may cost in all, until it has recovered."""
_FAILURE_SECONDS = 0.05
"""Cost of a failure in addition to its time: a remote that fails at once is also down soon."""
_RETRY_SECONDS = 60.0
_MAX_WAITING = 256 << 20
"""Bytes that wait to be written; further ones are dropped."""
_EXIT_SECONDS = 0.4
"""At the end of the process: time without a finished write after which the others are dropped."""


class Unavailable(Exception):
    """The remote failed, or counts as down."""


class _Answer:
    """The result of a call on another thread."""

    def __init__(self) -> None:
        self.done = Event()
        self.value: Any = None
        self.problem: Exception | None = None

    def run(self, call: Callable[[], Any]) -> None:
        try:
            self.value = call()
        except synchronous(Exception) as problem:  # of a storage: any
            self.problem = problem
        self.done.set()


def _said(problem: Exception) -> str:
    """A failure in one line of a warning."""
    is_ours = isinstance(problem, TilewrightError)
    return "; ".join(map(str.strip, str(problem).splitlines())) if is_ours else repr(problem)


class RemoteTier:
    """The remote at `url`. trusted: whether objects may be read; signer: seals and checks them;
    open: opens the storage."""

    def __init__(
        self,
        url: str,
        signer: Signer,
        trusted: bool,
        open: Callable[[str], Storage] = open_storage,
    ) -> None:
        self.url, self.signer, self.trusted = shown_url(url), signer, trusted
        self._full_url, self._open = url, open
        self._lock = ForkLock()
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._storage: Storage | None = None
        self._patience = PATIENCE
        self._down_since: float | None = None
        self._warned: set[str] = set()
        self._writes: deque[tuple[Callable[[Storage], object], int]] = deque()
        self._waiting = self._pending = self._finished = 0
        self._held: dict[str, Lease] = {}
        self._has_writer = False
        self._wake = Event()

    def _after_fork(self) -> None:
        # the threads, and the sockets, are those of the parent
        if self._process != os.getpid():
            self._start()

    # --- reads ------------------------------------------------------------------------------------

    def call(self, operation: Callable[[Storage], T]) -> T:
        """The result of an operation. Errors: Unavailable."""
        self._after_fork()
        if self._is_down():
            raise Unavailable
        answer, start = _Answer(), time.monotonic()
        if not _started(lambda: answer.run(lambda: operation(self._opened()))):
            raise Unavailable
        in_time = answer.done.wait(self._patience)
        if in_time and answer.problem is None:
            return answer.value
        self._failed(time.monotonic() - start, answer.problem)
        raise Unavailable

    def _opened(self) -> Storage:
        with self._lock:
            if self._storage is None:
                self._storage = self._open(self._full_url)
            return self._storage

    def _failed(self, seconds: float, problem: Exception | None) -> None:
        self._patience -= seconds + _FAILURE_SECONDS
        if self._patience > 0 or self._down_since is not None:
            return
        self._down_since = time.monotonic()
        reason = (
            f"does not answer in {PATIENCE} s" if problem is None else f"failed: {_said(problem)}"
        )
        self.warn(f"the remote cache {self.url} {reason}; kernels are compiled here")

    def _is_down(self) -> bool:
        if self._patience > 0:
            return False
        now = time.monotonic()
        if self._down_since is not None and now - self._down_since > _RETRY_SECONDS:
            self._down_since = now
            _started(self._look)
        return True

    def _look(self) -> None:
        """Find out whether the remote is up again."""
        start = time.monotonic()
        with suppress(Exception):
            self._opened().get("kernels/none")
            if time.monotonic() - start < PATIENCE / 2:
                self._patience, self._down_since = PATIENCE, None

    def warn(self, text: str) -> None:
        """Warn once in a process."""
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(text, TilewrightWarning, stacklevel=3)

    def obtain(self, entry: str, key: str) -> Lease | bytes | None:
        """The object `entry`, or the lease to make it, or None: make it without a lease."""
        return self._run(obtained(entry, key, os.urandom(8).hex(), random.random))

    def _run(self, steps: Steps) -> Lease | bytes | None:
        """The outcome of a protocol; None if the remote fails, and without trust."""
        if not self.trusted:
            self.warn(
                f"nothing is read from the remote cache {self.url}: set "
                "TILEWRIGHT_REMOTE_CACHE_KEY to the file of a shared key, or "
                "TILEWRIGHT_REMOTE_CACHE_TRUST=1 if nobody else may write to it"
            )
            return None
        result: Any = None
        try:
            while True:
                result = self._step(steps.send(result))
        except StopIteration as end:
            return self._hold(end.value)
        except Unavailable:
            return None

    def _step(self, step: Step) -> object:
        if step.kind == "clock":
            return time.monotonic()
        if step.kind == "sleep":
            return time.sleep(step.seconds)
        if step.kind == "get":
            return self.call(lambda storage: storage.get(step.name))
        return self.call(lambda storage: storage.create(step.name, step.content))

    # --- writes -----------------------------------------------------------------------------------

    def later(self, write: Callable[[Storage], object], size: int = 0) -> bool:
        """Write in the background; False if the write is dropped, as while the remote is down.

        size: bytes to be written
        """
        self._after_fork()
        with self._lock:
            if self._patience <= 0 or self._waiting + size > _MAX_WAITING:
                return False
            if not self._start_writer():
                return False
            self._waiting += size
            self._pending += 1
            self._writes.append((write, size))
            self._wake.set()
            return True

    def _hold(self, outcome: Lease | bytes | None) -> Lease | bytes | None:
        if isinstance(outcome, Lease):
            with self._lock:
                self._held[outcome.name] = outcome
                self._start_writer()
                self._wake.set()
        return outcome

    def release(self, lease: Lease, published: bool) -> None:
        """Release a lease after all earlier writes. published: whether its object is there"""
        content = released(lease, published)

        def write(storage: Storage) -> None:
            self._drop(lease)
            storage.put(lease.name, content)

        if not self.later(write):
            self._drop(lease)  # without changes it expires; other clients would wait for its holder

    def _drop(self, lease: Lease) -> None:
        with self._lock:
            self._held.pop(lease.name, None)

    def _start_writer(self) -> bool:
        if not self._has_writer:
            self._has_writer = _started(self._write_all)
            _AtExit.add(self)
        return self._has_writer

    def _write_all(self) -> None:
        last_beat = time.monotonic()
        while True:
            self._wake.wait(BEAT_SECONDS if self._held else None)
            self._wake.clear()
            while self._writes:
                self._write(*self._writes.popleft())
                last_beat = self._beat(last_beat)
            last_beat = self._beat(last_beat)

    def _write(self, write: Callable[[Storage], object], size: int) -> None:
        try:
            write(self._opened())
        except synchronous(Exception) as problem:
            self.warn(f"cannot write to the remote cache {self.url}: {_said(problem)}")
        with self._lock:
            self._waiting -= size
            self._pending -= 1
            self._finished += 1

    def _beat(self, last: float) -> float:
        """Change the leases that this process holds, if it is time."""
        if time.monotonic() - last < BEAT_SECONDS:
            return last
        with self._lock:
            self._held = {name: refreshed(lease) for name, lease in self._held.items()}
            held = list(self._held.values())
        for lease in held:
            with suppress(Exception):
                self._opened().put(lease.name, lease.content())
        return time.monotonic()

    def flush(self, seconds: float = _EXIT_SECONDS) -> bool:
        """Wait until all is written, or nothing was for some seconds; whether all is written."""
        finished, since = self._finished, time.monotonic()
        while self._process == os.getpid() and self._pending:
            if self._patience <= 0:
                return False
            if self._finished != finished:
                finished, since = self._finished, time.monotonic()
            if time.monotonic() - since > seconds:
                return False
            time.sleep(0.002)
        return True


def _started(run: Callable[[], object]) -> bool:
    """Start a thread; False while the interpreter exits, which starts none from Python 3.12 on."""
    try:
        Thread(target=run, name="tilewright remote", daemon=True).start()
    except synchronous(RuntimeError):
        return False
    return True


class _AtExit:
    tiers: ClassVar[list[RemoteTier]] = []

    @classmethod
    def add(cls, tier: RemoteTier) -> None:
        if not cls.tiers:
            atexit.register(cls.flush)
        if tier not in cls.tiers:  # a child has the tiers of its parent
            cls.tiers.append(tier)

    @classmethod
    def flush(cls) -> None:
        for tier in cls.tiers:
            tier.flush()


_tiers: dict[tuple[str, bool, Path | None], RemoteTier] = {}


def shared_tier(cache: Cache) -> RemoteTier | None:
    """The tier of the present settings; None without a remote, or with a key that is unusable."""
    if cache.remote is None:
        return None
    place = cache.remote, cache.remote_trust, cache.remote_key
    tier = _tiers.get(place)
    if tier is None:
        tier = _tiers[place] = _new_tier(cache, cache.remote)
    return tier


def _new_tier(cache: Cache, url: str) -> RemoteTier:
    try:
        secret = shared_secret(cache)
    except synchronous(OSError, ValueError) as problem:
        warnings.warn(
            f"the key of the remote cache cannot be used ({problem}); nothing is read from it",
            TilewrightWarning,
            stacklevel=3,
        )
        return RemoteTier(url, Signer(), trusted=False)
    return RemoteTier(url, Signer(secret), trusted=secret is not None or cache.remote_trust)


def shared_secret(cache: Cache) -> bytes | None:
    """The shared key of the present settings, or None. Errors: OSError, ValueError."""
    if cache.remote_key is None:
        return None
    secret = cache.remote_key.read_bytes().strip()
    if not secret:
        raise ValueError(f"{cache.remote_key} is empty")
    return secret
