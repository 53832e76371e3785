"""TILEWRIGHT_PERF: the map and the dump that Linux's perf reads."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.busy_kernel import BUSY
from tilewright.backends.cpu.driver.loaded_code import LoadedCode, code_listeners
from tilewright.backends.cpu.driver.perf_files import PerfFiles
from tilewright.support import operating_system

pytestmark = pytest.mark.skipif(not operating_system.IS_LINUX, reason="perf is Linux's")


def loaded() -> LoadedCode:
    """A kernel in memory, whose code lives as long as the process."""

    @tilewright.jit
    def double(x, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, mask=i < n) * 2.0, mask=i < n)

    found: list[LoadedCode] = []
    code_listeners.append(found.append)
    kept.append(double[(1,)](np.ones(8, "f"), 8, BLOCK=8))
    code_listeners.remove(found.append)
    return found[0]


kept: list[object] = []


def test_the_map_names_kernel_and_line(tmp_path: Path) -> None:
    code = loaded()
    files = PerfFiles(tmp_path)
    files.add(code)
    ((address, size, title),) = [line.split(" ", 2) for line in files.map.read_text().splitlines()]
    assert files.map.name == f"perf-{os.getpid()}.map"
    assert int(address, 16) == code.address
    assert int(size, 16) == code.table.functions["double"][1]
    assert title == f"double ({code.location})"


def test_the_dump_has_lines_and_code(tmp_path: Path) -> None:
    code = loaded()
    files = PerfFiles(tmp_path)
    files.add(code)
    data = files.dump.read_bytes()
    magic, version, start, _machine, _, pid = struct.unpack_from("=IIIIII", data)
    assert (magic, version, pid) == (0x4A695444, 1, os.getpid())
    records: dict[int, bytes] = {}
    while start < len(data):
        kind, size, _time = struct.unpack_from("=IIQ", data, start)
        assert size % 8 == 0
        records[kind] = data[start + 16 : start + size]
        start += size
    assert [*records] == [2, 0]  # perf wants the lines of a function before its code
    address, count = struct.unpack_from("=QQ", records[2])
    assert address == code.address
    assert count == sum(row.line > 0 for row in code.table.rows)
    _, line, _ = struct.unpack_from("=Qii", records[2], 16)
    assert line == next(row.line for row in code.table.rows if row.line)
    assert records[2][32:].startswith(__file__.encode() + b"\0")
    size = code.table.functions["double"][1]
    _, _, _, at, code_size, _ = struct.unpack_from("=IIQQQQ", records[0])
    assert (at, code_size) == (code.address, size)
    text = records[0][40 + len("double\0") :][:size]
    assert text == ctypes.string_at(code.address, size)


HEAD = "\nimport numpy as np, tilewright, tilewright.language as tl\n"
LAUNCHES = """for _ in range(40):
    busy[(256,)](x, BLOCK=1024)
"""


def run(tmp_path: Path, *before: str, **settings: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(HEAD + BUSY.format(package="tilewright") + LAUNCHES)
    command = [*before, sys.executable, str(script)]
    environment = {**os.environ, "TMPDIR": str(tmp_path), **settings}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_without_the_setting_nothing_is_written(tmp_path: Path) -> None:
    run(tmp_path)
    assert not list(tmp_path.glob("jit-*"))


def test_perf_shows_names_and_lines(tmp_path: Path) -> None:
    perf = shutil.which("perf")
    if perf is None or subprocess.run([perf, "stat", "-e", "cpu-clock", "true"]).returncode:
        pytest.skip("needs perf, and the right to use it")
    data, with_lines = tmp_path / "perf.data", tmp_path / "perf.jit.data"
    run(
        tmp_path, perf, "record", "-q", "-k", "mono", "-e", "cpu-clock", "-o", str(data),
        TILEWRIGHT_PERF="1",
    )  # fmt: skip

    def report(file: Path, *options: str) -> str:
        command = [perf, "report", "--stdio", "-i", str(file), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout

    assert f"busy ({tmp_path / 'script.py'}:4)" in report(data)
    inject = [perf, "inject", "--jit", "-i", str(data), "-o", str(with_lines)]
    subprocess.run(inject, check=True, capture_output=True, cwd=tmp_path)
    lines = report(with_lines, "--sort", "sym,srcline").splitlines()
    (first, *_) = [line.split() for line in lines if "busy" in line]
    assert first[2:] == ["busy", "script.py:9"]
