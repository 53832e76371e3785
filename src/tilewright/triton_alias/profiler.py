"""`triton.profiler`: Proton's sessions, those with `data="trace"` as traces of launches.

    proton.start("train", data="trace")
    with proton.scope("step", {"flops": 1e9}):
        kernel[grid](...)
    proton.finalize()                       # writes train.chrome_trace

A trace has scopes, launches, compilations and tunings (`LaunchTrace`). Sessions with other data, as
Proton's default `"tree"`, measure nothing, of which `start` warns.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilewright.runtime import LaunchTrace
from tilewright.support import TilewrightWarning
from tilewright.support.data_class import dataclass

DEFAULT_PROFILE_NAME = "proton"


@dataclass
class _Session:
    """A session that records. path: of its file; is_active: whether it is not paused"""

    trace: LaunchTrace
    path: Path
    is_active: bool = False

    def activate(self) -> None:
        """Record from now on."""
        if not self.is_active:
            self.trace.__enter__()
        self.is_active = True

    def deactivate(self) -> None:
        """Pause."""
        if self.is_active:
            self.trace.__exit__()
        self.is_active = False


_sessions: dict[int, _Session] = {}
_open_scopes: list[tuple[str, int]] = []
"""Name and begin of each scope without an end, the latest last."""


def start(name: str | None = None, *, data: str = "tree", **options: object) -> int:
    """Start a session. data: "trace"; another one measures nothing, with a warning. Returns its
    number."""
    number = max(_sessions, default=-1) + 1
    if data != "trace":
        warnings.warn(
            f"triton.profiler measures nothing for data='{data}': no profile "
            f"'{name or DEFAULT_PROFILE_NAME}' will be written; data='trace' writes a trace",
            TilewrightWarning,
            stacklevel=2,
        )
        return number
    session = _Session(LaunchTrace(), Path(f"{name or DEFAULT_PROFILE_NAME}.chrome_trace"))
    _sessions[number] = session
    session.activate()
    return number


def _chosen(session: int | None) -> list[_Session]:
    """One session, or all; none for a session that measures nothing."""
    return [one for number, one in _sessions.items() if session in (None, number)]


def activate(session: int | None = None) -> None:
    """Resume a session, or all."""
    for one in _chosen(session):
        one.activate()


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Pause a session, or all."""
    for one in _chosen(session):
        one.deactivate()


def finalize(session: int | None = None, output_format: str = "") -> None:
    """End a session, or all, and write its file."""
    deactivate(session)
    for number in [number for number in _sessions if session in (None, number)]:
        ended = _sessions.pop(number)
        ended.trace.write(ended.path)


def enter_scope(name: str, *, metrics: Mapping[str, float] | None = None) -> int:
    """Start a part of a profile. Returns its number."""
    _open_scopes.append((name, time.perf_counter_ns()))
    return len(_open_scopes) - 1


def exit_scope(name: str | None = None, *, metrics: Mapping[str, float] | None = None) -> int:
    """End the latest part of a profile, with metrics of it. Returns its number."""
    opened, begin = _open_scopes.pop()
    duration = time.perf_counter_ns() - begin
    for one in _sessions.values():
        if one.is_active:
            one.trace.add(opened, "scope", begin, duration, tuple((metrics or {}).items()))
    return len(_open_scopes)


@contextmanager
def scope(name: str, metrics: Mapping[str, float] | None = None) -> Generator[None]:
    """A part of a profile, as a block or a decorator."""
    enter_scope(name)
    try:
        yield
    finally:
        exit_scope(metrics=metrics)


cpu_timed_scope = state = metadata_state = scope


def profile(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator: a session around each call; options: of `start`."""
    if func is None:
        return functools.partial(profile, **options)

    @functools.wraps(func)
    def profiled(*args: Any, **keywords: Any) -> Any:
        session = start(**options)
        try:
            return func(*args, **keywords)
        finally:
            finalize(session)

    return profiled
