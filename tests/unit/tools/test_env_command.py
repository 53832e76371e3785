"""`tilewright env`: every setting and its value."""

import json

import pytest

from tilewright.support.settings_table import setting_rows
from tilewright.tools.cli import main


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def test_every_variable_with_its_meaning(capsys):
    assert main(["env"]) == 0
    text = capsys.readouterr().out
    for row in setting_rows():
        assert f"{row.variables[0]}=" in text
        assert row.doc in text


def test_what_is_set_is_marked(monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_CPU_THREADS", "3")
    assert main(["env"]) == 0
    line = next(x for x in capsys.readouterr().out.splitlines() if "CPU_THREADS" in x)
    assert "TILEWRIGHT_CPU_THREADS=3 *" in line


def test_a_bad_value_is_a_mistake_of_the_user(monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_CPU_THREADS", "some")
    assert main(["env"]) == 1
    err = capsys.readouterr().err
    assert "TILEWRIGHT_CPU_THREADS must be a number of threads" in err
    assert "Traceback" not in err


def test_markdown_does_not_depend_on_the_machine(monkeypatch, capsys):
    assert main(["env", "--markdown"]) == 0
    first = capsys.readouterr().out
    monkeypatch.setenv("TILEWRIGHT_CPU_THREADS", "3")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert main(["env", "--markdown"]) == 0
    assert capsys.readouterr().out == first
    assert len(first.splitlines()) == 2 + len(setting_rows())


def test_programs_get_json(capsys):
    assert main(["env", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["variables"] for row in rows] == [list(row.variables) for row in setting_rows()]
