"""Each file in a folder `passes` is a pass with the file's name, or starts with `_`."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.gates import ROOT

PACKAGE = ROOT / "src" / "tilewright"
FOLDERS = sorted(path for path in PACKAGE.rglob("passes") if path.is_dir())


def other_files(folder: Path) -> list[str]:
    """The files of a folder that are neither a pass of their name nor start with `_`."""
    return [
        path.name
        for path in sorted(folder.glob("*.py"))
        if not path.name.startswith("_") and path.stem not in pass_names(path)
    ]


def pass_names(path: Path) -> set[str]:
    """The classes of passes in a file, as file names."""
    return {
        re.sub(r"(?<!^)(?=[A-Z])", "_", node.name).lower()
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(b) == "Pass" for b in node.bases)
    }


def test_there_are_folders_of_passes() -> None:
    assert [str(folder.relative_to(PACKAGE)) for folder in FOLDERS] == [
        "backends/cpu/passes",
        "backends/nvidia/passes",
        "transforms/passes",
    ]


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_files_of_passes_are_passes(folder: Path) -> None:
    assert not other_files(folder)


def test_a_helper_without_underscore_is_found(tmp_path: Path) -> None:
    text = 'class MergeLoads(Pass, name="merge-loads"):\n    pass\n'
    for name in ("merge_loads", "split_loads", "_load_sizes"):
        (tmp_path / f"{name}.py").write_text(text if name != "_load_sizes" else "")
    assert other_files(tmp_path) == ["split_loads.py"]
