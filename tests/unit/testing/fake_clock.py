"""A clock whose time passes only when a test says so."""

from __future__ import annotations


class FakeClock:
    """Host time in milliseconds, advanced by `spend`; counts what the measuring loop asks of it."""

    def __init__(self, shortest_sample_ms: float = 0.0, flush_ms: float = 0.0) -> None:
        self.shortest_sample_ms = shortest_sample_ms
        self.flush_ms = flush_ms
        self.now = 0.0
        self.flushes = 0
        self.closed = False
        self.synchronized_at = -1.0

    def spend(self, ms: float) -> None:
        self.now += ms

    def record(self) -> object:
        return self.now

    def elapsed_ms(self, start: object, end: object) -> float:
        assert isinstance(start, float)
        assert isinstance(end, float)
        assert end <= self.synchronized_at, "read a stamp before synchronize"
        return end - start

    def synchronize(self) -> None:
        self.synchronized_at = self.now

    def flush_cache(self) -> None:
        self.flushes += 1
        self.spend(self.flush_ms)

    def close(self) -> None:
        self.closed = True
