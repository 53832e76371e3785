"""Hooks of pytest: `--all`, `--slice`, and the guard tier where no test is named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

import pytest

from tests.tiers.selection import GUARD, REST, Case, read_shares, slice_of, tiers
from tilewright.support import usable_cpus


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--all`, `--guard` and `--slice`."""
    group = parser.getgroup("tiers", "which part of the suite to run")
    group.addoption("--all", action="store_const", const="all", dest="tier", help="every test")
    group.addoption(
        "--guard", action="store_const", const=GUARD, dest="tier",
        help="the guard tier, which is the default unless paths, -k or -m name tests",
    )  # fmt: skip
    group.addoption(
        "--slice", metavar="K/N", dest="slice", help="slice K of N of all but the guard tier"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Choose the tier and the processes."""
    option = config.option
    if hasattr(config, "workerinput"):
        option.tier = vars(config)["workerinput"]["tier"]
        return
    if option.slice is not None:
        _parse(option.slice)
    elif option.tier is None and not names_tests(config):
        option.tier = GUARD
    if config.pluginmanager.hasplugin("xdist"):
        _share_processors(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the tier to a process of pytest-xdist, which gets the words of the command alone."""
    node.workerinput["tier"] = node.config.option.tier


def _share_processors(config: pytest.Config) -> None:
    """Run a tier on all processors; named files, or one marker, run in this process."""
    option = config.option
    if option.numprocesses is None and not names_tests(config):
        option.numprocesses = "logical"
        # Neighbours share a process, and so the fixtures of their file; idle processes take some.
        option.dist = "worksteal"
    if option.numprocesses:
        # Idle threads of torch and of NumPy's BLAS spin. More threads than processors cost a third
        # of a model's training.
        cpus, processes = len(usable_cpus()), option.numprocesses
        share = max(1, cpus // processes) if isinstance(processes, int) else 1
        os.environ.setdefault("OMP_NUM_THREADS", str(share))


def names_tests(config: pytest.Config) -> bool:
    """Whether the command line selects tests by a path, a marker or an expression."""
    by_path = config.args_source is pytest.Config.ArgsSource.ARGS
    return bool(by_path or config.option.markexpr or config.option.keyword)


def pytest_report_header(config: pytest.Config) -> str | None:
    """The part of the suite that runs."""
    if config.option.slice is not None:
        return f"tier: slice {config.option.slice} of the rest"
    if config.option.tier == GUARD:
        return "tier: guard; `pytest --all` runs everything"
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other tiers."""
    if config.option.slice is None and config.option.tier != GUARD:
        return
    tier_of = tiers(map(case_of, items), read_shares())
    if config.option.slice is None:
        kept = {nodeid for nodeid, tier in tier_of.items() if tier == GUARD}
    else:
        number, slices = _parse(config.option.slice)
        rest = [nodeid for nodeid, tier in tier_of.items() if tier == REST]
        kept = {nodeid for nodeid in rest if slice_of(nodeid, slices) == number}
    _keep(config, items, kept)


def _keep(config: pytest.Config, items: list[pytest.Item], kept: Iterable[str]) -> None:
    chosen, others = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (chosen if item.nodeid in kept else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def case_of(item: pytest.Item) -> Case:
    """The part of a collected test that decides about its tier."""
    spec: Any = getattr(item, "callspec", None)
    device = spec.params.get("device", "") if spec else ""
    marks = frozenset(mark.name for mark in item.iter_markers())
    return Case(item.nodeid, device if isinstance(device, str) else "", marks)


def _parse(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise pytest.UsageError(f"--slice takes K/N with 1 <= K <= N, not {text!r}")
    return int(found[1]), int(found[2])
