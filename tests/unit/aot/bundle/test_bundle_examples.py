"""The programs of `examples/bundle` compile without warnings, and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.aot.bundle.c_programs import WARNINGS, any_compiler, compiler, run_checked
from tilewright.tools.cli import main

EXAMPLES = Path(__file__).parents[4] / "examples" / "bundle"
LIBRARIES = ("-lpthread", "-lm", "-ldl")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    any_compiler()
    folder = tmp_path_factory.mktemp("examples") / "out"
    words = [
        "build",
        str(EXAMPLES / "numbers.toml"),
        "-o",
        str(folder),
        "--library",
        "so",
        "--rust",
    ]
    targets = ["x86-64-v2", "x86-64-v3", "aarch64", "sm_90"]
    assert main([*words, *(word for target in targets for word in ("--target", target))]) == 0
    return folder


def test_c(out: Path, tmp_path: Path) -> None:
    command = [*any_compiler(), *WARNINGS, str(EXAMPLES / "main.c"), str(out / "numbers.c")]
    run_checked([*command, f"-I{out}", "-o", str(tmp_path / "main"), *LIBRARIES])
    first, second = run_checked([str(tmp_path / "main")]).splitlines()
    assert first == "a row of softmax adds up to 1.0000"
    assert second.startswith("error 3: softmax: no variant for 'columns' = 2000; the least special")


def test_cpp(out: Path, tmp_path: Path) -> None:
    obj = str(tmp_path / "numbers.o")
    run_checked([*any_compiler(), *WARNINGS, "-c", str(out / "numbers.c"), "-o", obj])
    command = [*compiler("g++"), "-std=c++17", *WARNINGS, str(EXAMPLES / "main.cpp"), obj]
    run_checked([*command, f"-I{out}", "-o", str(tmp_path / "main"), *LIBRARIES])
    lines = run_checked([str(tmp_path / "main")], LD_LIBRARY_PATH=str(tmp_path)).splitlines()
    assert lines[0] == "1.5 + 1.5 = 3"
    assert lines[1:] in ([], ["no GPU (6): CUDA's driver (libcuda.so.1) is not installed"])


def test_rust(out: Path, tmp_path: Path) -> None:
    rustc = [*compiler("rustc"), "--edition", "2021", "-D", "warnings", "--out-dir", str(tmp_path)]
    library = str(out / "rust/src/lib.rs")
    run_checked([*rustc, "--crate-type", "rlib", "--crate-name", "numbers", library])
    used = f"numbers={tmp_path / 'libnumbers.rlib'}"
    run_checked([*rustc, str(EXAMPLES / "main.rs"), "--extern", used])
    assert run_checked([str(tmp_path / "main")]) == "4999 + 4999 = 9998\n"
