"""The profiler of GPU kernels: CUPTI's records of the runs of kernels, by `cupti-python`.

CUPTI samples program counters, but `cupti-python` offers no access to them: a kernel's time is
that of its first line.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tilewright.support import DeviceEvent, LineCost, import_late
from tilewright.support.asynchronous_exceptions import synchronous

_BUFFER_BYTES = 8 << 20
_REMEDY = "pip install 'tilewright[profile]'"


class ActivityProfiler:
    """See `support.KernelProfiler`. locations: symbol of a kernel -> its "file:line"."""

    def __init__(self, locations: Mapping[str, str]) -> None:
        self.costs: list[LineCost] = []
        self.events: list[DeviceEvent] = []
        self.elsewhere = 0.0
        self.note = ""
        self._locations = locations
        self._offset = 0
        self._cupti: Any = None

    def __enter__(self) -> ActivityProfiler:
        try:
            self._cupti = import_late("cupti.cupti")
            self._cupti.activity_enable(self._kind)
            self._cupti.activity_register_callbacks(_requested, self._completed)
        except synchronous(Exception) as problem:
            # another profiler may hold CUPTI, as nsys does
            self._cupti = None
            self.note = f"times on the GPU need cupti-python ({problem}): {_REMEDY}"
            return self
        # CUPTI's clock and Python's differ by a constant
        self._offset = time.perf_counter_ns() - self._cupti.get_timestamp()
        return self

    @property
    def _kind(self) -> int:
        return self._cupti.ActivityKind.CONCURRENT_KERNEL

    def __exit__(self, *error: object) -> None:
        if self._cupti is None:
            return
        self._cupti.activity_flush_all(1)
        self._cupti.activity_disable(self._kind)
        self.events.sort(key=lambda event: event.begin)
        total: Counter[tuple[str, str, int]] = Counter()
        for event in self.events:
            total[self._place(event.kernel)] += event.end - event.begin
        self.costs = [LineCost(*place, ns * 1e-9) for place, ns in total.most_common()]
        self.note = f"{len(self.events)} runs on the GPU, each counted at its kernel's first line"

    def _completed(self, activities: list[Any]) -> None:
        for one in activities:
            if one.kind == self._kind:
                begin, end = one.start + self._offset, one.end + self._offset
                self.events.append(DeviceEvent(str(one.name), int(one.stream_id), begin, end))

    def _place(self, symbol: str) -> tuple[str, str, int]:
        location = self._locations.get(symbol, "")
        file, _, line = location.rpartition(":")
        return f"{symbol} ({location})" if location else symbol, file, int(line or 0)


def _requested() -> tuple[int, int]:
    """The size of a new buffer, and its most records: 0 is no limit."""
    return _BUFFER_BYTES, 0
