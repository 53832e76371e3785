"""The command itself: subcommands, mistakes without tracebacks, exit status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.support import TilewrightError
from tilewright.tools.cli import COMMANDS, main


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert f"    {command.name} " in text
        assert command.help in text


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_each_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"usage: tilewright {command}" in capsys.readouterr().out


def test_no_command_and_unknown_command_are_usage_errors(capsys):
    for arguments in ([], ["frobnicate"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
    assert "frobnicate" in capsys.readouterr().err


def test_a_mistake_is_told_without_a_traceback(capsys, tmp_path):
    file = tmp_path / "wrong.tile"
    file.write_text("func @f() {\n  cf.retrun\n}\n")
    assert main(["opt", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert f"{file}:2:3" in err
    assert "^^^^^^^^^" in err


def test_a_missing_file_is_told_in_words(capsys, tmp_path):
    assert main(["opt", str(tmp_path / "none.tile")]) == 1
    assert capsys.readouterr().err.endswith("none.tile: No such file or directory\n")


def test_debug_keeps_the_traceback(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    (tmp_path / "wrong.tile").write_text("func @f(")
    with pytest.raises(TilewrightError):
        main(["opt", str(tmp_path / "wrong.tile")])


def test_a_closed_pipe_ends_quietly():
    source = Path(__file__).parents[3] / "src"
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright.tools", "opt", "--list"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), *sys.path])},
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 1


def test_only_cc_loads_the_c_front_end():
    script = (
        "import sys; from tilewright.tools.cli import main; main(['env']); "
        "sys.exit(any(name in sys.modules for name in ('lark', 'pcpp')))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0
