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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
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


@pytest.fixture(scope="session")
def package(program: Callable[..., Outcomes], once: Callable[..., Any]) -> str:
    """The path of a package, next to which is nothing that it was made with."""

    def make(folder: Path) -> str:
        path = str(folder / "model.pt2")
        made = program(folder, path, script=CPP_PROGRAMS)["program"]
        assert made["path"] == path
        shutil.rmtree(folder / "inductor")  # the package has all that it needs
        return path

    return once("package", make)


def loaded_package(package: str) -> dict[str, Any]:
    """The outcome of a package in a process without Tilewright."""
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore"]
    command += [str(Path(__file__).with_name(CPP_PROGRAMS)), "--load", package]
    done = subprocess.run(command, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{launches(package)}"
    return json.loads(done.stdout)


@needs_compiler
def test_packages_run_without_tilewright(package: str) -> None:
    loaded = loaded_package(package)
    assert loaded["error"] < 1e-5
    assert "index out of bounds" in loaded["failure"]


@needs_compiler
@pytest.mark.gpu
def test_packages_run_on_a_gpu(package: str) -> None:
    loaded = loaded_package(package)
    assert loaded["error"] < 1e-5
    assert not loaded["failure"]


# --- in C++, without Python -----------------------------------------------------------------------


def write_tensor(path: Path, tensor: Any) -> str:
    """Write a tensor as `torch_package_runner.cpp` reads it."""
    kind = {torch.float32: 0, torch.int64: 1}[tensor.dtype]
    head = np.array([kind, tensor.dim(), *tensor.shape], np.int64)
    path.write_bytes(head.tobytes() + tensor.cpu().contiguous().numpy().tobytes())
    return str(path)


def read_tensor(path: Path) -> Any:
    content = path.read_bytes()
    rank = int(np.frombuffer(content, np.int64, 2)[1])
    shape = np.frombuffer(content, np.int64, rank, 16)
    elements = np.frombuffer(content, np.float32, offset=16 + 8 * rank)
    return torch.from_numpy(elements.reshape(shape).copy())


@pytest.fixture(scope="session")
def runner(once: Callable[..., Any]) -> str:
    """The C++ program, linked with PyTorch's libraries but none of Python's."""

    def build(folder: Path) -> str:
        root = Path(str(torch.__file__)).parent
        libraries = ["torch_cpu", "c10"]
        if torch.cuda.is_available():
            libraries += ["torch", "torch_cuda", "c10_cuda"]
        source = Path(__file__).with_name("torch_package_runner.cpp")
        command = ["g++", "-std=c++20", "-O0", f"-I{root / 'include'}", str(source)]
        command += [f"-I{root / 'include/torch/csrc/api/include'}", f"-L{root / 'lib'}"]
        command += ["-Wl,--no-as-needed", *(f"-l{name}" for name in libraries), "-ldl"]
        command += [f"-Wl,-rpath,{root / 'lib'}", "-o", str(folder / "runner")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return str(folder / "runner")

    return once("runner", build)


def run_in_cpp(
    runner: str, package: str, folder: Path, inputs: Sequence[Any]
) -> subprocess.CompletedProcess[str]:
    """Run a package on inputs; its four outputs are written to the folder."""
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    given = [write_tensor(folder / f"input{i}", tensor) for i, tensor in enumerate(inputs)]
    outputs = [str(folder / f"output{i}") for i in range(4)]
    command = [runner, package, device, *given, "--", *outputs]
    alone = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, env=alone, capture_output=True, text=True, check=False)


def model_outputs(x: Any, y: Any, index: Any) -> list[Any]:
    """The outputs of `torch_cpp_programs.Model`."""
    rows = torch.softmax(torch.sin(x) * y + 1, -1)
    return [rows.sum(0), rows[:, index] * 2, (x / 8).flatten().cumsum(0), y * 0.25 + 1]


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("rows", [40, 51])
def test_packages_run_in_cpp_without_python(
    runner: str, package: str, tmp_path: Path, rows: int
) -> None:
    torch.manual_seed(rows)
    inputs = [torch.randn(rows, 500), torch.randn(rows, 500), torch.randint(0, 500, (20,))]
    done = run_in_cpp(runner, package, tmp_path, inputs)
    assert done.returncode == 0, done.stderr
    for place, expected in enumerate(model_outputs(*inputs)):
        found = read_tensor(tmp_path / f"output{place}")
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.skipif(
    torch.cuda.is_available(), reason="a failed assertion on a GPU ends the process"
)
def test_failed_assertions_are_exceptions_in_cpp(runner: str, package: str, tmp_path: Path) -> None:
    inputs = [torch.randn(40, 500), torch.randn(40, 500), torch.full((20,), 1000)]
    done = run_in_cpp(runner, package, tmp_path, inputs)
    assert done.returncode == 2
    assert "index out of bounds" in done.stderr


@needs_compiler
def test_gradients_by_cpp_wrapper(program: Callable[..., Outcomes], tmp_path: Path) -> None:
    outcome = program(tmp_path, script=CPP_PROGRAMS)["program"]
    assert outcome["error"] < 1e-5
