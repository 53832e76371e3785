"""`tilewright profile`: a script with arguments, its trace, and the table of lines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.busy_kernel import BUSY
from tilewright.backends.cpu.driver.sampler import Sampler
from tilewright.tools.cli import main, parse

HEAD = """
import sys, time
import numpy as np
import triton
import triton.language as tl
"""
LAUNCHES = """busy[(1,)](x, BLOCK=1024)  # compiled before the time counts
end = time.process_time() + 1
while time.process_time() < end:
    busy[(256,)](x, BLOCK=1024)
print("arguments", sys.argv[1:])
if "fail" in sys.argv:
    raise ValueError("mine")
sys.exit(3 if "exit" in sys.argv else 0)
"""


def profile(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(HEAD + BUSY.format(package="triton") + LAUNCHES)
    command = [
        sys.executable, "-m", "tilewright", "profile", "-o", str(tmp_path / "t.json"), "--top", "3",
        str(script), *arguments,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not Sampler.is_available(), reason="needs Linux on x86 or ARM")
def test_a_script_gets_a_trace_and_a_table(tmp_path: Path) -> None:
    done = profile(tmp_path, "-o", "x", "--steps", "3")
    assert (done.returncode, done.stderr) == (0, "")
    said, head, top, *rest = done.stdout.splitlines()
    assert said == "arguments ['-o', 'x', '--steps', '3']"
    assert head.split() == ["share", "ms", "line", "source"]
    share, milliseconds, place, source = top.split(maxsplit=3)
    assert float(share.rstrip("%")) > 60
    assert float(milliseconds.replace(",", "")) > 200
    assert (place, source.strip()) == ("script.py:12", "a = tl.sin(a) + 1.0")
    assert re.fullmatch(r"[\d.e-]+ s in kernels, [\d.e-]+ s of CPU time in other code", rest[-3])
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert rest[-1].startswith(f"{len(events) - 1} events are in {tmp_path / 't.json'}")
    launches = [event for event in events if event.get("cat") == "launch"]
    assert launches[0]["name"] == f"busy ({tmp_path / 'script.py'}:7)"


@pytest.mark.parametrize(("word", "status"), [("exit", 3), ("fail", 1)])
def test_the_report_comes_after_exits_and_errors(tmp_path: Path, word: str, status: int) -> None:
    done = profile(tmp_path, word)
    assert done.returncode == status
    assert "s in kernels" in done.stdout
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    frames = re.findall(r"File \"(.*)\"", done.stderr)
    assert frames == ([str(tmp_path / "script.py")] if word == "fail" else [])


def test_a_trace_that_cannot_be_written_is_reported_first(tmp_path, capsys) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise ValueError('not run')")
    assert main(["profile", "-o", str(tmp_path / "no" / "t.json"), str(script)]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_options_of_the_script_are_its_own() -> None:
    chosen = parse(["profile", "--ranges", "--top", "2", "file.py", "--top", "9", "-o", "x"])
    assert (chosen.ranges, chosen.top, chosen.file) == (True, 2, "file.py")
    assert json.loads(chosen.arguments) == ["--top", "9", "-o", "x"]


@pytest.mark.parametrize("option", [["--out", "x"], ["--out=x"], ["-ox"]])
def test_forms_of_options_are_those_of_argparse(option: list[str]) -> None:
    chosen = parse(["profile", *option, "file.py", "--output", "y"])
    assert (str(chosen.output), chosen.file) == ("x", "file.py")
    assert json.loads(chosen.arguments) == ["--output", "y"]


def test_a_script_has_no_name_of_a_kernel(tmp_path: Path, capsys) -> None:
    script = tmp_path / "script.py"
    script.write_text("")
    assert main(["profile", f"{script}:kernel"]) == 1
    assert f"the whole script is run: pass {script}" in capsys.readouterr().err
