"""`tilewright opt`: tile IR in, passes, tile IR out."""

import io

import pytest

from tests.unit.tools.texts import SCALE
from tilewright.ir import parse_module, print_module
from tilewright.tools.cli import main


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scale.tile"
    path.write_text(SCALE)
    return str(path)


def test_without_passes_it_prints_what_it_read(file, capsys):
    assert main(["opt", file]) == 0
    assert capsys.readouterr().out == print_module(parse_module(SCALE))


def test_passes_run_in_order(file, capsys):
    assert main(["opt", file, "--passes", "canonicalize,dce"]) == 0
    out, err = capsys.readouterr()
    assert "%one" not in out
    assert "arith.mul %v, %factors" in out
    assert err == ""
    parse_module(out)


def test_reads_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(SCALE))
    assert main(["opt", "-"]) == 0
    assert "func @scale" in capsys.readouterr().out


def test_print_after_shows_every_pass_on_stderr(file, capsys):
    assert main(["opt", file, "--passes", "canonicalize,dce", "--print-after"]) == 0
    out, err = capsys.readouterr()
    assert "// after canonicalize on @scale\nfunc @scale" in err
    assert "// after dce on @scale: no change" in err
    assert "//" not in out


def test_print_after_named_passes_only(file, capsys):
    assert main(["opt", file, "--passes", "canonicalize,dce", "--print-after", "dce"]) == 0
    err = capsys.readouterr().err
    assert "after canonicalize" not in err
    assert "after dce" in err


def test_print_after_an_unknown_pass(file, capsys):
    assert main(["opt", file, "--passes", "dce", "--print-after", "dec"]) == 1
    assert "no pass is called dec" in capsys.readouterr().err


def test_times(file, capsys):
    assert main(["opt", file, "--passes", "canonicalize,dce", "--times"]) == 0
    err = capsys.readouterr().err
    assert "pass canonicalize" in err
    assert "pass dce" in err
    assert "rules fired" in err


def test_list_names_every_pass(capsys):
    assert main(["opt", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == sorted(names)
    assert {"canonicalize", "cse", "dce"} <= set(names)
    described = {line.split()[0] for line in lines if len(line.split()) > 2}
    assert {"canonicalize", "cse", "dce"} <= described


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "needs a FILE"),
        (["FILE", "--passes", "canonicalise"], "canonicalize"),
        (["FILE", "--passes", "unroll{speed=3}"], "no option 'speed' of the pass unroll"),
    ],
)
def test_mistakes(arguments, message, file, capsys):
    assert main(["opt", *[file if a == "FILE" else a for a in arguments]]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_invalid_ir_is_shown_with_the_mistake_under_its_op(tmp_path, capsys):
    path = tmp_path / "wrong.tile"
    path.write_text(SCALE.replace("%v, %one : tile<64xf32>", "%v, %one : tile<32xf32>"))
    assert main(["opt", str(path), "--passes", "canonicalize"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("wrong.tile holds invalid tile IR:")
    wrong = next(i for i, line in enumerate(lines) if "%same = " in line)
    assert "^ error: operands and results must have one shape" in lines[wrong + 1]


def test_a_binary_file(tmp_path, capsys):
    path = tmp_path / "kernel.tile"
    path.write_bytes(b"\xff\xfe\x00\x80")
    assert main(["opt", str(path)]) == 1
    assert "is not UTF-8 text" in capsys.readouterr().err
