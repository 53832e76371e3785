"""Packages whose names are imported at their first use."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import threading
from pathlib import Path

import pytest

import tilewright

FOLDER = Path(tilewright.__file__).parent
STUBS = sorted(path for path in FOLDER.rglob("__init__.pyi") if path.parent != FOLDER)
LATE = re.compile(r'"(tilewright(?:\.\w+)+)(?::(\w+))?"')


def package_of(stub: Path) -> str:
    return ".".join(("tilewright", *stub.parent.relative_to(FOLDER).parts))


@pytest.mark.parametrize("stub", STUBS, ids=package_of)
def test_every_name_of_a_stub_is_there(stub: Path) -> None:
    package = importlib.import_module(package_of(stub))
    text = ast.parse(stub.read_text())
    # Names are exported by `__all__`, or by an import as themselves.
    listed = [
        name
        for node in text.body
        if isinstance(node, ast.Assign)
        for name in ast.literal_eval(node.value)
    ] or [a.asname for node in text.body if isinstance(node, ast.ImportFrom) for a in node.names]
    assert None not in listed
    assert {*listed} <= {*package.__all__} <= {*dir(package)}
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert not hasattr(package, "no_such_name")


@pytest.mark.parametrize("stub", STUBS, ids=package_of)
def test_a_name_is_no_submodule_s_unless_it_is_imported_at_once(stub: Path) -> None:
    package = importlib.import_module(package_of(stub))
    submodules = {path.stem for path in stub.parent.iterdir()}
    both = {name for name in package.__all__ if name in submodules}
    at_once = re.findall(
        r"^from tilewright\S* import (\w+)$", stub.with_suffix(".py").read_text(), re.M
    )
    modules = {
        name
        for name in both
        if getattr(package, name) is sys.modules.get(f"{package.__name__}.{name}")
    }
    assert both - modules <= {*at_once}


def test_what_is_imported_late_by_name_is_there() -> None:
    found = {place for file in FOLDER.rglob("*.py") for place in LATE.findall(file.read_text())}
    assert len(found) > 20
    for module, name in found:
        assert not name or hasattr(importlib.import_module(module), name), (module, name)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of two modules, of which one asks its own facade while it is imported."""
    folder = tmp_path / "lazy_demo"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from tilewright.support import lazy_facade\nlazy_facade.load_at_first_use(globals())\n"
    )
    (folder / "__init__.pyi").write_text(
        "from lazy_demo.first import (\n    one,\n    two as second,\n)\nfrom .last import three\n"
    )
    (folder / "first.py").write_text("from lazy_demo import three\none, two = 1, three - 1\n")
    (folder / "last.py").write_text("three = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "lazy_demo"


def test_names_come_from_their_modules(package: str) -> None:
    demo = importlib.import_module(package)
    assert "lazy_demo.first" not in sys.modules
    assert (demo.second, demo.one, demo.three) == (2, 1, 3)
    assert demo.__all__ == ["one", "second", "three"]
    with pytest.raises(AttributeError, match="'lazy_demo' has no attribute 'two'"):
        _ = demo.two


def test_threads_that_import_and_use_at_once_do_not_wait_for_each_other(package: str) -> None:
    demo = importlib.import_module(package)
    sys.modules.pop("lazy_demo.first", None)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(demo.one + demo.three)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4] * 8
