"""`tilewright demo`: the table, its files, and that a wrong result is found."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tilewright import kernels
from tilewright.tools import demo_command
from tilewright.tools.cli import main

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def only_softmax(monkeypatch):
    """One case, and less time for each measurement."""
    monkeypatch.setattr(demo_command, "CASES", (demo_command._softmax_case,))
    do_bench = demo_command.do_bench
    briefly = {"warmup": 1, "rep": 10}
    monkeypatch.setattr(
        demo_command, "do_bench", lambda call, **words: do_bench(call, **{**words, **briefly})
    )
    monkeypatch.setenv("COLUMNS", "80")


def test_table_and_json(only_softmax, tmp_path, capsys):
    file = tmp_path / "demo_command.json"
    assert main(["demo", "--json", str(file)]) == 0
    assert re.search(r"fused softmax +4096x1024 +cpu +\d\.\de-0[78]", capsys.readouterr().out)
    (row,) = json.loads(file.read_text())
    assert row["correct"] is True
    assert 0 < row["error"] < 1e-5
    assert row["unit"] == "GB/s"
    assert row["rate"] / row["peer_rate"] == pytest.approx(row["ratio"])


def test_a_wrong_result_exits_with_1(only_softmax, monkeypatch, capsys):
    def slightly_wrong(x, out):
        np.divide(1.0, x.shape[1], out=out)
        out[-1, -1] *= 1.001

    monkeypatch.setattr(kernels, "softmax", slightly_wrong)
    assert main(["demo"]) == 1
    assert "WRONG" in capsys.readouterr().out


def test_a_result_that_becomes_wrong_later_is_found(only_softmax, monkeypatch):
    calls = []

    def wrong_in_the_end(x, out):
        calls.append(1)
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        out[:] = e / e.sum(axis=1, keepdims=True) if len(calls) == 1 else 0

    monkeypatch.setattr(kernels, "softmax", wrong_in_the_end)
    assert main(["demo"]) == 1


def test_a_kernel_that_leaves_elements_alone_is_wrong(only_softmax, monkeypatch):
    monkeypatch.setattr(kernels, "softmax", lambda x, out: out)
    assert main(["demo"]) == 1


@pytest.mark.dev("matplotlib")
def test_plots(tmp_path):
    row = demo_command.Row("add", "64", "cpu", 0.0, 10.0, "GB/s", "numpy", 5.0, 2.0, True)
    demo_command.plot([row], tmp_path / "plots")
    (png,) = (tmp_path / "plots").iterdir()
    assert png.name == "demo-gb-per-s.png"
    assert png.read_bytes().startswith(b"\x89PNG")


def test_plot_without_matplotlib_fails_before_anything_is_measured(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo_command, "find_spec", lambda name: None)
    monkeypatch.setattr(demo_command, "measure_all", lambda makers: pytest.fail("it measured"))
    assert main(["demo", "--plot", str(tmp_path)]) == 1
    assert "pip install 'tilewright[plot]'" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_fails_before_anything_is_measured(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(demo_command, "measure_all", lambda makers: pytest.fail("it measured"))
    assert main(["demo", "--json", str(tmp_path / "none" / "demo_command.json")]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_the_table_fits_80_columns():
    rows = [
        demo_command.Row("matmul+leaky ReLU", "1024^3", "cpu", 1.9e-6, 1366.34, "GFLOP/s", "numpy",
                 1191.45, 11.91, True),
        demo_command.Row("transpose", "4096x4096", "cpu", 0.0, 1045.03, "GB/s", "torch", 1052.0,
                 0.87, False),
    ]  # fmt: skip
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(demo_command.table_of(rows))
    lines = console.export_text().splitlines()
    body = [line for line in lines if line.startswith(("matmul", "transpose"))]
    assert len(body) == 2
    assert "…" not in "".join(lines)
    assert body[0].split()[-1] == "11.91"
    assert body[1].split()[-1] == "WRONG"


def test_runs_without_torch_and_matplotlib(tmp_path):
    """In a process that has neither; the whole command, on one small case."""
    script = tmp_path / "demo_command.py"
    script.write_text(
        "import sys, importlib.util\n"
        "real = importlib.util.find_spec\n"
        "absent = ('torch', 'matplotlib', 'pandas')\n"
        "importlib.util.find_spec = lambda n, *a: None if n in absent else real(n, *a)\n"
        "for name in absent: sys.modules[name] = None\n"
        "from tilewright.tools import cli; from tilewright.tools import demo_command as demo\n"
        "from tilewright.runtime.bench import cpu_caches\n"
        "cpu_caches.read_caches = lambda: ()\n"
        "demo.CASES = demo.CASES[1:2]\n"
        "sys.exit(cli.main(['demo']))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), *sys.path])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "numpy" in done.stdout
    assert done.stderr == ""
