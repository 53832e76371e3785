"""Hooks of pytest: collects golden files, adds `--bless`, prints failures without tracebacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tilewright.transforms
from tests.golden_runner.golden_case import BadGolden
from tests.golden_runner.run_case import check

assert tilewright.transforms.__all__, "its import registers the passes that files name"


class GoldenFailure(Exception):
    """A golden file whose expectation does not hold; its text is the whole report."""


class GoldenItem(pytest.Item):
    """The test of one golden file."""

    def runtest(self) -> None:
        """Run the case; with `--bless` rewrite it."""
        try:
            failure = check(self.path, bless=bool(self.config.getoption("--bless")))
        except BadGolden as error:
            failure = f"{self.path}: {error}"
        if failure is not None:
            raise GoldenFailure(failure)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The report alone."""
        if isinstance(excinfo.value, GoldenFailure):
            return _relative(str(excinfo.value), self.config.rootpath)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the test is, for the summary."""
        return self.path, 0, self.name


class GoldenFile(pytest.File):
    """One file is one test."""

    def collect(self) -> Iterator[GoldenItem]:
        """The test of this file."""
        yield GoldenItem.from_parent(self, name=self.path.stem)  # pyright: ignore[reportUnknownMemberType]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--bless`."""
    parser.addoption(
        "--bless", action="store_true", help="rewrite golden files with what really happens"
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
    """Take `.tile` files below a folder called golden."""
    if file_path.suffix == ".tile" and "golden" in file_path.parts:
        return GoldenFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]
    return None


def _relative(text: str, root: Path) -> str:
    return text.replace(f"{root}/", "")
