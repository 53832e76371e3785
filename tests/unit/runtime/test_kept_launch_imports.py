"""What a launch imports whose kernel lies in the disk cache: nothing that compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.backends import packages_apart
from tilewright.compiler.kernel_store import APART
from tilewright.support import operating_system

COMPILING = (
    "tilewright.analysis.",
    "tilewright.backends.cpu.lower",
    "tilewright.backends.cpu.microkernel",
    "tilewright.backends.cpu.ops",
    "tilewright.backends.cpu.passes",
    "tilewright.backends.cpu.pipeline",
    "tilewright.backends.cpu.stages",
    "tilewright.backends.nvidia.explain",
    "tilewright.backends.nvidia.layouts",
    "tilewright.backends.nvidia.lower",
    "tilewright.backends.nvidia.passes",
    "tilewright.backends.nvidia.pipeline",
    "tilewright.backends.nvidia.stages",
    "tilewright.compiler.run_stages",
    "tilewright.frontend.ptx.",
    "tilewright.frontend.python.lower",
    "tilewright.frontend.semantics",
    "tilewright.ir.builder",
    "tilewright.ir.parser",
    "tilewright.ir.passes",
    "tilewright.ir.rules",
    "tilewright.ir.verifier",
    "tilewright.language.extra.libdevice.",
    "tilewright.llvm.code_generation",
    "tilewright.llvm.library_calls",
    "tilewright.llvm.orc_linker",
    "tilewright.llvm.target_machines",
    "tilewright.ops",
    "tilewright.runtime.autotuner",
    "tilewright.runtime.bench.",
    "tilewright.runtime.tuning",
    *(f"tilewright.{name}" for name in APART),
    "tilewright.transforms",
    "llvmlite.binding",
    "llvmlite.ir",
    "rich",
)
RARE = (
    "tilewright.frontend.ptx.ptx_translation",
    "tilewright.frontend.semantics.library_operands",
    "tilewright.frontend.semantics.random_numbers",
    "tilewright.ir.parser",
    "tilewright.language.extra.libdevice.float_parts",
    "tilewright.transforms.checks",
    *(("llvmlite.binding", "llvmlite.ir") if operating_system.IS_LINUX_X86_64 else ()),
)
"""What most kernels are compiled without."""
ALLOWED = ("tilewright.analysis.argument_pair", "tilewright.analysis.reached_bytes")

ADD = """
import numpy, sys, tilewright
import tilewright.language as tl

@tilewright.jit
def add(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.sqrt(tl.load(x + i, i < n)) + 1, i < n)

x, out = numpy.full(1000, 4, numpy.float32), numpy.zeros(1000, numpy.float32)
for _ in range({launches}):
    add[(4,)](x, out, 1000, BLOCK=256)
assert (out == 3).all()
print([m for m in sys.modules if m.startswith({compiling!r}) and m not in {allowed!r}])
"""
FOR_A_GPU = """
import sys, tilewright
import tilewright.language as tl

@tilewright.jit
def add(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + 1, i < n)

{fake}
types = {{"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}}
source = tilewright.ASTSource(add, types, {{"BLOCK": 256}})
kernel = tilewright.compile(source, tilewright.GPUTarget("cuda", 90, 32))
{launch}
print([m for m in sys.modules if m.startswith({compiling!r}) and m not in {allowed!r}])
"""
FAKE = """
from tests.unit.backends.nvidia import fake_cuda
from tilewright.backends.nvidia.driver import cuda_driver, gpu_launcher
cuda = fake_cuda.FakeCuda((90,) * (fake_cuda.DEVICE + 2))
made = cuda.driver()
gpu_launcher.driver = lambda: made
gpu_launcher.device_and_stream = lambda: (fake_cuda.DEVICE, 0)
"""
LAUNCH = """
cuda.machine.expect(3)
kernel.launcher.launch((4, 1, 1), (fake_cuda.DEVICE_BASE, fake_cuda.DEVICE_BASE, 1000))
assert cuda.machine.launched().grid == (4, 1, 1)
"""


def imported(program: str, cache: Path, **more: object) -> list[str]:
    text = program.format(compiling=COMPILING, allowed=ALLOWED, **more)
    file = cache / "program.py"
    file.write_text(text)
    env = os.environ | {"TILEWRIGHT_CACHE_DIR": str(cache), "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, file], capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr
    return eval(run.stdout)


def imports_what_is_apart(backend: str, modules: list[str]) -> bool:
    """Whether something was imported whose files are no part of a kernel's key."""
    apart = (*(f"tilewright.{name}" for name in APART), *packages_apart(backend))
    return any(module.startswith(apart) for module in modules)


@pytest.mark.parametrize("launches", [1, 3])
def test_a_launch_on_a_cpu_imports_nothing_that_compiles(tmp_path: Path, launches: int) -> None:
    compiling = imported(ADD, tmp_path, launches=launches)
    assert compiling and not {*RARE} & {*compiling}
    assert not imports_what_is_apart("cpu", compiling)
    assert imported(ADD, tmp_path, launches=launches) == []


def test_a_launch_on_a_gpu_imports_nothing_that_compiles(tmp_path: Path) -> None:
    compiling = imported(FOR_A_GPU, tmp_path, fake="", launch="")
    assert compiling and not imports_what_is_apart("cuda", compiling)
    assert imported(FOR_A_GPU, tmp_path, fake="", launch="") == []
    imported(FOR_A_GPU, tmp_path, fake=FAKE, launch=LAUNCH)
    assert imported(FOR_A_GPU, tmp_path, fake=FAKE, launch=LAUNCH) == []
