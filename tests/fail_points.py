"""Runs writers of files up to a named point and stops them there."""

import os
import signal
from collections.abc import Callable, Iterator

from tests.forking import exit_code_of_child
from tilewright.support.disk_cache.fail_points import FailPoints


def reached_points(work: Callable[[], object]) -> list[str]:
    """The points that `work` reaches, in order."""
    reached: list[str] = []
    FailPoints.hook = reached.append
    try:
        work()
    finally:
        FailPoints.hook = None
    return reached


def killed_at(nth: int, work: Callable[[], object]) -> bool:
    """Run `work` in a child that is killed at its nth point, from 0; whether it got there."""

    def run() -> None:
        before = iter(range(nth))
        FailPoints.hook = lambda point: _die_after(before)
        work()

    return exit_code_of_child(run) == -signal.SIGKILL


def _die_after(before: Iterator[int]) -> None:
    if next(before, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
