"""The command itself: subcommands, mistakes without tracebacks, exit status."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright.support import TilewrightError
from tilewright.tools import cli, env_command
from tilewright.tools.cli import COMMANDS, main


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert f"    {command.name} " in text.replace("\n", " ")
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


@pytest.mark.parametrize("command", ["cc", "compile", "opt", "run", "demo"])
def test_an_unknown_option_is_named_before_missing_arguments(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--frobnicate", "-q"])
    assert stop.value.code == 2
    assert "unrecognized arguments: --frobnicate -q" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["inspect", "k.py:k", "--targt", "sm_90"], "--targt; did you mean '--target'?"),
        (["explain", "k.py:k", "--jsn"], "--jsn; did you mean '--json'?"),
        (["profile", "--rang", "--ranged", "k.py"], "--ranged; did you mean '--ranges'?"),
        (["tuning", "list", "--jsonn=1"], "--jsonn=1; did you mean '--json'?"),
        (["tuning", "list", "-q"], "unrecognized arguments: -q\n"),
    ],
)
def test_an_unknown_option_is_compared_with_those_of_the_command(words, message, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err


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


def test_options_and_positions_may_be_mixed(capsys):
    arguments = ["tilewright.kernels.elementwise:add_kernel", "x_ptr=*fp32", "y_ptr=*fp32"]
    more = ["out_ptr=*fp32", "n=i32", "BLOCK=32"]
    orders = [
        ["compile", *arguments, *more, "--emit", "source"],
        ["compile", "--emit", "source", *arguments, *more],
        ["compile", *arguments, "--emit", "source", *more],
    ]
    texts: list[str] = []
    for order in orders:
        assert main(order) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0].startswith("func @add_kernel(")
    assert len(set(texts)) == 1


def test_version_names_what_a_report_needs(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"tilewright {tilewright.__version__} (llvmlite 0.")
    assert platform.python_version() in text


def test_an_interrupt_is_told_without_a_traceback(capsys, monkeypatch):
    def interrupted(chosen: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(env_command, "run", interrupted)
    monkeypatch.setattr(cli, "COMMANDS", (cli.command_of("env", "settings", env_command),))
    assert main(["env"]) == 130
    assert capsys.readouterr() == ("", "tilewright: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["opt", "--passes", "csee", "-"], "there is no pass 'csee'"),
        (["pipeline", "--target", "sparc"], "no backend serves the target 'sparc'"),
        (["compile", "no.such.module:k"], "there is no module 'no.such.module'"),
        (["compile", "none.py:k"], "there is no file none.py"),
    ],
)
def test_names_that_stand_for_nothing_are_said_to(arguments, message, capsys):
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


def test_debug_keeps_the_traceback(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    (tmp_path / "wrong.tile").write_text("func @f(")
    with pytest.raises(TilewrightError):
        main(["opt", str(tmp_path / "wrong.tile")])


def test_a_closed_pipe_ends_quietly():
    source = Path(__file__).parents[3] / "src"
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright", "opt", "--list"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), *sys.path])},
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 1


NO_TEXT = b"\xff\xfe\x00func"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "bad.tile"], "bad.tile is not UTF-8 text"),
        (["compile", "bad.llir"], "bad.llir is not UTF-8 text"),
        (["compile", "bad.py"], "bad.py is a file of Python kernels: name one, as in"),
        (["compile", "bad.py:k"], "bad.py is not Python source\n"),
        (["compile", "null.py:k"], "null.py is not Python source\n"),
        (["compile", "wrong.py:k"], "def k(:\n"),
        (["opt", "bad.tile"], "bad.tile is not UTF-8 text"),
        (["run", "bad.tile"], "bad.tile is not UTF-8 text"),
        (["cc", "bad.c"], "the source of 'bad.c' is not available"),
        (["run-script", "bad.py"], "bad.py is not Python source\n"),
        (["run-script", "wrong.py"], "SyntaxError: "),
    ],
)
def test_sources_that_are_none(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("bad.tile", "bad.llir", "bad.py", "bad.c"):
        Path(name).write_bytes(NO_TEXT)
    Path("null.py").write_text("x = 1\0")
    Path("wrong.py").write_text("def k(:\n")
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


SHELL = pytest.mark.skipif(os.name == "nt", reason="no POSIX shell")
COMMAND = f"'{sys.executable}' -m tilewright"


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "none.tile").write_text("func @k() {\n  cf.return\n}\n")
    source = Path(__file__).parents[3] / "src"
    return subprocess.run(
        ["sh", "-c", command.replace("tilewright", COMMAND, 1)],
        capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), *sys.path]),
             "TILEWRIGHT_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip


@SHELL
@pytest.mark.parametrize(
    "words",
    ["cache list", "cache path", "cache list --json", "env", "pipeline", "opt none.tile",
     "compile none.tile", "explain-error TW901", "--version"],
)  # fmt: skip
def test_a_closed_output_is_no_mistake(words, tmp_path):
    done = shell(f"tilewright {words} >&-", tmp_path)
    assert (done.returncode, done.stderr) == (0, "") or words == "--version"
    assert "Traceback" not in done.stderr


@SHELL
def test_other_closed_streams(tmp_path):
    done = shell("tilewright run - <&-", tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    done = shell("tilewright opt wrong.tile 2>&-", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@SHELL
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_told_once(tmp_path):
    done = shell("tilewright pipeline > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "tilewright: [Errno 28] No space left on device\n"


def test_only_cc_loads_the_c_front_end():
    script = (
        "import sys; from tilewright.tools.cli import main; main(['env']); "
        "sys.exit(any(name in sys.modules for name in ('lark', 'pcpp')))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0
