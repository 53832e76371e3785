"""Run a function in a forked child."""

import os
import signal
import traceback
import warnings
from collections.abc import Callable

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def assert_child_succeeds(work: Callable[[], object]) -> None:
    """Run `work` in a child; AssertionError if it raises there."""
    code = exit_code_of_child(work)
    assert code == 0, f"the child ended with {code}"


def exit_code_of_child(work: Callable[[], object]) -> int:
    """Run `work` in a child: 0, 1 if it raises, or minus the number of the signal that ended it.

    The time limit of the test ends a child that hangs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: "multi-threaded"
        child = os.fork()
    if child == 0:
        _run_and_exit(work)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    return os.waitstatus_to_exitcode(status)


def _run_and_exit(work: Callable[[], object]) -> None:
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
