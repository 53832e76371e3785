"""Commands in a terminal of 80 columns: text wraps between words, and no word is lost."""

import sys

import pytest

from tilewright.tools.cli import main

HEADINGS = {"cpu:", "cuda:"}
"""Words that only the wide form has."""


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The output of a command in a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main([*words]) == 0
    return capsys.readouterr().out


def piped(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The output of a command in a pipe."""
    assert main([*words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["pipeline", "--target", "cpu"],
        ["pipeline", "--target", "sm_90"],
        ["env"],
        ["explain-error"],
        ["explain-error", "TW100"],
        ["explain-error", "TW103"],
        ["explain-error", "TW112"],
    ],
    ids=" ".join,
)
def test_text_wraps_between_words(command, monkeypatch, capsys):
    whole = piped(capsys, *command)
    narrow = shown(monkeypatch, capsys, *command)
    assert set(whole.split()) - set(narrow.split()) <= HEADINGS
    too_long = [line for line in narrow.splitlines() if len(line) > 80]
    # One word may be longer than the terminal is wide: a path, or a pass with its options.
    assert all(len(line.split()) <= 2 for line in too_long), too_long


def test_fields_of_messages_are_shown_as_blanks(capsys):
    assert "<what> must be known at compile time" in piped(capsys, "explain-error", "TW104")
