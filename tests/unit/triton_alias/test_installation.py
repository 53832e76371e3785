"""The package `triton` that `tilewright as-triton install` writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.support import errors
from tilewright.tools.cli import main
from tilewright.triton_alias import FoundTriton, install, installed, uninstall


def python(folder: Path, program: str) -> str:
    """What a program prints that may import from a folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    return subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)


def real_triton(folder: Path) -> None:
    """Something like the real package."""
    (folder / "triton").mkdir(parents=True)
    (folder / "triton" / "__init__.py").touch()
    metadata = folder / "triton-3.5.1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: triton\nVersion: 3.5.1\n", encoding="utf-8")


def test_every_process_imports_tilewright_as_triton(tmp_path: Path) -> None:
    install(tmp_path)
    program = (
        "import importlib.metadata, sys, triton, triton.language as tl, tilewright\n"
        "from triton.runtime.jit import JITFunction\n"
        "print(triton.__version__, importlib.metadata.version('triton'),"
        " tl.load is tilewright.load, JITFunction is tilewright.JITFunction,"
        " sys.modules['triton'] is triton, tilewright.as_triton() is triton)"
    )
    assert python(tmp_path, program) == "3.6.0 3.6.0 True True True True\n"


def test_pip_can_list_and_remove_what_was_installed(tmp_path: Path) -> None:
    install(tmp_path)
    (found,) = installed([tmp_path])
    assert found == FoundTriton("3.6.0", tmp_path.resolve(), True)
    # what pip does: remove the files that the distribution names
    text = python(tmp_path, "import importlib.metadata as m\nfor f in m.files('triton'): print(f)")
    named = {tmp_path / line for line in text.splitlines()}
    assert named == {path for path in tmp_path.rglob("*") if path.is_file()}


def test_uninstalling_removes_everything(tmp_path: Path) -> None:
    install(tmp_path)
    install(tmp_path)  # again, as after an update
    assert uninstall(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not uninstall(tmp_path)


def test_another_triton_is_neither_overwritten_nor_removed(tmp_path: Path) -> None:
    real_triton(tmp_path)
    with pytest.raises(errors.TritonIsInstalled) as caught:
        install(tmp_path)
    assert str(caught.value).splitlines() == [
        f"triton 3.5.1 is installed in {tmp_path.resolve()} [TW222]",
        "  hint: remove it (pip uninstall triton), or leave it and install into a folder of its "
        "own, which PYTHONPATH names where Tilewright is wanted: `tilewright as-triton install "
        "--target FOLDER`",
    ]
    assert not uninstall(tmp_path)
    assert (tmp_path / "triton" / "__init__.py").read_text() == ""
    assert installed([tmp_path]) == [FoundTriton("3.5.1", tmp_path.resolve(), False)]


def test_another_triton_elsewhere_on_the_path_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, ours = tmp_path / "real", tmp_path / "ours"
    real_triton(real)
    monkeypatch.setattr(sys, "path", [*sys.path, str(ours), str(real)])
    with pytest.raises(errors.TritonIsInstalled, match=r"triton 3\.5\.1"):
        install(ours)
    monkeypatch.setattr(sys, "path", [*sys.path[:-2], str(real)])
    install(ours)  # a folder that is to come first by PYTHONPATH
    assert "Tilewright" in python(ours, "import triton; print(triton.language.__doc__)")


def test_a_triton_without_metadata_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    with pytest.raises(errors.TritonIsInstalled, match="of unknown version is installed"):
        install(tmp_path)


def test_the_command_installs_shows_and_removes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in ("status", "install", "status", "uninstall", "uninstall"):
        assert main(["as-triton", action, "--target", str(tmp_path)]) == 0
    place = tmp_path.resolve()
    assert capsys.readouterr().out.splitlines() == [
        "no package triton is installed",
        f"`import triton` is Tilewright now, by a package in {tmp_path}",
        f"triton 3.6.0 in {place}: Tilewright",
        f"removed the package triton of Tilewright's in {tmp_path}",
        f"there is no package triton of Tilewright's in {tmp_path}",
    ]
    real_triton(tmp_path)
    assert main(["as-triton", "install", "--target", str(tmp_path)]) == 1
    assert main(["as-triton", "status", "--target", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("tilewright: triton 3.5.1 is installed in")
    assert captured.out == f"triton 3.5.1 in {place}: another Triton\n"
