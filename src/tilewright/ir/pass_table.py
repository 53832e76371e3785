"""The module of each pass by name, imported when the text of a pipeline names the pass.

A pass is in the file of its name, in a folder `passes/` of the shared transforms or of a backend,
whose name is then a prefix: `nvidia-select-mma`. Compilation does not use this: pipelines import
their passes.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache

from tilewright.support import import_late

_FOLDERS = {
    "": "tilewright.transforms.passes",
    "cpu-": "tilewright.backends.cpu.passes",
    "nvidia-": "tilewright.backends.nvidia.passes",
}
"""Packages of passes by prefix. Passes of other packages are registered when they are imported."""


@cache
def pass_modules() -> Mapping[str, str]:
    """The modules of this package's passes, by the name of the pass."""
    found = {"instrument-accesses": "tilewright.transforms.checks.instrument_accesses"}
    for prefix, package in _FOLDERS.items():
        for module in pkgutil.iter_modules(import_late(package).__path__):
            if not module.name.startswith("_"):  # helpers of passes
                found[prefix + module.name.replace("_", "-")] = f"{package}.{module.name}"
    return found
