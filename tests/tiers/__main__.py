"""Print how many tests each tier and folder has; `--ids` prints each test's tier and id instead."""

from __future__ import annotations

import argparse
import io
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.tiers.pytest_plugin import case_of
from tests.tiers.selection import Case, read_shares, tiers

ROOT = Path(__file__).resolve().parents[2]
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""This module imports plugins before pytest does."""


class Collector:
    """A plugin that keeps the collected cases."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the cases."""
        self.cases += map(case_of, session.items)


def all_tiers() -> dict[str, str]:
    """The tier of every test, by id; RuntimeError if pytest cannot collect them."""
    collector = Collector()
    words = [
        "--collect-only",
        "--all",
        "-n0",
        "-qq",
        *QUIET,
        f"--rootdir={ROOT}",
        str(ROOT / "tests"),
    ]
    with redirect_stdout(io.StringIO()) as report:
        code = pytest.main(words, plugins=[collector])
    if code:
        raise RuntimeError(report.getvalue())
    return tiers(collector.cases, read_shares())


def main() -> None:
    """Print the tiers."""
    parser = argparse.ArgumentParser(prog="python -m tests.tiers", description=__doc__)
    parser.add_argument("--ids", action="store_true", help="print each test's tier and id")
    chosen = parser.parse_args()
    found = all_tiers()
    if chosen.ids:
        print("\n".join(f"{tier} {nodeid}" for nodeid, tier in found.items()))
        return
    counts = Counter((tier, nodeid.split("/")[1]) for nodeid, tier in found.items())
    for (tier, folder), count in sorted(counts.items()):
        print(f"{tier:6} {folder:14} {count:6}")


if __name__ == "__main__":
    main()
