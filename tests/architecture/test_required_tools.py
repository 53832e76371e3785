"""A missing tool skips a test, fails it in `.ci/run`, and hides no test from every tier."""

from __future__ import annotations

import re

import pytest

from tests.architecture import gates
from tests.architecture.gates import ROOT
from tests.required_tools import BROWSER_VARIABLE, VARIABLE

PLUGIN = ("-p", "tests.required_tools")
NEEDY = """
import pytest

@pytest.mark.dev("json", "no_such_tool")
def test_needy(): pass

@pytest.mark.dev("json")
def test_content(): pass
"""
SKIPPED_BY_ITSELF = """
import sys
import pytest

@pytest.fixture
def torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    return pytest.importorskip("torch")

def test_unmarked(torch): pass

@pytest.mark.torch
def test_marked(torch): pass
"""


@pytest.mark.parametrize("value", ["", "1"])
def test_a_test_without_its_tool_skips_or_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    pytester.makeini("[pytest]\nmarkers = dev\n")
    pytester.makepyfile(NEEDY)
    result = pytester.runpytest_inprocess(*PLUGIN, "-ra")
    result.assert_outcomes(passed=1, skipped=0 if value else 1, errors=1 if value else 0)
    assert "no_such_tool is not installed: pip install '.[dev]'" in result.stdout.str()


@pytest.mark.parametrize("value", ["", "1"])
def test_a_browser_test_without_chromium_skips_or_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(BROWSER_VARIABLE, value)
    monkeypatch.setenv("PATH", "")
    pytester.makeini("[pytest]\nmarkers = browser\n")
    pytester.makepyfile("import pytest\n@pytest.mark.browser\ndef test_needy(): pass\n")
    pytester.makepyfile(playwright="")
    pytester.syspathinsert()
    result = pytester.runpytest_inprocess(*PLUGIN, "-ra")
    result.assert_outcomes(skipped=0 if value else 1, errors=1 if value else 0)
    assert "apt-get install chromium-headless-shell" in result.stdout.str()


def test_a_gate_without_its_tool_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no_such_gate is not installed: pip install"):
        gates.run_module("no_such_gate")
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(pytest.fail.Exception, match="no_such_gate is not installed: pip install"):
        gates.run_module("no_such_gate")


def test_a_test_that_needs_torch_is_marked(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = torch\n")
    pytester.makepyfile(SKIPPED_BY_ITSELF)
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(skipped=1, errors=1)
    result.stdout.fnmatch_lines(["*a test that needs torch is marked `torch`*"])


def test_files_that_need_torch_are_marked() -> None:
    needy = re.compile(r"^(\w.*)?pytest\.importorskip\(\"torch", re.MULTILINE)
    texts = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    found = {path: text for path, text in texts.items() if needy.search(text)}
    assert len(found) > 20
    assert [path for path, text in found.items() if "pytest.mark.torch" not in text] == []
