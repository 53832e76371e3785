"""`python -m triton.tools.compile` and `link`: the C that they write, with a fake driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.aot.bundle.c_programs import any_compiler, run_checked
from tilewright.triton_alias import aot_compile_tool, aot_link_tool
from tilewright.triton_alias.installation import install

FAKE_DRIVER = Path(__file__).parents[1] / "aot" / "bundle" / "fake_cuda.c"
KERNELS = """
import triton
import triton.language as tl


@triton.jit
def copy(x, out, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * scale, mask=i < n)
"""
CUDA_H = """
#pragma once
typedef unsigned long long CUdeviceptr;
typedef struct CUstream_st *CUstream;
typedef enum {
    CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209, CUDA_ERROR_UNKNOWN = 999
} CUresult;
"""
PROGRAM = r"""
#include "copy32.h"
#include <stdio.h>
int main(void) {
    load_copy32();
    for (int n = 31; n <= 33; n++)
        printf("%d\n", copy32_default(NULL, 64, 128, 1.5f, n));
    printf("%d %d\n", copy32(NULL, 64, 128, 1.5f, 1, 1), copy32(NULL, 64, 128, 1.5f, 1, 2));
    printf("%d\n", copy32_default(NULL, 66, 128, 1.5f, 1));
    printf("%d algorithms\n", copy32_get_num_algos());
    unload_copy32();
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with Tilewright by the name of Triton, kernels, and a driver."""
    folder = tmp_path_factory.mktemp("tools")
    install(folder)
    (folder / "kernels.py").write_text(KERNELS)
    (folder / "cuda.h").write_text(CUDA_H)
    (folder / "program.c").write_text(PROGRAM)
    command = [*any_compiler(), "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1")]
    run_checked([*command, str(FAKE_DRIVER)])
    return folder


def run_tool(folder: Path, name: str, *words: str) -> str:
    """The output of `python -m triton.tools.NAME`, in the folder."""
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", f"triton.tools.{name}", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_variants_are_compiled_linked_and_launched(folder: Path) -> None:
    for hint, block in (("", 32), (":16", 32), ("", 64)):
        words = ["kernels.py", "-n", "copy", "-on", "copy32", "-t", "cuda:90:32", "-w", "1"]
        signature = f"*fp32:16, *fp32:16, fp32, i32{hint}, {block}"
        run_tool(
            folder, "compile", *words, "-s", signature, "-g", f"(n + {block - 1})/{block}, 1, 1"
        )
    headers = sorted(path.name for path in folder.glob("copy32.*.h"))
    assert len(headers) == 3 and any("_0d1d23d4" in name for name in headers)
    headers.sort(key=lambda name: '"64_' in (folder / name).read_text())  # the algorithm
    run_tool(folder, "link", *headers, "-o", "copy32")
    sources = [str(path) for path in folder.glob("*.c")]
    program = str(folder / "program")
    warnings = ("-Wall", "-Wextra", "-Werror")
    run_checked([*any_compiler(), *warnings, f"-I{folder}", *sources, "-o", program, "-ldl"])
    lines = run_checked([program], LD_LIBRARY_PATH=str(folder)).splitlines()
    launches = [line.partition(" of ")[0] for line in lines if line.startswith("launch")]
    assert launches == [f"launch copy ({size}, 1, 1)" for size in (1, 1, 2, 1)]
    assert lines.count("load cubin") == 3 and lines.count("unload") == 3
    results = [line for line in lines if line.isdecimal()]
    assert results == ["0", "0", "0", "1"]  # the last is misaligned
    assert "0 1" in lines and "2 algorithms" in lines


def test_names_are_those_of_triton() -> None:
    signature = aot_compile_tool.read_signature(
        ["x", "n", "one", "BLOCK"], "*fp16:16, i32, i32:1, 64"
    )
    assert signature.suffix == "0d12c3"
    assert signature.passed == ["x", "n"] and signature.constants == {"BLOCK": 64}


def test_names_that_c_reserves(folder: Path) -> None:
    text = KERNELS.replace("triton", "tilewright").replace("scale", "double")
    (folder / "reserved.py").write_text(text)
    chosen = aot_compile_tool.CompileArgs(
        str(folder / "reserved.py"), "copy", "*fp32, *fp32, fp32, i32, 32", "n, 1, 1", "cuda:90:32",
        out_path=folder / "reserved" / "copy",
    )  # fmt: skip
    (folder / "reserved").mkdir()
    _, (source, header) = aot_compile_tool.compile_kernel(chosen)
    assert "float double_, int32_t n);" in header.read_text()
    command = [*any_compiler(), "-Wall", "-Wextra", "-Werror", f"-I{folder}", "-c", str(source)]
    assert run_checked([*command, "-o", str(folder / "reserved.o")]) == ""


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("-s", "*fp32, i32", "must be 5 types or values, for x, out, scale, n, BLOCK"),
        ("-s", "*fp32:8, *fp32, fp32, i32, 32", "hint of 'x'"),
        ("-g", "n", "three expressions of C"),
        ("-t", "hip:gfx942:64", "a GPU as cuda:90:32"),
        ("-n", "missing", "missing"),
    ],
)
def test_mistakes(
    folder: Path, option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "plain.py").write_text(KERNELS.replace("triton", "tilewright"))
    chosen = {
        "-n": "copy", "-s": "*fp32, *fp32, fp32, i32, 32", "-g": "1, 1, 1", "-t": "cuda:90:32",
        option: value,
    }  # fmt: skip
    words = [word for pair in chosen.items() for word in pair]
    assert aot_compile_tool.main([str(folder / "plain.py"), *words]) == 1
    said = capsys.readouterr().err
    assert said.startswith("triton.tools.compile: ") and message in said


def test_link_refuses_other_headers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert aot_link_tool.main([str(folder / "cuda.h"), "-o", str(folder / "all")]) == 1
    assert "one that triton.tools.compile wrote" in capsys.readouterr().err
