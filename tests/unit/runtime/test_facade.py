"""`import tilewright`: cheap, complete, typed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
import tilewright.language

HEAVY = ("numpy", "ml_dtypes", "llvmlite", "rich", "torch")


def loaded_after(program: str) -> list[str]:
    """Which of the heavy packages a program has imported."""
    text = f"import sys\n{program}\nprint([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    return eval(done.stdout)


def test_importing_and_decorating_load_no_heavy_package() -> None:
    program = (
        "import tilewright, tilewright.language as tl\n"
        "assert not [m for m in sys.modules if m.startswith('tilewright.runtime')]\n"
        "@tilewright.jit\n"
        "def kernel(x): pass\n"
        "tilewright.autotune([tilewright.Config({})], key=[])(kernel)\n"
    )
    assert loaded_after(program) == []


def test_names_of_the_host_side() -> None:
    for name in (
        "jit", "autotune", "heuristics", "Config", "cdiv", "next_power_of_2", "compile",
        "MockTensor", "reinterpret", "TensorWrapper", "constexpr_function", "OutOfResources",
        "CompilationError", "TilewrightError", "InterpreterError", "language", "testing",
        "runtime", "JITFunction", "errors", "settings",
    ):  # fmt: skip
        assert getattr(tilewright, name) is not None
        assert name in dir(tilewright)
    assert tilewright.TritonError is tilewright.TilewrightError
    assert re.fullmatch(r"\d+\.\d+\.\d+", tilewright.__version__)


def test_names_of_the_language() -> None:
    from tilewright import arange, load, program_id, store

    assert (arange, load) == (tilewright.language.arange, tilewright.language.load)
    assert (program_id, store) == (tilewright.language.program_id, tilewright.language.store)
    assert tilewright.cdiv(7, 2) == 4
    assert tilewright.next_power_of_2(5) == 8


def test_unknown_names() -> None:
    assert not hasattr(tilewright, "lod")
    with pytest.raises(AttributeError, match="'tilewright' has no attribute 'lod'"):
        _ = tilewright.lod  # pyright: ignore[reportAttributeAccessIssue]


def test_the_types_name_what_is_loaded() -> None:
    stub = Path(tilewright.__file__).with_suffix(".pyi").read_text()
    named = {a or b for a, b in re.findall(r"import (\w+) as \1|^(\w+): ", stub, re.MULTILINE)}
    places: dict[str, str] = vars(tilewright)["_PLACES"]
    assert set(places) <= named
    for name in named | {"TritonError"}:
        assert hasattr(tilewright, name), name
