"""Programs for other machines see what they are given, and say what goes wrong."""

import re

import numpy as np
import pytest

from tests.qemu import MACHINES, ForeignCpu, missing
from tilewright import jit
from tilewright import language as tl
from tilewright.backends import GPUTarget, backend_named
from tilewright.compiler import ASTSource, CompiledKernel, compile
from tilewright.kernels.elementwise import add_kernel
from tilewright.support import errors

POINTERS = dict.fromkeys(("x_ptr", "y_ptr", "out_ptr"), "*fp32")
VECTOR_REGISTERS = {
    "aarch64": r"\bfadd\tv\d+\.4s",
    "aarch64-sve256": r"\bfadd\tz\d+\.s",
    "x86-64": r"\baddps\t.*%xmm",
    "x86-64-v3": r"\bvaddps\t.*%ymm",
    "x86-64-v4": r"\bvaddps\t.*%zmm",
}


def compiled(cpu: str) -> CompiledKernel:
    signature = {**POINTERS, "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(add_kernel, signature, {"BLOCK": 1024})
    return compile(source, GPUTarget("cpu", cpu, 1))


@jit
def number_programs_kernel(out, wrong):
    here = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0)
    tl.store(out + here + tl.program_id(0) + wrong, here + tl.program_id(0))


@pytest.mark.parametrize(("cpu", "registers"), VECTOR_REGISTERS.items())
def test_every_machine_compiles_for_every_other(cpu: str, registers: str):
    assert re.search(registers, str(compiled(cpu).asm["asm"]))


def test_code_for_another_machine_is_not_run():
    other = "aarch64" if backend_named("cpu").target().arch != "aarch64" else "x86-64"
    with pytest.raises(errors.BackendUnavailable, match=f"compiled for {other}") as caught:
        _ = compiled(other).launcher
    assert "without naming a target" in str(caught.value)


def test_an_unknown_machine_is_refused_with_those_there_are():
    with pytest.raises(errors.UnknownTarget, match="cpu:z80") as caught:
        compiled("z80")
    assert "'aarch64'" in str(caught.value)


def test_each_program_of_a_grid_runs_once(device: ForeignCpu):
    out = device.empty(30, np.int32)
    device.run(number_programs_kernel, (2, 3, 5), out, 0)
    np.testing.assert_array_equal(out, np.arange(30))


def test_memory_beside_the_arrays_is_guarded(device: ForeignCpu):
    out = device.empty(30, np.int32)
    with pytest.raises(AssertionError, match="outside its arrays"):
        device.run(number_programs_kernel, (30,), out, 4)


def test_memory_far_from_the_arrays_is_not_there(device: ForeignCpu):
    out = device.empty(30, np.int32)
    with pytest.raises(AssertionError, match="status -11"):
        device.run(number_programs_kernel, (1,), out, 1 << 20)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "Debian's packages qemu-user" in (missing("aarch64") or "")
    assert all(missing(name) for name in MACHINES)
