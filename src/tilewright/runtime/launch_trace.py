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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tilewright.runtime.launch_hooks import (
    OpenLaunches,
    launch_enter,
    launch_exit,
    location_of,
    title_of,
)
from tilewright.support import DeviceEvent, HookChain, LaunchMetadata, kernel_hooks

_DEVICE = 1
"""The process of a trace that shows the runs on a GPU; the other one is the host's."""


class _Listeners:
    """Listeners to a hook of `kernel_hooks`, which has room for one, besides the user's."""

    def __init__(self, hook: str) -> None:
        self.hook = hook
        self.chain: HookChain[...] = HookChain()
        self.user: Callable[..., object] | None = None

    def add(self, listener: Callable[..., object]) -> None:
        """Call `listener` from now on, and the user's as before."""
        if not self.chain:
            self.user = getattr(kernel_hooks, self.hook)
            setattr(kernel_hooks, self.hook, self)
        self.chain.add(listener)

    def remove(self, listener: Callable[..., object]) -> None:
        """Call `listener` no longer."""
        self.chain.remove(listener)
        if not self.chain:
            setattr(kernel_hooks, self.hook, self.user)

    def __call__(self, **found: Any) -> None:
        self.chain(**found)
        if self.user is not None:
            self.user(**found)


_compiled, _tuned = _Listeners("listener"), _Listeners("tuned")


class LaunchTrace:
    """Records events while it is entered as a context.

    locations: symbol -> "file:line" of launched kernels
    """

    def __init__(self) -> None:
        # tuples of numbers and texts, which the garbage collector does not visit
        self._rows: list[tuple[str, str, int, int, int, int, Iterable[tuple[str, object]]]] = []
        self._pid = os.getpid()
        self.locations: dict[str, str] = {}
        self._begins = OpenLaunches[int]()
        self._hooks: tuple[tuple[Any, Callable[..., object]], ...] = (
            (launch_enter, self._begin),
            (launch_exit, self._end),
            (_compiled, self.compiled),
            (_tuned, self.tuned),
        )

    def __enter__(self) -> LaunchTrace:
        for chain, hook in self._hooks:
            chain.add(hook)
        return self

    def __exit__(self, *_error: object) -> None:
        for chain, hook in self._hooks:
            chain.remove(hook)

    def write(self, path: Path, device_events: Iterable[DeviceEvent] = ()) -> None:
        """Write the trace; device_events: runs on a GPU, as rows of their own."""
        for event in device_events:
            location = self.locations.get(event.kernel)
            name = event.kernel if location is None else f"{event.kernel} ({location})"
            duration = event.end - event.begin
            self.add(name, "gpu", event.begin, duration, pid=_DEVICE, tid=event.stream)
        names = [(self._pid, "host"), (_DEVICE, "GPU, by stream")]
        events = self.events
        shown = {event["pid"] for event in events}
        titles = [
            {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}
            for pid, name in names
            if pid in shown
        ]
        text = json.dumps({"traceEvents": titles + events, "displayTimeUnit": "ns"})
        path.write_text(text, encoding="utf-8")

    def add(
        self,
        name: str,
        kind: str,
        begin: int,
        duration: int,
        arguments: Iterable[tuple[str, object]] = (),
        pid: int | None = None,
        tid: int | None = None,
    ) -> None:
        """Add an event; begin, duration: in nanoseconds; the format has microseconds."""
        thread = threading.get_native_id() if tid is None else tid
        self._rows.append((name, kind, begin, duration, pid or self._pid, thread, arguments))

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events so far, in the form of Chrome's format."""
        return [
            {
                "name": name,
                "cat": kind,
                "ph": "X",
                "ts": begin / 1000,
                "dur": duration / 1000,
                "pid": pid,
                "tid": thread,
                "args": dict(arguments),
            }
            for name, kind, begin, duration, pid, thread, arguments in self._rows
        ]

    # --- launches ---------------------------------------------------------------------------------

    def _begin(self, metadata: LaunchMetadata | None) -> None:
        self._begins.items.append(time.perf_counter_ns())

    def _end(self, metadata: LaunchMetadata | None) -> None:
        end, begin = time.perf_counter_ns(), self._begins.items.pop()
        described = {} if metadata is None else metadata.get()
        if (location := location_of(metadata)) is not None:
            self.locations[str(described["name"])] = location
        grid = str(described.get("grid", ""))
        self.add(title_of(metadata), "launch", begin, end - begin, (("grid", grid),))

    # --- compilations and tunings -----------------------------------------------------------------

    def compiled(self, **found: Any) -> None:
        """Add a compilation, as `KernelHooks.listener` describes it."""
        end, times = time.perf_counter_ns(), found["times"]
        name, begin = found["src"].name, end - times.total * 1000
        if found["cache_hit"]:
            self.add(f"read {name}", "disk cache", begin, times.total * 1000)
        else:
            self.add(f"compile {name}", "compile", begin, times.total * 1000)
            stages = [("front end", times.ir_initialization), *times.lowering_stages]
            for stage, microseconds in [*stages, ("store", times.store_results)]:
                self.add(stage, "stage", begin, microseconds * 1000)
                begin += microseconds * 1000

    def tuned(self, **found: Any) -> None:
        """Add a choice of an autotuner, as `KernelHooks.tuned` describes it."""
        seconds, timings = found["duration"], found["configs_timings"]
        duration = int(seconds * 1e9)
        self.add(
            f"tune {found['fn'].__name__}",
            "disk cache" if found["cache_hit"] else "tuning",
            time.perf_counter_ns() - duration,
            duration,
            (
                ("best", str(found["best_config"])),
                ("milliseconds", {str(config): ms[0] for config, ms in timings.items()}),
            ),
        )
