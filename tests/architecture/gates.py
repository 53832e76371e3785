"""Runs a gate as a developer does, on this checkout or on a package with a planted mistake."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.required_tools import need_module

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Verdict:
    """The result of a gate and its report."""

    passed: bool
    report: str


def run_module(*command: str, cwd: Path = ROOT) -> Verdict:
    """Run `python -m command` in `cwd`."""
    need_module(command[0])
    return _python("-m", *command, cwd=cwd)


def _python(*arguments: str, cwd: Path) -> Verdict:
    """Run Python in `cwd`; it finds the sources there before the installed package."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(cwd / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    return Verdict(done.returncode == 0, done.stdout + done.stderr)


def lint(root: Path) -> Verdict:
    """Ruff's rules."""
    return run_module("ruff", "check", "--no-cache", ".", cwd=root)


def layout(root: Path) -> Verdict:
    """Ruff's formatter."""
    return run_module("ruff", "format", "--no-cache", "--check", ".", cwd=root)


def types(root: Path) -> Verdict:
    """Pyright, with this interpreter's packages."""
    return run_module("pyright", "--pythonpath", sys.executable, cwd=root)


def spelling(root: Path) -> Verdict:
    """Codespell on texts for people; tests are left out, since they misspell on purpose."""
    places = [name for name in READ_BY_PEOPLE if (root / name).exists()]
    return run_module("codespell_lib", *places, cwd=root)


def layers(root: Path) -> Verdict:
    """Import-linter's contracts; it has no `-m`, so its entry point is called."""
    need_module("importlinter")
    call = "import importlinter.cli as cli; raise SystemExit(cli.lint_imports(no_cache=True))"
    return _python("-c", call, cwd=root)


READ_BY_PEOPLE = ("src", "scripts", "docs", "README.md", "CONTRIBUTING.md", ".ci")


def json_rows(verdict: Verdict) -> list[dict[str, Any]]:
    """The rows of a JSON report."""
    return json.loads(verdict.report)


def configuration() -> dict[str, Any]:
    """`pyproject.toml` of this checkout."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def planted(folder: Path, files: dict[str, str]) -> Path:
    """A checkout in `folder` with this project's rules, empty packages and the given files.

    It has every package of this project and every module that a contract names, all empty, so that
    the contracts apply.
    """
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "typings", folder / "typings")
    source = ROOT / "src" / "tilewright"
    for init in source.rglob("__init__.py"):
        _write(folder / init.relative_to(ROOT), '"""Empty."""\n')
    for module in _modules_in_contracts():
        if (ROOT / module).exists():
            _write(folder / module, '"""Empty."""\n')
    # a contract on a library is an error if nothing imports it
    _write(folder / "src/tilewright/llvm/native.py", '"""LLVM."""\n\nimport llvmlite as llvmlite\n')
    for folder_name in ("tests", "scripts"):
        _write(folder / folder_name / "__init__.py", '"""Empty."""\n')
    for name, text in files.items():
        _write(folder / name, text)
    return folder


def _modules_in_contracts() -> list[str]:
    """The modules among the layers of contracts, as files."""
    contracts = configuration()["tool"]["importlinter"]["contracts"]
    return [
        f"src/{container.replace('.', '/')}/{name.strip(' ()')}.py"
        for contract in contracts
        for container in contract.get("containers", ())
        for layer in contract["layers"]
        for name in layer.split("|")
    ]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
