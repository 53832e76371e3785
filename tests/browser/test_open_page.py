"""The fixture `open_page` sees requests, errors and clicks, and has no network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.opened_page import OpenPage

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><title>page</title><button onclick="this.textContent = 'clicked'">x
</button>%s"""


def test_a_page_of_one_file_makes_one_request(open_page: OpenPage, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGE % "")
    opened = open_page(file)
    opened.page.click("button")
    assert opened.page.text_content("button") == "clicked"
    assert opened.requests == [file.as_uri()]
    assert opened.complaints == opened.remote_requests == []
    assert opened.take_screenshot("fixture").read_bytes()[:4] == b"\x89PNG"


def test_planted_faults_are_seen(open_page: OpenPage, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        PAGE % '<img src="https://example.org/x.png"><script>console.error("bad"); f()</script>'
    )
    opened = open_page(file)
    assert opened.remote_requests == ["https://example.org/x.png"]
    assert any("bad" == text for text in opened.complaints)
    assert any("f is not defined" in text for text in opened.complaints)
