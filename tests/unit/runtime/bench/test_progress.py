"""The progress bar: silent on a pipe, redrawn only by the caller on a terminal."""

from __future__ import annotations

import io
import re
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


def test_long_texts_fit_in_eighty_columns() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system=None)
    with step_bar("tuning kernel", 2, console) as bar:
        bar.show("compiling 2 configurations")
        bar("BLOCK_M: 128, BLOCK_N: 64, BLOCK_K: 32, GROUP: [8], num_warps: 4")
        first = out.getvalue()
        bar.resize(3)
        bar("BLOCK: 64\nbest 0.1234 ms: BLOCK: 32")
    assert "compiling 2 configurations" in first
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert max(map(len, re.split(r"[\r\n]+", text))) <= 80
    assert "tuning kernel BLOCK: 64 " in text
    assert "best 0.1234 ms: BLOCK: 32" in text
    assert "1/3" in text


def test_no_thread_and_no_redirection_disturb_the_measured_code() -> None:
    threads, stdout = threading.active_count(), sys.stdout
    with step_bar("add", 1, Console(file=io.StringIO(), force_terminal=True)) as start:
        start("n=8")
        assert threading.active_count() == threads
        assert sys.stdout is stdout
