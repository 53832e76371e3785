"""Pages opened in headless Chromium, without a network: fixture `open_page`.

Tests here are marked `browser`. They need playwright (extra `dev`) and a Chromium of the system, as
Debian's package `chromium-headless-shell`; playwright's own download is never used. Screenshots go
to a temporary folder, or to the one that the variable `SCREENSHOTS` names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.opened_page import OpenedPage, OpenPage
from tests.required_tools import find_chromium

_OFFLINE = ("--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND")
"""The sandbox needs privileges that containers lack, and every page is one of ours."""


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the screenshots."""
    chosen = os.environ.get("SCREENSHOTS")
    folder = Path(chosen).resolve() if chosen else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def _chromium() -> Iterator[object]:  # pyright: ignore[reportUnusedFunction]
    """One browser process for all tests; its start takes half a second."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=[*_OFFLINE])
        yield browser
        browser.close()


@pytest.fixture
def open_page(_chromium: object, screenshots: Path) -> Iterator[OpenPage]:
    """A function that opens a file in a context of its own, closed after the test."""
    opened: list[OpenedPage] = []

    def open_(file: Path, width: int = 1280, height: int = 900) -> OpenedPage:
        opened.append(OpenedPage(_chromium, file, (width, height), screenshots))
        return opened[-1]

    yield open_
    for page in opened:
        page.close()
