"""Pages that users open: the results of a benchmark, and kernels as notebooks show them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.browser.opened_page import OpenPage
from tilewright import kernels
from tilewright.kernels.elementwise import add_kernel
from tilewright.testing import Benchmark, perf_report

pytestmark = [pytest.mark.browser, pytest.mark.dev("matplotlib")]

SPEEDS = Benchmark(
    ["n"], [2**i for i in range(12, 22, 2)], "provider", ["ours", "theirs"], ["Ours", "Theirs"],
    "vector-add", {"dtype": "float32"}, ylabel="GB/s", x_log=True,
)  # fmt: skip


def speed(n: int, provider: str, dtype: str) -> tuple[float, float, float]:
    value = n**0.5 * (2 if provider == "ours" else 1)
    return value, value * 0.9, value * 1.1


def test_results_have_a_plot_and_a_table(open_page: OpenPage, tmp_path: Path) -> None:
    perf_report([SPEEDS])(speed).run(save_path=tmp_path)
    opened = open_page(tmp_path / "results.html", width=1000)
    assert opened.remote_requests == opened.complaints == []
    assert opened.page.evaluate("document.images[0].naturalWidth") > 400
    assert opened.page.locator("tbody tr").count() == 5
    assert opened.page.title() == "vector-add"
    assert opened.take_screenshot("results", full_page=True).stat().st_size > 5_000
    narrow = open_page(tmp_path / "results.html", width=400)
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_kernel_in_a_notebook_opens_and_folds(open_page: OpenPage, tmp_path: Path) -> None:
    x = np.ones(100, np.float32)
    kernels.add(x, x)
    file = tmp_path / "kernel.html"
    file.write_text(add_kernel._repr_html_(), "utf-8")
    opened = open_page(file)
    assert opened.remote_requests == opened.complaints == []
    source = opened.page.locator("pre")
    assert "def add_kernel(" in source.inner_text()
    opened.page.click("summary")
    assert not source.is_visible()
    assert opened.page.locator("tbody tr").count() >= 1
