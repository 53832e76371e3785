"""Tools that some tests need: without one they skip, or fail where `REQUIRE_TOOLS` is set.

`.ci/run` sets it, so that no gate is silent for want of its tool. Tests marked `dev` name modules
of the extra `dev`. Tests marked `browser` need playwright, of the same extra, and a Chromium, which
PyPI does not have: without one they skip, or fail where `REQUIRE_BROWSER` is set.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from importlib.util import find_spec

import pytest

VARIABLE = "REQUIRE_TOOLS"
BROWSER_VARIABLE = "REQUIRE_BROWSER"
CHROMIUM = (
    "chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser",
    "google-chrome-stable", "google-chrome",
)  # fmt: skip
"""Names of the executable, the smallest program first."""


def need_module(module: str, remedy: str = "pip install '.[test]'") -> None:
    """Skip the test where a module is not installed, or fail it where tools are required."""
    if find_spec(module) is not None:
        return
    reason = f"{module} is not installed: {remedy}"
    if os.environ.get(VARIABLE):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def find_chromium() -> str | None:
    """The path of the first Chromium on the search path."""
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


def need_chromium() -> None:
    """Skip the test where no Chromium is installed, or fail it where one is required."""
    if find_chromium() is not None:
        return
    reason = "no Chromium is installed: apt-get install chromium-headless-shell"
    if os.environ.get(BROWSER_VARIABLE):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check the tools that the test's markers name."""
    for mark in item.iter_markers("dev"):
        for module in mark.args:
            need_module(module, "pip install '.[dev]'")
    if item.get_closest_marker("browser") is not None:
        need_module("playwright", "pip install '.[dev]'")
        need_chromium()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips itself without torch and lacks the mark: no tier would run it."""
    report = yield
    needs_torch = report.skipped and "could not import 'torch'" in str(report.longrepr)
    if needs_torch and not any(map(item.get_closest_marker, ("torch", "gpu"))):
        report.outcome, report.longrepr = "failed", "a test that needs torch is marked `torch`"
    return report
