"""`tilewright inspect`: the file, its size, sources of tile IR, and mistakes."""

from pathlib import Path

import pytest

from tests.unit.inspector.test_inspect_kernel import data_of
from tilewright.tools.cli import main

ADD = "tilewright.kernels.elementwise:add_kernel"
TYPES = ["x_ptr=*fp32:16", "y_ptr=*fp32", "out_ptr=*fp32:16", "n=i32:16", "BLOCK=1024"]


def test_the_page_is_written_and_its_size_printed(tmp_path: Path, capsys):
    file = tmp_path / "add.html"
    assert main(["inspect", ADD, *TYPES, "--target", "cpu", "-o", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: {file.stat().st_size / 1e3:.0f} kB\n"
    assert data_of(file)["kernel"] == "add_kernel"


def test_without_a_file_the_page_is_named_for_the_kernel(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["inspect", ADD, *TYPES, "--target", "cpu"]) == 0
    assert capsys.readouterr().out.startswith("add_kernel.html: ")


def test_the_sizes_of_a_launch_give_a_roofline(tmp_path: Path):
    file = tmp_path / "add.html"
    words = ["--size", "n=65536", "--grid", "64", "--seconds", "0.001", "-o", str(file)]
    assert main(["inspect", ADD, *TYPES, *words]) == 0
    data = data_of(file)
    assert data["explanation"]["bound"]["distinct"] == 12 << 16 and data["seconds"] == 0.001


def test_a_file_of_tile_ir_is_inspected(tmp_path: Path):
    path, file = tmp_path / "one.tile", tmp_path / "one.html"
    path.write_text("""func @one(%p: ptr<f32>) {
  %x = arith.constant {value = 1.0} : f32
  mem.store %p, %x
  cf.return
}
""")
    assert main(["inspect", str(path), "--target", "cpu", "-o", str(file)]) == 0
    data = data_of(file)
    assert data["error"] is None and len(data["panes"]) >= 3


def test_a_kernel_with_a_mistake_gets_its_page(tmp_path: Path, capsys):
    path, file = tmp_path / "wrong_kernel.py", tmp_path / "wrong.html"
    path.write_text("""import tilewright
import tilewright.language as tl

@tilewright.jit
def wrong(x_ptr):
    tl.store(x_ptr, missing)
""")
    assert main(["inspect", str(path), "x_ptr=*fp32", "--target", "cpu", "-o", str(file)]) == 1
    assert "'missing'" in data_of(file)["error"]
    said = capsys.readouterr()
    assert "wrong.html" in said.out and "the kernel does not compile, as the page shows" in said.err
    assert "'missing'" in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seconds", "1"], "--seconds needs --grid"),
        (["--size", "n=4"], "--size needs --grid"),
        (["-o", "/nowhere/k.html"], "cannot write /nowhere/k.html"),
        (["--option", "num_warp=8"], "there is no option 'num_warp' of the backend cpu"),
        (["--target", "sm_9"], "no backend serves target 'cuda:9'"),
        (["--size", "m=4", "--grid", "1"], "there is no argument 'm' of add_kernel"),
    ],
)
def test_mistakes(words: list[str], message: str, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["inspect", ADD, *TYPES, "--target", "cpu", *words]) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_measured_time_is_a_number_of_seconds(seconds: str, capsys):
    with pytest.raises(SystemExit):
        main(["inspect", ADD, *TYPES, "--grid", "1", "--seconds", seconds])
    assert f"expected seconds, more than 0, found '{seconds}'" in capsys.readouterr().err
