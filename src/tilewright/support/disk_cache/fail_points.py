"""Named points in the writers of files, at which a test can end the process or make a call fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

__all__ = ["FailPoints", "fail_point"]


class FailPoints:
    """hook: called with the name of each point that is reached; None outside of tests."""

    hook: ClassVar[Callable[[str], None] | None] = None


def fail_point(name: str) -> None:
    """Say that a writer has got to `name`. What the hook raises, such as OSError, passes on."""
    if FailPoints.hook is not None:
        FailPoints.hook(name)
