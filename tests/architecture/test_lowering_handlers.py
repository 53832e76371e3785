"""Handlers register when their module is imported: each backend lists all such modules."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tilewright.backends.cpu.lower import cpu_function
from tilewright.backends.nvidia.lower import gpu_function

_REGISTERS = re.compile(r"^@(lowering|index_function)\(", re.MULTILINE)


@pytest.mark.parametrize("entry", [cpu_function, gpu_function], ids=["cpu", "nvidia"])
def test_every_module_with_handlers_is_named(entry: ModuleType) -> None:
    assert entry.__file__ is not None
    folder = Path(entry.__file__).parent
    registering = {p.stem for p in folder.glob("*.py") if _REGISTERS.search(p.read_text())}
    named = {module.__name__.rpartition(".")[2] for module in entry.HANDLER_MODULES}
    assert registering - {Path(entry.__file__).stem} == named
