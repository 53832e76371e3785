"""Named points in file writers, at which a test can end the process or fail a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class FailPoints:
    """hook: called with the name of each reached point; None outside of tests"""

    hook: ClassVar[Callable[[str], None] | None] = None


def fail_point(name: str) -> None:
    """Report that a writer has reached `name`; exceptions of the hook propagate."""
    if FailPoints.hook is not None:
        FailPoints.hook(name)
