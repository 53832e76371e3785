"""Programs of torch with kernels of Tilewright: users' in compiled graphs, and packages of
AOTInductor; in a file, so a process, of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.conftest import Outcomes
from tilewright.compiler import package_version
from tilewright.triton_alias.torch_version import REGISTERED

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="session")
def with_user_kernels(program: Callable[..., Outcomes], once: Callable[..., Any]) -> Outcomes:
    return once("user-kernels", lambda caches: program(caches, script="torch_user_kernels.py"))


@pytest.mark.parametrize("case", ["launch", "mutation", "autotune", "descriptors", "operator"])
def test_users_kernels_are_parts_of_the_graph(case: str, with_user_kernels: Outcomes) -> None:
    outcome = with_user_kernels[case]
    assert outcome["error"] < 1e-6
    assert outcome["kernels"] > 1  # the user's, and what Inductor makes of the rest
    assert outcome["warnings"] == []


registers = pytest.mark.skipif(
    torch.cuda.is_available() or not torch.__version__.startswith(REGISTERED),
    reason=f"registers what is for CPUs, of PyTorch {', '.join(REGISTERED)}",
)


@registers
def test_configurations_that_are_one_on_a_cpu_are_measured_once(
    with_user_kernels: Outcomes,
) -> None:
    assert with_user_kernels["autotune"]["measured"] == 2  # of 4: each with 2 and 4 warps


@registers
def test_graphs_are_cached_by_the_version_of_the_compiler(with_user_kernels: Outcomes) -> None:
    assert package_version() in with_user_kernels["process"]["passes"]


def test_there_is_a_triton_without_a_gpu(with_user_kernels: Outcomes) -> None:
    assert with_user_kernels["process"]["has Triton"]


def test_what_inductor_has_no_kernel_for_is_called(with_user_kernels: Outcomes) -> None:
    outcome = with_user_kernels["fall-back"]
    assert outcome["error"] < 1e-6
    assert outcome["kernels"] > 0  # of what is around it


def test_a_kernel_that_needs_what_is_missing_is_named(with_user_kernels: Outcomes) -> None:
    text = with_user_kernels["mistake"]["text"]
    assert "no_such_function" in text
    assert text.count("[TW") == 1


def test_torch_finds_out_what_a_kernel_reads_and_writes(with_user_kernels: Outcomes) -> None:
    accesses = with_user_kernels["accesses"]
    if "add" not in accesses:
        pytest.skip("PyTorch 2.11 tells only what is written")
    assert accesses["add"] == [["x", "y"], ["out"]]
    assert accesses["accumulate"] == [["count", "total", "x"], ["count", "total"]]


needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None, reason="PyTorch compiles C++ by g++"
)


CPP_PROGRAMS = "torch_cpp_programs.py"


@needs_compiler
@registers
def test_packages_have_all_that_launches_kernels(
    program: Callable[..., Outcomes], tmp_path: Path
) -> None:
    package = str(tmp_path / "sources.pt2")
    program(tmp_path, package, "--sources", script=CPP_PROGRAMS)
    with zipfile.ZipFile(package) as files:
        names = files.namelist()
        (wrapper,) = [name for name in names if name.endswith(".wrapper.cpp")]
        text = files.read(wrapper).decode()
    kernels = text.count("_launcher_fn(\n")
    assert kernels >= 4
    assert text.count("uint32_t grid_0 = ") == text.count("loadCpuTritonKernel(\n") == kernels
    assert sum(name.endswith(".so") for name in names) == 2 * kernels


def launches(package: str) -> str:
    """The lines of a package's C++ that load kernels, and that say with what they are launched."""
    with zipfile.ZipFile(package) as files:
        texts = [files.read(name).decode() for name in files.namelist() if name.endswith(".cpp")]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    words = ("loadKernel(", "kernel_args_[]", "launchKernel(", "uint32_t grid_")
    return "\n".join(line for line in lines if any(word in line for word in words))


def loaded_package(program: Callable[..., Outcomes], folder: Path) -> dict[str, Any]:
    """What a process without Tilewright says of a package."""
    package = str(folder / "model.pt2")
    made = program(folder, package, script=CPP_PROGRAMS)["program"]
    assert made["path"] == package
    shutil.rmtree(folder / "inductor")  # the package has all that it needs
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore"]
    command += [str(Path(__file__).with_name(CPP_PROGRAMS)), "--load", package]
    done = subprocess.run(command, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{launches(package)}"
    return json.loads(done.stdout)


@needs_compiler
def test_packages_run_without_tilewright(program: Callable[..., Outcomes], tmp_path: Path) -> None:
    loaded = loaded_package(program, tmp_path)
    assert loaded["error"] < 1e-5
    assert "index out of bounds" in loaded["failure"]


@needs_compiler
@pytest.mark.gpu
def test_packages_run_on_a_gpu(program: Callable[..., Outcomes], tmp_path: Path) -> None:
    loaded = loaded_package(program, tmp_path)
    assert loaded["error"] < 1e-5
    assert not loaded["failure"]


@needs_compiler
def test_gradients_by_cpp_wrapper(program: Callable[..., Outcomes], tmp_path: Path) -> None:
    outcome = program(tmp_path, script=CPP_PROGRAMS)["program"]
    assert outcome["error"] < 1e-5
