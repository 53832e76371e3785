"""Kernels for CPUs in shared libraries, called as PyTorch's programs without Python call them."""

from __future__ import annotations

import ctypes
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.compiler import ASTSource, CompiledKernel
from tilewright.support import errors
from tilewright.triton_alias.shared_libraries import ENTRY

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++", "cc"))), reason="no C++ compiler"
)


@tilewright.jit
def mixed(x, half, out, flag, wide, n, by, exact, B: tl.constexpr, CHECK: tl.constexpr):
    """Numbers of every kind, f16 on the way, and rows of scratch."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, i < n)
    if CHECK:
        tl.device_assert(value >= 0, "negative")
    order = tl.sort(tl.where(i < n, value, float("inf")))
    extra = tl.where(flag, (wide >> 33).to(tl.float32), 0.0)
    tl.store(half + i, (value * exact).to(tl.float16), i < n)
    tl.store(out + i, order * by + extra + tl.program_id(1), i < n)


TYPES = {
    "x": "*fp32", "half": "*fp16", "out": "*fp32", "flag": "u1", "wide": "i64", "n": "i32",
    "by": "fp32", "exact": "fp64", "B": "constexpr", "CHECK": "constexpr",
}  # fmt: skip


def compiled(check: bool = False) -> CompiledKernel:
    with triton_alias() as triton:
        return triton.compile(
            ASTSource(mixed, TYPES, {"B": 64, "CHECK": check}),
            target=tilewright.GPUTarget("cpu", "", 1),
            options={"debug": True},
        )


def launch(folder: Path, kernel: CompiledKernel, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Arguments as C++ passes them: pointers, addresses of numbers, null for constants."""
    for name in ("so", "launcher.so"):
        (folder / name).write_bytes(kernel.asm[name])
    code = getattr(ctypes.CDLL(str(folder / "so")), kernel.name)
    half, out = np.zeros_like(x, np.float16), np.zeros_like(x)
    numbers = [
        ctypes.c_bool(True), ctypes.c_int64(5 << 33), ctypes.c_int64(len(x)), ctypes.c_float(0.5),
        ctypes.c_double(0.1),
    ]  # fmt: skip
    addresses = [*(a.ctypes.data for a in (x, half, out)), *map(ctypes.addressof, numbers), 0, 0]
    array = (ctypes.c_void_p * len(addresses))(*addresses)
    run = ctypes.CDLL(str(folder / "launcher.so"))[ENTRY]
    run(-(-len(x) // 64), 1, 1, 1, array, ctypes.cast(code, ctypes.c_void_p))
    return half, out


@needs_compiler
@pytest.mark.parametrize("pickled", [False, True])
def test_libraries_launch_the_kernel(tmp_path: Path, pickled: bool) -> None:
    kernel = compiled()
    if pickled:  # as a compile worker sends it
        kernel = pickle.loads(pickle.dumps(kernel))
    x = np.random.default_rng(0).standard_normal(1000, np.float32)
    half, out = launch(tmp_path, kernel, x)
    blocks = [np.sort(block) for block in np.split(x, range(64, 1000, 64))]
    np.testing.assert_allclose(out, np.concatenate(blocks) * np.float32(0.5) + 5, rtol=1e-6)
    np.testing.assert_array_equal(half, (x.astype(np.float64) * 0.1).astype(np.float16))


@needs_compiler
def test_a_failed_assertion_ends_a_process_without_torch(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib, numpy as np\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n"
        "from tests.unit.triton_alias.test_shared_libraries import compiled, launch\n"
        "x = np.ones(300, np.float32); x[200] = -1\n"
        f"launch(pathlib.Path({str(tmp_path)!r}), compiled(check=True), x)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode < 0
    assert "the kernel 'mixed' failed in program (3, 0, 0), at (8, -1, -1)" in done.stderr
    assert "negative" in done.stderr


def test_without_a_compiler_the_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(errors.ToolMissing, match=r"PATH for no-such-compiler") as caught:
        compiled().asm["so"]
    assert "install one, g++ for instance" in str(caught.value)


@needs_compiler
def test_what_a_linker_says_is_in_the_error() -> None:
    kernel = compiled()
    kernel.asm._artifacts["obj"] = b"no object file"
    with pytest.raises(errors.NotInLibrary, match=r"does not link it: .*0\.o"):
        kernel.asm["so"]


def test_descriptors_have_no_place_among_the_arguments() -> None:
    @tilewright.jit
    def kernel(block, out):
        tl.store(out + tl.arange(0, 16), block.load([0]))

    with triton_alias() as triton:
        source = ASTSource(kernel, {"block": "tensordesc<fp32[16]>", "out": "*fp32"})
        compiled = triton.compile(source, target=tilewright.GPUTarget("cpu", "", 1))
    with pytest.raises(errors.NotInLibrary, match="takes tuples or tensor descriptors"):
        compiled.asm["launcher.so"]
