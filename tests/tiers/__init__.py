"""Splits the suite: a guard tier for every change, and slices of the rest.

`guard_tier.toml` lists which share of which tests the guard tier runs, with reasons; the choice
among cases hashes their ids, so every machine makes the same one.

    pytest                      # the guard tier
    pytest --slice 3/8          # a slice of the rest
    pytest --all                # everything

Options that name tests (paths, `-k`, `-m`) select from the whole suite.
"""

from tests.tiers.pytest_plugin import (
    pytest_addoption,
    pytest_cmdline_main,
    pytest_collection_modifyitems,
    pytest_configure_node,
    pytest_report_header,
)

__all__ = [
    "pytest_addoption",
    "pytest_cmdline_main",
    "pytest_collection_modifyitems",
    "pytest_configure_node",
    "pytest_report_header",
]
