"""The clock of a GPU, for the harness."""

from __future__ import annotations

from typing import Any

FLUSH_BYTES = 512 << 20


class EventClock:
    """A clock for the harness: torch's events; the cache is cleared by writing half a gigabyte."""

    shortest_sample_ms = 0.0

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._junk = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")

    def record(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ms(self, start: Any, end: Any) -> float:
        return start.elapsed_time(end)

    def synchronize(self) -> None:
        self._torch.cuda.synchronize()

    def flush_cache(self) -> None:
        """Also gives the host the time to issue what is measured."""
        self._junk.zero_()

    def close(self) -> None:
        """Nothing to free before the process ends."""
