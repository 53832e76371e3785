"""Tools that some tests need: without one they skip, or fail where `REQUIRE_TOOLS` is set.

`.ci/run` sets it, so that no gate is silent for want of its tool. Tests marked `dev` name modules
of the extra `dev`.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib.util import find_spec

import pytest

VARIABLE = "REQUIRE_TOOLS"


def need_module(module: str, remedy: str = "pip install '.[test]'") -> None:
    """Skip the test where a module is not installed, or fail it where tools are required."""
    if find_spec(module) is not None:
        return
    reason = f"{module} is not installed: {remedy}"
    if os.environ.get(VARIABLE):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check the modules that the test's marker names."""
    for mark in item.iter_markers("dev"):
        for module in mark.args:
            need_module(module, "pip install '.[dev]'")


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
