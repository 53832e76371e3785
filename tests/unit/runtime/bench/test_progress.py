"""The progress bar: silent on a pipe, redrawn only by the caller on a terminal."""

from __future__ import annotations

import io
import sys
import threading

import pytest
from rich.console import Console

from tilewright.testing import step_bar


def test_silent_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with step_bar("add", 1) as start:
        start("n=8")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_each_step_and_how_many_are_done() -> None:
    out = io.StringIO()
    with step_bar("add", 2, Console(file=out, force_terminal=True, width=100)) as start:
        start("n=8")
        first = out.getvalue()
        start("n=16")
    assert "add n=8" in first
    assert "0/2" in first
    assert "n=16" not in first
    assert "1/2" in out.getvalue()


def test_no_thread_and_no_redirection_disturb_the_measured_code() -> None:
    threads, stdout = threading.active_count(), sys.stdout
    with step_bar("add", 1, Console(file=io.StringIO(), force_terminal=True)) as start:
        start("n=8")
        assert threading.active_count() == threads
        assert sys.stdout is stdout
