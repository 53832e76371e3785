"""`tilewright cc`: macros, stages, targets, several kernels."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tilewright.tools.cli import main

SOURCE = """
#include "sizes.h"
__global__ void fill(TYPE *p, int n) { *(p + 0 ... TM) = n + EXTRA; }
#ifdef TWO
__global__ void other(float *p) { *p = 1; }
#endif
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "sizes.h").write_text("#ifndef EXTRA\n#define EXTRA 2\n#endif\n")
    path = tmp_path / "fill.c"
    path.write_text(SOURCE)
    return path


def cc(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What the command prints."""
    status = main(["cc", *map(str, words)])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return printed.out


def test_standard_input_is_a_source_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("__global__ void one(float *p) { *p = 1; }"))
    assert "func @one(%p: ptr<f32>)" in cc(capsys, "-", "--emit", "source")


@pytest.mark.parametrize(
    ("target", "stage", "expected"),
    [
        ("sm_90", "ptx", ".target sm_90"), ("sm_90", "llir", "nvptx64"), ("cpu", "asm", ".globl"),
        ("cpu", "llir", "define"), ("sm_90", "ttir", "func @fill(%p: ptr<f16>, %n: i32)"),
    ],
)  # fmt: skip
def test_each_target_and_stage(
    file: Path, capsys: pytest.CaptureFixture[str], target: str, stage: str, expected: str
) -> None:
    macros = ("-DTM=64", "-DTYPE=half")
    assert expected in cc(capsys, file, *macros, "--target", target, "--emit", stage)


def test_macros_promises_options_and_output(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (file, "-D", "TM=16", "-DTYPE=unsigned char", "-DEXTRA=5", "-DUNUSED")
    found = cc(capsys, *words, "--multiple", "n=8", "--multiple", "p=32")
    assert "%p: ptr<u8> {aligned = 32}, %n: i32 {multiple_of = 8}" in found
    assert "value = 5" in found and "end = 16" in found
    out = tmp_path / "fill.ptx"
    ptx = ("--target", "sm_90", "--emit", "ptx")
    assert cc(capsys, *words, *ptx, "--option", "num_warps=2", "-o", out) == ""
    assert ".reqntid 64" in out.read_text() or ".maxntid 64" in out.read_text()


def test_one_of_several_kernels(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(file), "-DTM=16", "-DTYPE=float", "-DTWO"]
    assert "func @other(" in cc(capsys, *words, "--kernel", "other")
    assert main(["cc", *words]) == 1
    assert "several kernels: 'fill', 'other'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["-DTM=[32, 64]"], ["-DTM=[32,", "64]"], ["-D", "TM=[32,", "64]"]], ids=str
)
def test_a_list_of_values_makes_a_variant_for_each(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    printed = cc(capsys, *words, file, "-DTYPE=[float,half]", "--emit", "source")
    parts = printed.split("// TM=")[1:]
    assert [part.splitlines()[0] for part in parts] == [
        "32 TYPE=float", "32 TYPE=half", "64 TYPE=float", "64 TYPE=half"
    ]  # fmt: skip
    assert "tile<64xptr<f16>>" in parts[3] and "tile<32xptr<f32>>" in parts[0]
    output = tmp_path / "fill.ptx"
    cc(capsys, file, "-DTYPE=float", *words, "--target", "sm_90", "--emit", "ptx", "-o", output)
    written = sorted(path.name for path in tmp_path.glob("fill-*"))
    assert written == ["fill-TM=32.ptx", "fill-TM=64.ptx"]
    assert ".target sm_90" in (tmp_path / "fill-TM=64.ptx").read_text()


def test_lists_in_comments_of_each_stage(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    macros = ("-DTYPE=float", "-DTM=[32,64]")
    assert cc(capsys, file, *macros, "--target", "cpu", "--emit", "llir").count("; TM=") == 2
    assert cc(capsys, file, *macros, "--target", "cpu", "--emit", "asm").count("# TM=") == 2
    assert main(["cc", str(file), "-DTYPE=float", "-DTM=[]"]) == 1
    assert "the list of values for 'TM' is empty" in capsys.readouterr().err
    assert main(["cc", str(file), "-DTYPE=float", "-DTM=[32,"]) == 1
    assert "unbalanced" in capsys.readouterr().err
