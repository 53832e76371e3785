"""The command `tilewright build`, and libraries of bundles."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from tests.unit.aot.bundle.bundle_kernels import add_specs, matmul_specs, softmax_spec
from tests.unit.aot.bundle.c_programs import any_compiler, bundle_of, compiler, run_checked
from tilewright.aot.bundle.bundle_library import build_library
from tilewright.support import errors
from tilewright.tools.cli import main

KERNELS = """
import tilewright
import tilewright.language as tl


@tilewright.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
"""
SPEC = """
version = 1

[[kernel]]
kernel = "kernels.py:double"
arguments = { x = "*fp32:16", n = "i32:>=0" }
constexprs = { BLOCK = 256 }
grid = "(cdiv(n, BLOCK),)"
"""
PROGRAM = r"""
#include "numbers.h"
#include <stdio.h>
int main(void) {
    _Alignas(16) static float x[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = (float)i;
    int status = numbers_double(NULL, x, 900), wrong = 0;
    for (int i = 0; i < 1000; i++)
        wrong += x[i] != (i < 900 ? 2.0f : 1.0f) * (float)i;
    tilewright_queue queue = tilewright_cuda(NULL);
    printf("%d %d %d\n", status, wrong, numbers_double(&queue, x, 1));
    return 0;
}
"""
WINE = "/usr/lib/wine/wine64"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "program.c").write_text(PROGRAM)
    return tmp_path


def build(folder: Path, *options: str) -> Path:
    """The folder of a bundle that the command has built."""
    out = folder / "out"
    words = ["build", str(folder / "spec.toml"), "-o", str(out), "--name", "numbers", *options]
    assert main([*words, "--target", "x86-64-v3", "--target", "aarch64"]) == 0
    return out


def test_shared_and_static(folder: Path) -> None:
    compiler("ar")
    out = build(folder, "--library", "so", "--library", "a")
    command = [*any_compiler(), str(folder / "program.c"), f"-I{out}", "-o", str(folder / "run")]
    run_checked([*command, f"-L{out}", "-lnumbers", f"-Wl,-rpath,{out}"])
    assert run_checked([str(folder / "run")]) == "0 0 2\n"
    run_checked([*command, str(out / "libnumbers.a"), "-lpthread", "-lm", "-ldl"])
    assert run_checked([str(folder / "run")]) == "0 0 2\n"


def test_workers_outlive_dlclose(folder: Path) -> None:
    out = build(folder, "--library", "so")
    (folder / "program.c").write_text(r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **values) {
    static float x[100000];
    void *library = dlopen(values[count - 1], RTLD_NOW);
    int (*set_threads)(int32_t), (*call)(void *, float *, int);
    *(void **)&set_threads = dlsym(library, "numbers_set_threads");
    *(void **)&call = dlsym(library, "numbers_double");
    int status = set_threads(4) + call(NULL, x, 100000);
    dlclose(library);
    usleep(20000); // the workers fall asleep, in the library's code
    printf("%d\n", status);
    return 0;
}
""")
    run_checked([*any_compiler(), str(folder / "program.c"), "-o", str(folder / "run"), "-ldl"])
    assert run_checked([str(folder / "run"), str(out / "libnumbers.so")]) == "0\n"


@pytest.mark.dev("ziglang")
def test_dll_under_wine(folder: Path) -> None:
    zig = [*compiler("zig cc"), "-target", "x86_64-windows-gnu"]
    out = build(folder, "--library", "dll")
    program = folder / "run.exe"
    run_checked(
        [*zig, str(folder / "program.c"), f"-I{out}", str(out / "numbers.dll"), "-o", str(program)]
    )
    assert program.stat().st_size > 1000
    wine = shutil.which("wine64") or WINE
    if not os.path.exists(wine):
        pytest.skip("compiled only: wine64 is not installed")
    shutil.copy(out / "numbers.dll", folder)
    variables = {**os.environ, "WINEDEBUG": "-all", "WINEPREFIX": str(folder / "wine")}
    done = subprocess.run(
        [wine, str(program)], capture_output=True, text=True, env=variables, check=False
    )
    assert done.stdout.split() == ["0", "0", "2"], done.stderr


def test_manifest_has_hashes(folder: Path) -> None:
    out = build(folder)
    manifest = json.loads((out / "numbers.json").read_text())
    for name, digest in manifest["files"].items():
        assert sha256((out / name).read_bytes()).hexdigest() == digest
    assert {*manifest["files"]} == {"numbers.c", "numbers.h"}
    assert manifest["abi"] == 1
    assert all("llvmlite" in text for text in manifest["compilers"].values())
    (variant,) = manifest["kernels"][0]["variants"]
    assert {*variant["code"]} == {"x86-64-v3", "aarch64"}


def test_a_library_is_little_larger_than_its_objects(tmp_path: Path) -> None:
    specs = [*add_specs(), softmax_spec(), *matmul_specs(64)]
    targets = ("x86-64-v3", "x86-64-v4", "sm_80", "sm_90", "sm_120")
    bundle = bundle_of("demo", specs, *targets)
    bundle.write(tmp_path)
    manifest = json.loads(bundle.files["demo.json"])
    variants = [v for kernel in manifest["kernels"] for v in kernel["variants"]]
    objects = sum(code["bytes"] for v in variants for code in v["code"].values())
    library = build_library(tmp_path, "demo", "so").stat().st_size
    assert objects < library <= 1.1 * objects


def test_no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = build(folder)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(errors.ToolMissing, match="'a C compiler' was not found"):
        build_library(out, "numbers", "so")


def test_message_of_the_compiler(folder: Path) -> None:
    any_compiler()
    out = build(folder)
    (out / "numbers.h").write_text("#error of the test\n")
    with pytest.raises(
        errors.InvalidBundle, match="(?s)'numbers' cannot be in a bundle: .*of the test"
    ):
        build_library(out, "numbers", "so")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--name", "9"], "'name' expects letters, digits and underscores|letters"),
        (["--target", "sparc"], "sparc"),
    ],
)
def test_mistakes(
    folder: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(folder / "spec.toml"), "-o", str(folder / "out"), *words]) == 1
    assert message.rpartition("|")[2] in capsys.readouterr().err
