"""A trace of what Tilewright does, in Chrome's format, which Perfetto reads.

Launches, compilations with their stages, kernels from the disk cache and tunings become events with
begin and duration; they come from the hooks that profilers use, so that nothing is recorded, and
nothing costs time, outside of the block::

    with LaunchTrace() as trace:
        ...
    trace.write(Path("trace.json"))
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilewright.runtime.launch_hooks import launch_enter, launch_exit, location_of, title_of
from tilewright.support import DeviceEvent, LaunchMetadata, kernel_hooks

__all__ = ["LaunchTrace"]

_DEVICE = 1
"""The process of a trace that shows the runs on a GPU; the other one is the host's."""


class _OpenLaunches(threading.local):
    """When the open launches of this thread began, the latest last."""

    def __init__(self) -> None:
        self.begins: list[int] = []


class LaunchTrace:
    """Records events while it is entered as a context.

    events: in the form of Chrome's format; locations: symbol -> "file:line" of launched kernels
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.locations: dict[str, str] = {}
        self._open = _OpenLaunches()
        self._previous: tuple[Any, Any] = (None, None)

    def __enter__(self) -> LaunchTrace:
        launch_enter.add(self._begin)
        launch_exit.add(self._end)
        self._previous = kernel_hooks.listener, kernel_hooks.tuned
        kernel_hooks.listener, kernel_hooks.tuned = self._compiled, self._tuned
        return self

    def __exit__(self, *_error: object) -> None:
        launch_enter.remove(self._begin)
        launch_exit.remove(self._end)
        kernel_hooks.listener, kernel_hooks.tuned = self._previous

    def write(self, path: Path, device_events: Iterable[DeviceEvent] = ()) -> None:
        """Write the trace; device_events: runs on a GPU, as rows of their own."""
        for event in device_events:
            location = self.locations.get(event.kernel)
            name = event.kernel if location is None else f"{event.kernel} ({location})"
            duration = event.end - event.begin
            self._add(name, "gpu", event.begin, duration, pid=_DEVICE, tid=event.stream)
        names = [(os.getpid(), "host"), (_DEVICE, "GPU, by stream")]
        shown = {event["pid"] for event in self.events}
        titles = [
            {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}
            for pid, name in names
            if pid in shown
        ]
        text = json.dumps({"traceEvents": titles + self.events, "displayTimeUnit": "ns"})
        path.write_text(text, encoding="utf-8")

    def _add(
        self, name: str, kind: str, begin: int, duration: int,
        pid: int | None = None, tid: int | None = None, **args: object,
    ) -> None:  # fmt: skip
        """Add an event; begin, duration: in nanoseconds, of which the format wants thousands."""
        self.events.append(
            {
                "name": name,
                "cat": kind,
                "ph": "X",
                "ts": begin / 1000,
                "dur": duration / 1000,
                "pid": os.getpid() if pid is None else pid,
                "tid": threading.get_native_id() if tid is None else tid,
                "args": args,
            }
        )

    # --- launches ---------------------------------------------------------------------------------

    def _begin(self, metadata: LaunchMetadata | None) -> None:
        self._open.begins.append(time.perf_counter_ns())

    def _end(self, metadata: LaunchMetadata | None) -> None:
        end, begin = time.perf_counter_ns(), self._open.begins.pop()
        described = {} if metadata is None else metadata.get()
        name = str(described.get("name", "kernel"))
        if (location := location_of(metadata)) is not None:
            self.locations[name] = location
        grid = str(described.get("grid", ""))
        self._add(title_of(metadata), "launch", begin, end - begin, grid=grid)

    # --- compilations and tunings -----------------------------------------------------------------

    def _compiled(self, **found: Any) -> None:
        end, times = time.perf_counter_ns(), found["times"]
        name, begin = found["src"].name, end - times.total * 1000
        if found["cache_hit"]:
            self._add(f"read {name}", "disk cache", begin, times.total * 1000)
        else:
            self._add(f"compile {name}", "compile", begin, times.total * 1000)
            stages = [("front end", times.ir_initialization), *times.lowering_stages]
            for stage, microseconds in [*stages, ("store", times.store_results)]:
                self._add(stage, "stage", begin, microseconds * 1000)
                begin += microseconds * 1000
        if self._previous[0] is not None:
            self._previous[0](**found)

    def _tuned(self, **found: Any) -> None:
        seconds, timings = found["duration"], found["configs_timings"]
        duration = int(seconds * 1e9)
        self._add(
            f"tune {found['fn'].__name__}",
            "disk cache" if found["cache_hit"] else "tuning",
            time.perf_counter_ns() - duration,
            duration,
            best=str(found["best_config"]),
            milliseconds={str(config): timing[0] for config, timing in timings.items()},
        )
        if self._previous[1] is not None:
            self._previous[1](**found)
