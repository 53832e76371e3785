"""The gates on words find planted faults; this checkout has none."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts import commit_subject, glossary

TABLE: dict[str, Any] = {
    "rule": [
        {"words": ["copy engines?", "turned"], "instead": "TMA", "rooms": ["src"]},
        {"words": ["products?"], "instead": "dots", "rooms": ["src/p/*/lower"]},
    ]
}
FAULTS = {
    "a private word": '"""Loads by the copy engine."""\n',
    "in a name": '"""Loads."""\nturned_loads = 1\n',
    "in a class": '"""Loads."""\nclass LoadsTurned: ...\n',
    "of a room": '"""Products."""\n',
    "an opening": '"""Of a thread: few."""\n',
    "an attribute's": '"""Limits."""\nA = 1\n"""What it is."""\n',
    "a figure": '"""Loads."""\n# 12 us on an H200\n',
    "a library's": '"""Loads."""\n# 1.2 times faster than Triton\n',
}


def _check(tmp_path: Path, text: str, *, room: str, **more: Any) -> list[glossary.Finding]:
    file = tmp_path / "src" / "p" / room / "x.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return glossary.check(tmp_path, TABLE | more)


def test_this_checkout_has_no_findings() -> None:
    table = tomllib.loads(glossary.TABLE.read_text("utf-8"))
    assert [str(finding) for finding in glossary.check(glossary.ROOT, table)] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(tmp_path: Path, fault: str) -> None:
    assert len(_check(tmp_path, FAULTS[fault], room="cpu/lower")) == 1


def test_a_planted_fault_in_a_page_is_found(tmp_path: Path) -> None:
    table = {"rule": [{"words": ["turned"], "instead": "transposed", "rooms": ["docs"]}]}
    for name in ("howto/a.md", "b.md", "adr/0001-c.md", "internals/renames.md", "generated/d.md"):
        page = tmp_path / "docs" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("# Of tiles\n\nA turned tile took 12 us on an H200.\n")
    found = [finding.path for finding in glossary.check(tmp_path, table)]
    assert found == ["docs/b.md", "docs/howto/a.md"]


def test_other_words_are_not_found(tmp_path: Path) -> None:
    text = '"""Loads that returned in 2 us; products of numbers."""\n'
    assert _check(tmp_path, text, room="analysis") == []


def test_an_exception_covers_its_line_and_needs_one(tmp_path: Path) -> None:
    row = {"file": "src/p/cpu/lower/x.py", "text": "products of numbers", "reason": "algebra"}
    stale = row | {"text": "products of matrices"}
    found = _check(
        tmp_path, '"""The products of numbers."""\n', room="cpu/lower", exception=[row, stale]
    )
    assert [finding.text for finding in found] == ["products of matrices"]


@pytest.mark.parametrize(
    "subject",
    ["Say more", "ir: add a verifier.", "ir: Add", "ir: " + "x" * 70],
)
def test_a_commit_subject_is_refused(subject: str) -> None:
    assert commit_subject.problem_of(subject)


@pytest.mark.parametrize("subject", ["ir: add a verifier", "Merge branch", "cpu/gemm: pack B"])
def test_a_commit_subject_is_accepted(subject: str) -> None:
    assert commit_subject.problem_of(subject) is None
