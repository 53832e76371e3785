"""A page of a file in an offline browser, with its requests and complaints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage


class OpenedPage:
    """A page in a browser context of its own.

    page: playwright's page. requests: the URL of each request, the page's own first. complaints:
    console errors and warnings, uncaught exceptions, failed requests.
    """

    def __init__(self, browser: Any, file: Path, size: tuple[int, int], pictures: Path) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._pictures = pictures
        self._context = browser.new_context(
            offline=True, viewport={"width": size[0], "height": size[1]}
        )
        self.page = self._context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._keep_complaint)
        self.page.goto(file.resolve().as_uri())

    @property
    def remote_requests(self) -> list[str]:
        """The requests that need a network."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]

    def take_screenshot(self, name: str, full_page: bool = False) -> Path:
        """Write `NAME.png` into the folder of screenshots."""
        path = self._pictures / f"{name}.png"
        self.page.screenshot(path=path, full_page=full_page)
        return path

    def close(self) -> None:
        """Close the page with its context."""
        self._context.close()

    def _keep_complaint(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


class OpenPage(Protocol):
    """The type of the fixture `open_page`."""

    def __call__(self, file: Path, width: int = 1280, height: int = 900) -> OpenedPage: ...
