"""The documentation site in a browser: search, narrow screens, no request to a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.reference_examples import examples
from tests.browser.opened_page import OpenedPage, OpenPage
from tests.site_build import build_site
from tilewright.tools.explain_error_command import error_classes

pytestmark = [pytest.mark.browser, pytest.mark.dev("sphinx", "myst_parser", "furo")]

API = "generated/api/tilewright"
QUERIES = {
    "tl.dot": f"{API}.language.dot",
    "load": f"{API}.language.load",
    "atomic_add": f"{API}.language.atomic_add",
    "make_tensor_descriptor": f"{API}.language.make_tensor_descriptor",
    "inline asm": f"{API}.language.inline_asm_elementwise",
    "autotune": f"{API}.autotune",
    "do_bench": f"{API}.testing.do_bench",
    "TW104": "generated/errors/TW104",
    "tw402": "generated/errors/TW402",
    "NotConstexpr": "generated/errors/TW104",
    "vector add": "tutorial/01-vector-add",
    "matrix multiplication": "tutorial/03-matmul",
    "Triton-C": "tutorial/06-triton-c",
    "torch.compile": "tutorial/08-torch-compile",
    "port a Triton kernel": "howto/port-a-triton-kernel",
    "spills": "howto/find-why-a-kernel-spills",
    "CuPy": "howto/arrays-of-other-libraries",
    "promotion": "semantics",
    "aliasing": "semantics",
    "settings": "settings",
}
"""Queries of readers, and the page that has to be among the first three results."""
MODULES = {"errors", "compiler", "backends", "kernels", "c"}
"""Names of modules that many pages have in their titles; the full name finds them."""
SHOTS = {
    "start": "index.html",
    "chapter": "tutorial/02-softmax.html",
    "reference": f"{API}.language.dot.html",
    "index": f"{API}.language.html",
    "support": "support.html",
    "error": "generated/errors/TW104.html",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    return build_site(tmp_path_factory.mktemp("site"))


def first_results(opened: OpenedPage, query: str, count: int = 3) -> list[str]:
    """The pages of the first results of a query, as the search page orders them."""
    found = opened.page.evaluate(
        "query => Search._performSearch(...Search._parseQuery(query)).reverse().map(r => r[0])",
        query,
    )
    return list(dict.fromkeys(found))[:count]


@pytest.fixture
def search(open_page: OpenPage, site: Path) -> OpenedPage:
    """The search page, with its index loaded."""
    opened = open_page(site / "search.html")
    opened.page.wait_for_function("() => Search.hasIndex()")
    return opened


def test_there_are_twenty_queries() -> None:
    assert len(QUERIES) == 20


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_typed_by_a_reader_finds_its_page(
    open_page: OpenPage, site: Path, query: str
) -> None:
    opened = open_page(site / "index.html")
    opened.page.fill("input[name=q]", query)
    opened.page.press("input[name=q]", "Enter")
    opened.page.wait_for_selector("ul.search li a")
    opened.page.wait_for_function("() => document.querySelectorAll('ul.search > li').length > 0")
    links = opened.page.eval_on_selector_all(
        "ul.search > li > a", "all => all.map(a => a.getAttribute('href'))"
    )
    pages = list(dict.fromkeys(link.partition(".html")[0] for link in links))
    assert QUERIES[query] in pages[:3]
    assert opened.remote_requests == []


def test_search_finds_every_code_and_every_name(search: OpenedPage) -> None:
    wanted = {code: f"generated/errors/{code}" for code in error_classes()}
    for example in examples():
        page = f"generated/api/{example.module}.{example.name}"
        wanted[example.title] = page
        if example.name not in MODULES:
            wanted[example.name] = page
    found = {query: first_results(search, query) for query in wanted}
    lost = {q: found[q] for q, page in wanted.items() if page not in found[q]}
    # `Heuristics` and `heuristics` are one text to a search.
    assert {q for q in lost if wanted[q].lower() not in map(str.lower, lost[q])} == set()


@pytest.mark.parametrize("name", SHOTS)
@pytest.mark.parametrize("width", [1400, 390])
def test_pages_fit_and_load_nothing_from_a_network(
    open_page: OpenPage, site: Path, name: str, width: int
) -> None:
    opened = open_page(site / SHOTS[name], width)
    assert opened.take_screenshot(f"site-{name}-{width}").stat().st_size > 10_000
    assert opened.complaints == opened.remote_requests == []
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= width
