"""Configuration of the documentation site: `python -m sphinx -n -W docs site`, without network."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts import site_pages  # noqa: E402
from tilewright.support.version import __version__  # noqa: E402

project = "Tilewright"
author = "The Tilewright authors"
release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["reference/**"]  # examples, which `site_pages` puts on the pages of names
templates_path = ["templates"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"Tilewright {release}"
# The contents in the sidebar would be a quarter of these pages; they link their index instead.
html_sidebars = {
    "generated/**": ["sidebar/brand.html", "sidebar/search.html", "sidebar/reference.html"]
}
html_context = {
    "reference_pages": [
        ("index", "Start"),
        ("generated/api/tilewright.language", "tilewright.language (tl)"),
        ("generated/api/tilewright", "tilewright"),
        ("generated/api/tilewright.testing", "tilewright.testing"),
        ("generated/errors/index", "Error codes"),
        ("support", "Support matrix"),
        ("libdevice", "Library functions"),
        ("settings", "Settings"),
    ]
}
html_static_path = ["static"]
html_css_files = ["tilewright.css"]
html_search_scorer = str(Path(__file__).with_name("static") / "search_scorer.js")
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 4
add_module_names = False
# A longer signature has one parameter a line.
maximum_signature_line_length = 88
# Annotations name types that are not public, or of other projects; `-n` still checks all else.
nitpick_ignore_regex = [("py:(class|exc|obj|data)", ".*")]


def setup(app: Sphinx) -> None:
    """Write the generated pages before Sphinx looks for sources."""
    site_pages.write()
    if app.doctreedir == app.outdir / ".doctrees":
        # Sphinx's own cache, as large as the site, is no part of it.
        app.doctreedir = app.srcdir / "generated/.doctrees"
    app.connect("source-read", _leave_out_of_the_sidebar)
    app.connect("build-finished", _write_llms_text)


def _leave_out_of_the_sidebar(_app: Sphinx, page: str, text: list[str]) -> None:
    """Mark decision records, which the table of `adr/README` links, as `site_pages` does names."""
    if page.startswith("adr/0"):
        text[0] = site_pages.ORPHAN + text[0]


def _write_llms_text(app: Sphinx, problem: Exception | None) -> None:
    """Write `llms.txt` beside the start page."""
    if problem is None:
        titles = {page: title.astext() for page, title in app.env.titles.items()}
        (app.outdir / "llms.txt").write_text(site_pages.llms_text(titles), "utf-8")
