"""`as_triton`: Triton's module tree is found here, truthfully, and without copies of modules."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as ours
from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.support import errors
from tilewright.triton_alias.module_table import MODULES

LINES = Path(__file__).with_name("import_lines.txt").read_text(encoding="utf-8").splitlines()[1:]
FOUND, REFUSED = LINES[: LINES.index("# refused")], LINES[LINES.index("# refused") + 1 :]


@pytest.fixture
def triton() -> Generator[ModuleType]:
    with triton_alias() as module:
        yield module


def test_the_version_is_triton_s(triton: ModuleType) -> None:
    assert triton.__version__ == "3.6.0"
    assert importlib.metadata.version("triton") == "3.6.0"
    assert triton.__file__ == tilewright.__file__
    assert importlib.util.find_spec("triton") is not None
    assert importlib.metadata.version("numpy") == np.__version__


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_there_and_below_its_parent(triton: ModuleType, module: str) -> None:
    parent, _, name = module.rpartition(".")
    found = importlib.import_module(module)
    assert found is sys.modules[module]
    # an attribute never hides the module: `triton.runtime.jit` is one, and has `jit`
    assert not parent or getattr(sys.modules[parent], name) is found
    assert set(found.__all__) <= set(dir(found))


@pytest.mark.parametrize("module", MODULES)
def test_every_name_that_a_module_lists_is_there(triton: ModuleType, module: str) -> None:
    found = importlib.import_module(module)
    # names that stand in the table before the language has them are listed, and missing
    missing = {name for name in found.__all__ if not hasattr(found, name)}
    assert missing <= set(MODULES[module].names)


OURS = ["triton", "triton.knobs"]
"""Modules of Triton with a file of ours: the package, and the module that is one of ours itself."""


def test_no_module_of_ours_is_copied(triton: ModuleType) -> None:
    for line in FOUND:
        exec(line, {})
    folder = str(Path(tilewright.__file__).parent)
    files = {
        name: module.__file__ or ""
        for name, module in list(sys.modules.items())
        if getattr(module, "__file__", None)
    }
    strangers = [name for name, file in files.items() if file.startswith(folder)]
    assert [name for name in strangers if not name.startswith("tilewright")] == OURS
    assert importlib.import_module("triton.language").load is ours.load


def test_there_are_three_hundred_lines() -> None:
    assert len({*FOUND, *REFUSED}) == len(FOUND) + len(REFUSED)
    assert len(FOUND) >= 300


@pytest.mark.parametrize("line", FOUND)
def test_public_import_line_works(triton: ModuleType, line: str) -> None:
    names: dict[str, Any] = {}
    exec(line, names)
    names.pop("__builtins__")
    assert names
    assert None not in names.values()


@pytest.mark.parametrize("line", REFUSED)
def test_public_import_line_works_or_says_why_not(triton: ModuleType, line: str) -> None:
    names: dict[str, Any] = {}
    try:
        exec(line, names)
    except errors.MissingInTriton as problem:
        assert isinstance(problem, ModuleNotFoundError)
        assert problem.wanted.startswith("triton.")
        assert str(problem) == f"{problem.wanted} is not in Tilewright: {problem.reason} [TW221]"
    else:
        assert len(names) > 1


def test_a_missing_name_has_triton_s_row_in_its_error(triton: ModuleType) -> None:
    with pytest.raises(ImportError, match="experimental packages, as Gluon, are in tier C"):
        importlib.import_module("triton.experimental.gluon")
    with pytest.raises(ImportError, match=r"triton\.language\.nope is not in Tilewright"):
        exec("from triton.language import nope", {})


@pytest.mark.parametrize(
    ("module", "there", "missing"),
    [
        ("triton", "jit cdiv set_allocator runtime language testing knobs", "ops experimental x"),
        ("triton.language", "gather make_tensor_descriptor load", "nope _experimental_x"),
        ("triton.language.math", "exp rsqrt", "fast_dividef"),
        ("triton.runtime.driver", "active driver set_active", "CudaUtils"),
        ("triton.runtime.jit", "jit JITFunction mangle_type", "create_specialize_impl"),
    ],
)
def test_probes_are_answered_truthfully(
    triton: ModuleType, module: str, there: str, missing: str
) -> None:
    found = importlib.import_module(module)
    assert {name: hasattr(found, name) for name in there.split()} == dict.fromkeys(
        there.split(), True
    )
    assert {name: hasattr(found, name) for name in missing.split()} == dict.fromkeys(
        missing.split(), False
    )


def test_the_active_driver_is_looked_up_each_time(triton: ModuleType) -> None:
    driver = importlib.import_module("triton.runtime.driver")
    before = tilewright.runtime.driver.active
    try:
        other = triton.backends.backends["cpu"].driver()
        driver.set_active(other)
        assert driver.active is other is triton.runtime.driver.driver.active
        assert isinstance(driver.active, triton.backends.backends["cpu"].driver)
        assert driver.active.get_current_target().backend == "cpu"
    finally:
        driver.set_active(before)


def test_star_imports_bring_names_and_no_modules(triton: ModuleType) -> None:
    names: dict[str, Any] = {}
    exec("from triton.language import *", names)
    assert names["load"] is ours.load
    assert "core" not in names


def test_calling_it_twice_is_the_same_module(triton: ModuleType) -> None:
    assert tilewright.as_triton() is triton
    assert tilewright.as_triton() is importlib.import_module("triton")


def test_another_triton_that_is_imported_already_is_refused(
    triton: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ModuleType("triton")
    other.__version__ = "3.5.1"
    other.__file__ = "/site-packages/triton/__init__.py"
    monkeypatch.setitem(sys.modules, "triton", other)
    with pytest.raises(errors.TritonIsImported) as caught:
        tilewright.as_triton()
    assert str(caught.value).splitlines() == [
        "triton 3.5.1 is imported already, from /site-packages/triton/__init__.py [TW220]",
        "  hint: call tilewright.as_triton() before anything imports triton, as torch and "
        "libraries of kernels may; or start the program by `tilewright run-script FILE`",
    ]
    assert isinstance(caught.value, ImportError)


KERNELS = """
import sys
import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x + i, mask=i < n) * triton.cdiv(n, 10)
    tl.store(out + i, libdevice.tanh(y), mask=None if EVEN else i < n)

x = np.linspace(-1, 1, 77, dtype="f")
out = np.zeros_like(x)
scaled[lambda meta: (triton.cdiv(77, meta["BLOCK"]),)](x, out, 77)
np.testing.assert_allclose(out, np.tanh(x * 8), rtol=1e-6)
print(__name__, sys.argv[1:], "tilewright" in sys.modules, triton.__version__)
"""


@pytest.mark.parametrize("interpret", ["0", "1"])
def test_a_script_runs_unmodified(tmp_path: Path, interpret: str) -> None:
    script = tmp_path / "script.py"
    script.write_text("import helper\n" + KERNELS, encoding="utf-8")
    (tmp_path / "helper.py").write_text("import triton\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "run-script", str(script), "--steps", "3", "--", "-x"],
        capture_output=True,
        text=True,
        check=False,
        env={**_environment(), "TRITON_INTERPRET": interpret},
    )
    assert done.stderr == ""
    assert done.stdout == "__main__ ['--steps', '3', '--', '-x'] True 3.6.0\n"


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def test_a_script_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "run-script", str(tmp_path / "missing.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1, f"tilewright: there is no file {tmp_path / 'missing.py'}\n"
    )  # fmt: skip


@pytest.mark.torch
def test_inductor_s_heuristics_import() -> None:
    pytest.importorskip("torch")
    code = (
        "import tilewright; tilewright.as_triton()\n"
        "import torch._inductor.runtime.triton_heuristics as found\n"
        "from torch._inductor.runtime import triton_compat\n"
        "print(triton_compat.HAS_TRITON, triton_compat.JITFunction is tilewright.JITFunction,\n"
        "      issubclass(found.CachingAutotuner, tilewright.KernelInterface))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("True True True\n", 0), done.stderr


def test_asking_for_a_missing_module_is_no_error(triton: ModuleType) -> None:
    """Packages ask whether Gluon is there, and take this for an answer."""
    assert importlib.util.find_spec("triton.experimental") is None
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.util.find_spec("triton.experimental.gluon")
    assert caught.value.name == "triton.experimental"
