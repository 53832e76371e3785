"""`triton.profiler`: the names of Proton, so that programs that may profile run without it.

Nothing is measured, of which `start` warns once. `tilewright.runtime.launch_hooks` calls hooks
around every launch, for profilers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from tilewright.support import TilewrightWarning

DEFAULT_PROFILE_NAME = "proton"


def start(name: str | None = None, **options: object) -> int:
    """Start a session, which measures nothing, with a warning. Returns its number, 0."""
    warnings.warn(
        f"triton.profiler measures nothing in Tilewright: no profile "
        f"'{name or DEFAULT_PROFILE_NAME}' will be written",
        TilewrightWarning,
        stacklevel=2,
    )
    return 0


def activate(session: int | None = None) -> None:
    """Resume a session."""


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Pause a session."""


def finalize(session: int | None = None, output_format: str = "") -> None:
    """End a session."""


def enter_scope(name: str, *, metrics: Mapping[str, float] | None = None) -> int:
    """Start a part of a profile. Returns its number, 0."""
    return 0


def exit_scope(name: str | None = None, *, metrics: Mapping[str, float] | None = None) -> int:
    """End a part of a profile."""
    return 0


@contextmanager
def scope(name: str, metrics: Mapping[str, float] | None = None) -> Generator[None]:
    """A part of a profile, as a block or a decorator."""
    yield


cpu_timed_scope = state = metadata_state = scope


def profile(func: Callable[..., Any] | None = None, **options: object) -> Any:
    """Decorator: a session around each call."""
    return _unchanged if func is None else func


def _unchanged(func: Callable[..., Any]) -> Callable[..., Any]:
    return func
