"""`tilewright explain`: the table, JSON, the only kernel of a file, and mistakes."""

import json
import sys

import pytest

from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import backend_named
from tilewright.llvm import host_cpu
from tilewright.tools.cli import main

pytestmark = needs_ptxas

ADD = "tilewright.kernels.elementwise:add_kernel"
TYPES = ["x_ptr=*fp32:16", "y_ptr=*fp32", "out_ptr=*fp32:16", "n=i32:16", "BLOCK=1024"]
FILL = """
import tilewright
import tilewright.language as tl

@tilewright.jit
def doubled(x):
    return x * 2

@tilewright.jit
def fill(out, value, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), doubled(value))
"""


def test_a_table_with_reasons_and_resources(capsys):
    assert main(["explain", ADD, *TYPES, "--target", "sm_90"]) == 0
    out = capsys.readouterr().out
    assert "elementwise.py:" in out and "tl.load(y_ptr" in out
    assert "ld.global.v4.b32" in out and "(y_ptr as a multiple of 1)" in out
    assert "add_kernel on sm_90: 4 warps" in out


def test_json_for_programs(capsys):
    assert main(["explain", ADD, *TYPES, "--target", "sm_80", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["kernel"] == "add_kernel" and made["target"] == "sm_80"
    assert [row["op"] for row in made["rows"]][-1] == "store"
    assert made["rows"][0]["loc"].rpartition(":")[0].endswith("elementwise.py")
    assert made["bound"] is None


def test_the_work_of_a_launch(capsys):
    words = ["--size", "n=1048576", "--grid", "1024", "--target", "sm_80"]
    assert main(["explain", ADD, *TYPES, *words]) == 0
    assert "12.58 MB distinct" in capsys.readouterr().out


def test_the_only_kernel_of_a_file_needs_no_name(tmp_path, capsys):
    path = tmp_path / "explained.py"
    path.write_text(FILL)
    arguments = ["out=*fp32:16", "value=fp32", "BLOCK=512", "--target", "sm_90"]
    assert main(["explain", str(path), *arguments]) == 0
    out = capsys.readouterr().out
    assert "fill on sm_90" in out and "explained.py:11" in out


def test_options_change_what_is_explained(capsys):
    words = ["--option", "num_warps=8", "--target", "sm_90"]
    assert main(["explain", ADD, *TYPES, *words]) == 0
    assert "8 warps" in capsys.readouterr().out


def test_several_kernels_are_listed(tmp_path, capsys):
    path = tmp_path / "two.py"
    path.write_text(FILL + FILL.replace("def fill", "def fill_again"))
    assert main(["explain", str(path), "--target", "sm_90"]) == 1
    assert "its kernels are: fill, fill_again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "n=4"], "--size needs --grid"),
        (["--size", "n=x", "--grid", "1"], "--size n takes an integer, found 'x'"),
        (["--size", "N=4", "--grid", "1"], "there is no argument 'N' of add_kernel"),
        (["--grid", "1,a"], "--grid takes one to three integers, found '1,a'"),
    ],
)
def test_mistakes(words, message, capsys):
    assert main(["explain", ADD, *TYPES, "--target", "sm_90", *words]) == 1
    assert message in capsys.readouterr().err


def test_without_a_target_the_kernel_is_explained_for_this_machine(monkeypatch, capsys):
    cpu = backend_named("cpu")
    monkeypatch.setattr(sys.modules["tilewright.compiler.compile"], "default_backend", lambda: cpu)
    assert main(["explain", ADD, *TYPES]) == 0
    out = capsys.readouterr().out
    assert f"add_kernel on {host_cpu().name}" in out and "contiguous lanes" in out


def in_terminal(monkeypatch, capsys, *words):
    """The output in a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("target", ["cpu", "sm_80", "sm_90"])
def test_at_80_columns_no_line_is_longer_and_no_column_is_empty(target, monkeypatch, capsys):
    narrow = in_terminal(monkeypatch, capsys, ADD, *TYPES, "--target", target)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "conflicts" not in narrow.splitlines()[0]
    assert "store 1024xf32" in narrow


def test_advice_has_lines_of_its_own(monkeypatch, capsys):
    narrow = in_terminal(monkeypatch, capsys, ADD, *TYPES, "--target", "sm_90")
    first = "    why not better: addresses are known to be multiples of 4 bytes only (y_ptr"
    assert f"{first}\n      as a multiple of 1)\n" in narrow


def test_in_a_pipe_no_text_is_folded(capsys):
    assert main(["explain", ADD, *TYPES, "--target", "sm_90"]) == 0
    out = capsys.readouterr().out
    assert "of 4 bytes only (y_ptr as a multiple of 1)\n" in out
    assert all(line == line.rstrip() and "\x1b" not in line for line in out.splitlines())


def test_the_code_of_an_error_shows_its_page(capsys):
    assert main(["explain", "tw104"]) == 0
    page = capsys.readouterr().out
    assert main(["explain-error", "TW104"]) == 0
    assert page.startswith("TW104: ") and page == capsys.readouterr().out
    assert main(["explain", "TW9999"]) == 1
    assert "TW9999" in capsys.readouterr().err
