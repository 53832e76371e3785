"""`import tilewright`: cheap, complete, typed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import tilewright
import tilewright.language
from scripts.site_pages import stub_names

HEAVY = ("numpy", "ml_dtypes", "llvmlite", "rich", "torch")
UNUSED = (
    "backends.cpu.driver.cache_flush",
    "backends.cpu.microkernel.blocked_loops",
    "transforms.expand.exponential",
    "transforms.expand.trigonometric",
    "runtime.launch.native_dispatch",
    "backends.nvidia",
    "eager",
    "interp",
)
"""Modules that a sum of vectors on the CPU does not need, below `tilewright`."""


def loaded_after(program: str, modules: Sequence[str] = HEAVY) -> list[str]:
    """Which of these modules a program has imported."""
    text = f"import sys\n{program}\nprint([m for m in {modules!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
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


def test_the_first_launch_on_a_cpu_loads_what_it_uses() -> None:
    program = (
        "import numpy\n"
        "from tilewright.kernels import elementwise\n"
        "x = numpy.ones(64, numpy.float32)\n"
        "assert elementwise.add(x, x).tolist() == [2.0] * 64\n"
    )
    assert loaded_after(program, [f"tilewright.{name}" for name in UNUSED]) == []


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
    named = set(stub_names(stub))
    places: dict[str, str] = vars(tilewright)["_PLACES"]
    assert set(places) <= named
    for name in named | {"TritonError"}:
        assert hasattr(tilewright, name), name


def test_knobs_are_a_module_of_the_package_too() -> None:
    assert tilewright.knobs.runtime.interpret is False
    assert "knobs" in dir(tilewright)
