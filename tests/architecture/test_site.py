"""The documentation site: it builds without warnings, documents every public name and code, and has
no broken link.
"""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import site_pages
from tests.site_build import broken_links, build_site
from tilewright.tools.explain_error_command import error_classes

LIMIT_MB = 10
needs_sphinx = pytest.mark.dev("sphinx", "myst_parser", "furo")

_REMOTE = re.compile(
    r'<(?:script|img|iframe)[^>]*\ssrc="(?:https?:)?//'
    r'|<link rel="stylesheet"[^>]*href="(?:https?:)?//'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield build_site(tmp_path_factory.mktemp("site"))


@needs_sphinx
def test_the_site_has_a_page_for_each_name_and_code_and_needs_no_network(site: Path):
    expected = {f"generated/errors/{code}" for code in error_classes()} | {
        f"generated/api/{module}.{name}"
        for module in site_pages.MODULES
        for name in site_pages.public_names(module)
    }
    found = {
        str(path.relative_to(site).with_suffix(""))
        for path in (site / "generated").rglob("*.html")
        if path.stem not in ("index", "tilewright")
    }
    assert found == expected
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    assert size < LIMIT_MB * 1_000_000
    assert [p.name for p in site.rglob("*.html") if _REMOTE.search(p.read_text("utf-8"))] == []


@needs_sphinx
def test_links_of_the_site_lead_to_pages_and_anchors(site: Path):
    assert broken_links(site) == []


@needs_sphinx
def test_the_inventory_has_each_name_and_each_error(site: Path):
    inventory = importlib.import_module("sphinx.util.inventory").InventoryFile
    found = inventory.loads((site / "objects.inv").read_bytes(), uri="").data
    names = {name for kind, entries in found.items() if kind.startswith("py:") for name in entries}
    language = site_pages.public_names("tilewright.language")
    modules = {"core", "extra", "math", "random", "standard", "target_info"}
    assert {f"tl.{name}" for name in language if name not in modules} <= names
    assert {f"tilewright.errors.{error.__name__}" for error in error_classes().values()} <= names
    assert found["py:function"]["tl.dot"].uri.startswith("generated/api/tilewright.language.dot")


@needs_sphinx
def test_llms_txt_lists_the_pages(site: Path):
    lines = (site / "llms.txt").read_text("utf-8").splitlines()
    assert lines[0] == "# Tilewright"
    assert lines[2].startswith("> A language and compiler")
    assert "- [tl.dot](generated/api/tilewright.language.dot.html)" in lines
    links = [line.rpartition("(")[2].removesuffix(")") for line in lines if line.startswith("- ")]
    assert [link for link in links if not (site / link).exists()] == []
    assert len(links) > 400


def test_a_broken_link_and_a_broken_anchor_are_found(tmp_path: Path):
    (tmp_path / "a.html").write_text('<p id="here"><a href="#here"><a href="b.html#x"><a href="c">')
    (tmp_path / "b.html").write_text('<a href="a.html#here"><a href="https://example.org/#y">')
    assert sorted(broken_links(tmp_path)) == ["a.html -> b.html#x", "a.html -> c"]


@pytest.mark.parametrize("module", site_pages.MODULES)
def test_public_names_exist_and_their_pages_show_them(module: str):
    names = site_pages.public_names(module)
    loaded = importlib.import_module(module)
    assert [name for name in names if not hasattr(loaded, name)] == []
    pages = site_pages.pages()
    titles = {n: re.search(r"^# .*", pages[f"api/{module}.{n}.md"], re.MULTILINE) for n in names}
    assert {n for n, title in titles.items() if title and title[0].endswith(n)} == {*names}


def test_a_page_shows_signature_and_description():
    page = site_pages.name_page("tilewright.language", "dot")
    assert re.search(r"\{py:function\} dot\(.*input_precision", page)
    assert len(site_pages.text_of(importlib.import_module("tilewright.language").dot)) > 40


def test_an_error_page_has_a_reason_a_mistake_its_message_and_a_remedy():
    page = site_pages.pages()["errors/TW104.md"]
    parts = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
    assert parts[1::2] == ["Why", "A kernel with the mistake", "Its message", "The remedy"]
    assert "def kernel(x, n):" in parts[4]
    assert "hint: pass it as a parameter annotated 'tl.constexpr'" in parts[6]
    assert "def kernel(x, n: tl.constexpr):" in parts[8]


def test_names_of_a_stub_are_those_it_exports():
    stub = "import os\nfrom a import b as b, c as d\nfrom e import *\nx = b\ny: int\ndef f(): ...\n"
    assert list(site_pages.stub_names(stub)) == ["b", "x", "y", "f"]


def test_a_page_that_loads_from_a_network_is_found():
    assert _REMOTE.search('<script async src="https://example.org/x.js">')
    assert _REMOTE.search('<link rel="stylesheet" href="//example.org/x.css">')
    assert not _REMOTE.search('<script src="_static/x.js"><a href="https://example.org">')
