"""Kernels in this process's memory, for profilers: listeners get each one when it is loaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright import llvm
from tilewright.support import attribute_late, cached_property, operating_system, settings


class LoadedCode:
    """A loaded kernel. location: its "file:line"; address: of its function; obj: its object file"""

    def __init__(self, name: str, location: str, address: int, obj: bytes) -> None:
        self.name = name
        self.location = location
        self.address = address
        self.obj = obj

    @property
    def title(self) -> str:
        """The kernel in profiles: `add (program.py:12)`."""
        return f"{self.name} ({self.location})"

    @cached_property
    def table(self) -> llvm.LineTable:
        """The functions and lines of its section of code; empty for unknown formats."""
        return llvm.line_table(self.obj, self.name) or llvm.LineTable({self.name: (0, 0)})

    @property
    def base(self) -> int:
        """The address of the section of code."""
        return self.address - self.table.functions[self.name][0]

    def __contains__(self, address: int) -> bool:
        start = address - self.base
        return any(first <= start < first + size for first, size in self.table.functions.values())


code_listeners: list[Callable[[LoadedCode], object]] = []
"""Functions that are called with each kernel that is loaded from now on."""


def announce(code: LoadedCode) -> None:
    """Call the listeners, and on Linux write perf's files if a setting wants them."""
    if settings().cpu.perf and operating_system.IS_LINUX:
        _perf_files(os.getpid()).add(code)
    for listener in code_listeners:
        listener(code)


@cache
def _perf_files(_pid: int) -> Any:  # a forked child has its own
    return attribute_late("tilewright.backends.cpu.driver.perf_files:PerfFiles")()
