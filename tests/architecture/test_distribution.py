"""Installed files: the lock file is in step with pyproject.toml, and a wheel works elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.architecture.gates import ROOT

LOCK = ROOT / "uv.lock"


def project(text: str) -> dict[str, Any]:
    return tomllib.loads(text)["project"]


def stated(described: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(extra, name, specifier) of each requirement of pyproject.toml."""
    groups = {"": described["dependencies"], **described["optional-dependencies"]}
    for extra, texts in groups.items():
        for requirement in map(Requirement, texts):
            if requirement.name != described["name"]:
                yield extra, requirement.name.replace("_", "-"), str(requirement.specifier)


def locked(text: str) -> tuple[set[tuple[str, str, str]], dict[str, list[str]]]:
    """(extra, name, specifier) of each requirement as it was locked, and the locked versions."""
    packages = tomllib.loads(text)["package"]
    (own,) = [one for one in packages if one["name"] == "tilewright"]
    rows: set[tuple[str, str, str]] = set()
    for row in own["metadata"]["requires-dist"]:
        # uv writes an extra as a part of the marker
        extra = row.get("marker", "").rpartition("extra == '")[2].rstrip("'")
        rows.add((extra, row["name"], str(SpecifierSet(row.get("specifier", "")))))
    versions: dict[str, list[str]] = {}
    for one in packages:
        versions.setdefault(one["name"], []).append(one.get("version", ""))
    return rows, versions


def out_of_step(pyproject: str, lock: str) -> list[str]:
    """The requirements of pyproject.toml that the lock file does not have, or violates."""
    rows, versions = locked(lock)
    wanted = list(stated(project(pyproject)))
    missing = [f"{name}{spec}" for extra, name, spec in wanted if (extra, name, spec) not in rows]
    wrong = [
        f"{name} {version}"
        for _, name, spec in wanted
        for version in versions.get(name, ["0"])
        if not SpecifierSet(spec).contains(version, prereleases=True)
    ]
    return missing + wrong


def test_the_lock_file_is_in_step() -> None:
    problems = out_of_step((ROOT / "pyproject.toml").read_text("utf-8"), LOCK.read_text("utf-8"))
    assert problems == [], "run `uv lock`"


def test_a_changed_requirement_is_found() -> None:
    text, lock = (ROOT / "pyproject.toml").read_text("utf-8"), LOCK.read_text("utf-8")
    assert out_of_step(text.replace("lark>=1.2,<2", "lark>=1.3,<2"), lock) == ["lark<2,>=1.3"]
    assert out_of_step(text.replace('"numpy>=1.26,<3"', '"numpy>=1.26,<2"'), lock)
    assert out_of_step(text.replace('"lark>=1.2,<2"', '"lark>=1.2,<2", "new>=1"'), lock)


def test_the_lock_file_names_the_public_index_only() -> None:
    packages = tomllib.loads(LOCK.read_text("utf-8"))["package"]
    sources = {one["source"].get("registry", "here") for one in packages}
    assert sources == {"https://pypi.org/simple", "here"}


def run(*words: str | Path, folder: Path, **settings: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | settings
    command = [sys.executable, "-m", *map(str, words)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.dev("build", "hatchling", "twine")
def test_the_wheel_runs_outside_of_the_checkout(tmp_path: Path) -> None:
    run("build", "--no-isolation", "--wheel", "--outdir", tmp_path, ROOT, folder=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert "PASSED" in run("twine", "check", "--strict", wheel, folder=tmp_path)
    names = zipfile.ZipFile(wheel).namelist()
    # files that the package reads, and its Python
    kept = {".py", ".pyi", ".typed", ".ll", ".lark", ".txt"}
    source = ROOT / "src"
    files = [f for f in source.rglob("*") if f.suffix in kept and "__pycache__" not in f.parts]
    assert {f.relative_to(source).as_posix() for f in files} <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "src/"))]
    installed = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(installed)
    where = "import tilewright; print(tilewright.__file__)"
    (tmp_path / "where.py").write_text(where)
    found = run("where", folder=tmp_path, PYTHONPATH=f"{installed}{os.pathsep}{tmp_path}")
    assert Path(found.strip()).is_relative_to(installed)
    demo = run("tilewright", "demo", folder=tmp_path, PYTHONPATH=str(installed))
    assert "Tilewright on this machine" in demo
    assert "vector add" in demo
