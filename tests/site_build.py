"""Builds the documentation site, and checks the links of its pages."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]


def build_site(folder: Path) -> Path:
    """The site, built in a folder without warnings. It is built anew: no page is cached."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going",
         "-d", str(folder / "trees"), str(ROOT / "docs"), str(folder / "html")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "html"


class _Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value and not (tag == "use" or value == "#"):
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """Links to files and anchors that the site does not have, as `PAGE -> LINK`."""
    pages = {path.resolve(): _Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    broken: list[str] = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = pages.get(target)
            has_anchor = found is None or unquote(parts.fragment) in found.anchors
            if not target.exists() or not has_anchor:
                broken.append(f"{path.relative_to(site.resolve())} -> {link}")
    return broken
