"""Line tables of object files: what `readelf` prints, and nothing for what is no such file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tilewright
import tilewright.language as tl
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, compile
from tilewright.llvm import line_table


@tilewright.jit
def scaled(x):
    return tl.exp(x) * 2.0


@tilewright.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, scaled(x), mask=i < n)


FIRST = kernel.fn.__code__.co_firstlineno
HELPER = scaled.fn.__code__.co_firstlineno


def obj(target: GPUTarget | None = None) -> bytes:
    types = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    return compile(ASTSource(kernel, types, {"BLOCK": 64}), target).asm["obj"]


@pytest.mark.parametrize("target", [None, GPUTarget("cpu", "aarch64", 1)], ids=["host", "aarch64"])
def test_rows_name_the_lines_of_kernel_and_helper(target: GPUTarget | None) -> None:
    table = line_table(obj(target), "kernel")
    assert table is not None
    begin, size = table.functions["kernel"]
    lines = {row.line for row in table.rows if begin <= row.offset < begin + size}
    assert {FIRST + 3, FIRST + 4, HELPER + 2} <= lines
    assert {row.file for row in table.rows if row.line} == {__file__}
    offsets = [row.offset for row in table.rows]
    assert offsets == sorted(offsets)
    assert table.rows[-1] == (begin + size, "", 0)


def test_an_offset_belongs_to_the_row_before_it() -> None:
    table = line_table(obj(), "kernel")
    assert table is not None
    for row, following in zip(table.rows, table.rows[1:], strict=False):
        if row.offset < following.offset:
            assert table.row_at(following.offset - 1).line == row.line  # type: ignore[union-attr]
    assert table.row_at(-1) is None


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf of binutils")
def test_rows_are_those_of_readelf(tmp_path: Path) -> None:
    data = obj()
    (tmp_path / "kernel.o").write_bytes(data)
    command = ["readelf", "--debug-dump=decodedline", "-W", str(tmp_path / "kernel.o")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\S+\s+(\d+|-)\s+(0x[0-9a-f]+|0)\b", printed, re.MULTILINE)
    expected = [(int(offset, 16), 0 if line == "-" else int(line)) for line, offset in found]
    table = line_table(data, "kernel")
    assert table is not None
    assert [(row.offset, row.line) for row in table.rows] == expected


def test_other_and_damaged_files_have_no_table() -> None:
    data = obj()
    assert line_table(b"", "kernel") is None
    assert line_table(b"MZ" + data[2:], "kernel") is None
    assert line_table(data, "other") is None
    for size in range(0, len(data), 97):
        assert line_table(data[:size], "kernel") is None


def test_without_line_tables_functions_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_LINE_INFO", "0")
    table = line_table(obj(), "kernel")
    assert table is not None
    assert table.rows == []
    assert table.functions["kernel"][1] > 0
