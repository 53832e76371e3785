"""Runs a function in a forked child, with a time limit."""

import os
import signal
import traceback
import warnings
from collections.abc import Callable

import pytest

CHILD_SECONDS = 60

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def assert_child_succeeds(work: Callable[[], object]) -> None:
    """Run `work` in a child; AssertionError if it raises there, or is not done in a minute."""
    code = exit_code_of_child(work)
    assert code != -signal.SIGALRM, "the child hung"
    assert code == 0, f"the child ended with {code}"


def exit_code_of_child(work: Callable[[], object]) -> int:
    """Run `work` in a child: 0, 1 if it raises, or minus the number of the signal that ended it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: "multi-threaded"
        child = os.fork()
    if child == 0:
        _run_and_exit(work)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _run_and_exit(work: Callable[[], object]) -> None:
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(CHILD_SECONDS)
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
