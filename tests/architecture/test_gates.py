"""Each gate passes on this checkout and fails on a mistake of its kind."""

from pathlib import Path

import pytest

from scripts import budgets, code_size
from tests.architecture import gates

DOC = '"""One module."""\n\n'


# --- this checkout passes -------------------------------------------------------------------------


def test_lint_passes() -> None:
    verdict = gates.lint(gates.ROOT)
    assert verdict.passed, verdict.report


def test_layout_passes() -> None:
    verdict = gates.layout(gates.ROOT)
    assert verdict.passed, verdict.report


@pytest.mark.dev("pyright")
def test_types_pass() -> None:
    verdict = gates.types(gates.ROOT)
    assert verdict.passed, verdict.report


def test_layers_pass() -> None:
    verdict = gates.layers(gates.ROOT)
    assert verdict.passed, verdict.report


def test_budgets_pass() -> None:
    exceptions = budgets.read_exceptions(budgets.EXCEPTIONS)
    assert budgets.check(gates.ROOT, exceptions) == []
    assert code_size.violations(gates.ROOT, code_size.read_budgets(budgets.EXCEPTIONS)) == []


def test_spelling_passes() -> None:
    verdict = gates.spelling(gates.ROOT)
    assert verdict.passed, verdict.report


# --- ruff fails when it should --------------------------------------------------------------------

NESTED = """def f(rows: list[list[list[int]]]) -> int:
    total = 0
    for row in rows:
        for cell in row:
            for value in cell:
                if value:
                    total += value
    return total
"""

BRANCHY = "def f(x: int) -> int:\n" + "".join(
    f"    if x == {case}:\n        return {case + 1}\n" for case in range(10)
)

LINT_MISTAKES = {
    "long line": (f"x = '{'a' * 100}'\n", "E501"),
    "unused import": ("import json\n", "F401"),
    "nesting": (NESTED, "PLR1702"),
    "complexity": (BRANCHY + "    return 0\n", "C901"),
    "environment": ("import os\n\nx = os.environ['HOME']\n", "TID251"),
    "lock": ("import threading\n\nx = threading.Lock()\n", "TID251"),
    "lock in a property": (
        "from functools import cached_property\n\nx = cached_property\n",
        "TID251",
    ),
    "environment by import": ("from os import getenv\n\nx = getenv('HOME')\n", "TID251"),
    "hidden import": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import json as json\n",
        "TID251",
    ),
    "torch at module level": ("import torch\n\nx = torch\n", "TID253"),
    "blanket ignore": ("x: int = 'a'  # type: ignore\n", "PGH003"),
}


def test_lint_finds_each_mistake(tmp_path: Path) -> None:
    names = {mistake: mistake.replace(" ", "_") + ".py" for mistake in LINT_MISTAKES}
    files = {
        f"src/tilewright/tools/{names[mistake]}": DOC + code
        for mistake, (code, _) in LINT_MISTAKES.items()
    }
    root = gates.planted(tmp_path, files)
    verdict = gates.run_module("ruff", "check", "--no-cache", "--output-format=json", ".", cwd=root)
    assert not verdict.passed
    found = {(Path(row["filename"]).name, row["code"]) for row in gates.json_rows(verdict)}
    missed = {
        mistake
        for mistake, (_, code) in LINT_MISTAKES.items()
        if (names[mistake], code) not in found
    }
    assert not missed


def test_layout_finds_unformatted_code(tmp_path: Path) -> None:
    root = gates.planted(tmp_path, {"src/tilewright/tools/x.py": DOC + "x = {'a':1}\n"})
    verdict = gates.layout(root)
    assert not verdict.passed
    assert "x.py" in verdict.report


# --- pyright --------------------------------------------------------------------------------------


@pytest.mark.dev("pyright")
def test_types_finds_each_mistake(tmp_path: Path) -> None:
    mistakes = {
        "src/tilewright/tools/wrong.py": "x: int = 'a'\n",
        "src/tilewright/tools/untyped.py": "def f(x):\n    return x\n",
        "src/tilewright/llvm/boundary.py": "from llvmlite import binding\n\n"
        "x: int = binding.get_process_triple()\n",
        "tests/test_wrong.py": "x: int = 'a'\n",
        "scripts/untyped.py": "def f(x):\n    return x\n",
    }
    root = gates.planted(tmp_path, {name: DOC + code for name, code in mistakes.items()})
    verdict = gates.types(root)
    assert not verdict.passed
    missed = [name for name in mistakes if f"{name}:" not in verdict.report]
    assert not missed, verdict.report


def test_every_package_but_the_kernels_is_typed_strictly() -> None:
    package = gates.ROOT / "src" / "tilewright"
    names = {path.parent.name for path in package.glob("*/__init__.py")}
    strict = {Path(entry).name for entry in gates.configuration()["tool"]["pyright"]["strict"]}
    assert strict == names - {"kernels"} | {"scripts", "*.py"}


# --- import-linter --------------------------------------------------------------------------------


LAYER_MISTAKES = {
    "Layers import downwards only": {
        "support/a.py": "from tilewright import ir as ir\n",
    },
    "Rooms of the CPU backend": {
        "backends/cpu/lower/a.py": "from tilewright.backends.cpu import pipeline as pipeline\n",
    },
    "Rooms of the NVIDIA backend": {
        "backends/nvidia/layouts/a.py": "from tilewright.backends.nvidia import lower as lower\n",
        "backends/nvidia/passes/a.py": "from tilewright.backends.nvidia import lower as lower\n",
        "backends/nvidia/lower/a.py": "from tilewright.backends.nvidia import driver as driver\n",
    },
    "Rooms of the runtime": {
        "runtime/arguments/a.py": "from tilewright.runtime import launch as launch\n",
    },
    "Backends do not know each other": {
        "backends/nvidia/__init__.py": "import tilewright.backends.cpu as cpu\n",
    },
    "llvmlite only in llvm": {
        "backends/cpu/a.py": "import llvmlite as llvmlite\n",
    },
    "numpy only where values are computed": {
        "transforms/a.py": "import numpy as numpy\n",
    },
    "The interpreter knows no analysis, transformation or LLVM": {
        "interp/a.py": "from tilewright import transforms as transforms\n",
    },
    "Nothing inside imports the top facade": {
        "kernels/a.py": "import tilewright\n\nx = tilewright\n",
    },
    "ir: only its facade from outside": {
        "ir/core.py": "x = 1\n",
        "transforms/b.py": "from tilewright.ir.core import x as x\n",
    },
    "No cycles among siblings": {
        "ops/a.py": "from . import b as b\n",
        "ops/b.py": "from . import a as a\n",
    },
}


def test_layers_finds_each_mistake(tmp_path: Path) -> None:
    files = {
        f"src/tilewright/{name}": DOC + code
        for mistake in LAYER_MISTAKES.values()
        for name, code in mistake.items()
    }
    verdict = gates.layers(gates.planted(tmp_path, files))
    assert not verdict.passed
    missed = [name for name in LAYER_MISTAKES if f"{name} BROKEN" not in verdict.report]
    assert not missed, verdict.report
    report, nvidia = " ".join(verdict.report.split()), "tilewright.backends.nvidia"
    for room, other in (("layouts", "lower"), ("passes", "lower"), ("lower", "driver")):
        assert f"{nvidia}.{room} is not allowed to import {nvidia}.{other}" in report


def test_layers_require_a_place_for_each_new_package(tmp_path: Path) -> None:
    root = gates.planted(tmp_path, {"src/tilewright/misplaced/__init__.py": DOC})
    verdict = gates.layers(root)
    assert not verdict.passed
    assert "misplaced" in verdict.report


def test_layers_accepts_the_planted_package_without_mistakes(tmp_path: Path) -> None:
    verdict = gates.layers(gates.planted(tmp_path, {}))
    assert verdict.passed, verdict.report


# --- codespell ------------------------------------------------------------------------------------


def test_spelling_finds_a_typo(tmp_path: Path) -> None:
    typo = "rec" + "ieve"
    root = gates.planted(tmp_path, {"README.md": f"What you {typo}.\n"})
    verdict = gates.spelling(root)
    assert not verdict.passed
    assert typo in verdict.report
