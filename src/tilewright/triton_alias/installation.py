"""A package `triton` in a folder of packages: `import triton` is Tilewright in every process.

`as_triton()` affects its own process. Processes that are started with a command of their own, as
the workers of `torch.compile` are, import the package, whose only file calls `as_triton()`. The
metadata folder next to it lets pip list and uninstall it.
"""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

from tilewright.support import errors
from tilewright.support.data_class import dataclass
from tilewright.triton_alias.module_table import ROOT, TRITON_VERSION

INSTALLER = "tilewright"
_PACKAGE = '''\
"""Tilewright by the name of Triton; `tilewright as-triton uninstall` removes this package."""

import sys

from tilewright.triton_alias import as_triton

# The import that runs this file returns what stands under the name when it ends.
del sys.modules[__name__]
as_triton()
'''
_METADATA = f"""\
Metadata-Version: 2.1
Name: {ROOT}
Version: {TRITON_VERSION}
Summary: Tilewright by the name of Triton
Requires-Dist: tilewright
"""


@dataclass(frozen=True, slots=True)
class FoundTriton:
    """A package `triton` that is installed. is_ours: whether it is Tilewright."""

    version: str
    folder: Path
    is_ours: bool


def install(folder: Path) -> None:
    """Write the package into a folder of packages, which is created if it is missing.

    Errors: TritonIsInstalled if another triton is in this folder or, if Python imports from this
    folder, in any folder that Python imports from.
    """
    searched = {Path(place) for place in sys.path}
    for found in installed([folder, *searched] if folder in searched else [folder]):
        if not found.is_ours:
            raise errors.TritonIsInstalled(found.version, str(found.folder))
    files = {
        f"{ROOT}/__init__.py": _PACKAGE,
        f"{_metadata_folder()}/METADATA": _METADATA,
        f"{_metadata_folder()}/INSTALLER": f"{INSTALLER}\n",
    }
    record = f"{_metadata_folder()}/RECORD"
    files[record] = "".join(f"{name},,\n" for name in (*files, record))
    uninstall(folder)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def uninstall(folder: Path) -> bool:
    """Remove the package from a folder, but no other triton; return whether it was installed."""
    ours = [found for found in installed([folder]) if found.is_ours]
    for found in ours:
        shutil.rmtree(folder / ROOT)
        shutil.rmtree(folder / f"{ROOT}-{found.version}.dist-info")
    return bool(ours)


def installed(folders: list[Path]) -> list[FoundTriton]:
    """The packages `triton` in folders, in the order in which Python finds them."""
    paths = [str(folder) for folder in folders]
    found = [_described(each) for each in distributions(name=ROOT, path=paths)]
    known = {each.folder for each in found}
    # one without metadata, as in a checkout
    bare = [
        FoundTriton("of unknown version", folder, False)
        for folder in folders
        if (folder / ROOT / "__init__.py").exists() and folder.resolve() not in known
    ]
    return [*found, *bare]


def _described(found: Distribution) -> FoundTriton:
    installer = (found.read_text("INSTALLER") or "").strip()
    folder = Path(str(found.locate_file(""))).resolve()
    return FoundTriton(found.version, folder, installer == INSTALLER)


def _metadata_folder() -> str:
    return f"{ROOT}-{TRITON_VERSION}.dist-info"
