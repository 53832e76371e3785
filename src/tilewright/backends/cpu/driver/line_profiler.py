"""The profiler of CPU kernels: samples of program counters, by line of the source."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from tilewright.backends.cpu.driver.loaded_code import LoadedCode, code_listeners
from tilewright.backends.cpu.driver.sampler import Sampler
from tilewright.support import DeviceEvent, LineCost


class LineProfiler:
    """See `support.KernelProfiler`. Kernels that were loaded before belong to `elsewhere`."""

    def __init__(self, _locations: Mapping[str, str]) -> None:
        self.costs: list[LineCost] = []
        self.events: list[DeviceEvent] = []
        self.elsewhere = 0.0
        self.note = "" if Sampler.is_available() else "lines are sampled on Linux only"
        self._sampler = Sampler() if Sampler.is_available() else None
        self._loaded: list[LoadedCode] = []
        self._cpu_seconds = 0.0

    def __enter__(self) -> LineProfiler:
        code_listeners.append(self._loaded.append)
        self._cpu_seconds = -time.process_time()
        if self._sampler is not None:
            self._sampler.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        code_listeners.remove(self._loaded.append)
        if self._sampler is None:
            return
        self._sampler.__exit__(*error)
        self._cpu_seconds += time.process_time()
        counts = self._counts(self._sampler.counters)
        samples = sum(self._sampler.counters.values())
        # CPU time is exact, and shared among the samples
        each = self._cpu_seconds / max(samples, 1)
        self.costs = [LineCost(*place, count * each) for place, count in counts.most_common()]
        self.elsewhere = (samples - counts.total()) * each
        self.note = f"{samples} samples of {self._cpu_seconds:.2f} s of CPU time"
        if self._sampler.lost:
            self.note += f"; {self._sampler.lost} later ones are lost"

    def _counts(self, counters: Counter[int]) -> Counter[tuple[str, str, int]]:
        """Samples by kernel, file and line. A later kernel may have the addresses of one that was
        unloaded: it counts."""
        found: Counter[tuple[str, str, int]] = Counter()
        for address, count in counters.items():
            code = next((c for c in reversed(self._loaded) if address in c), None)
            if code is None:
                continue
            row = code.table.row_at(address - code.base)
            file = code.location.rpartition(":")[0]
            if row is None or not row.line:
                found[code.title, file, 0] += count
            else:
                # names of files are no part of a kernel's key: the table may have another one
                own = row.file.rpartition("/")[2] == file.rpartition("/")[2]
                found[code.title, file if own else row.file, row.line] += count
        return found
