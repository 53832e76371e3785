"""The catalogue of errors: a section for each code, whose example gives exactly the message that it
shows, and whose second example runs.
"""

import contextlib
import io
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.assembler import pinned_ptxas
from tilewright.support import TilewrightError, settings
from tilewright.tools import cli
from tilewright.tools.explain_error_command import error_classes, sections

FAMILIES = {"TW000", "TW100", "TW200", "TW300", "TW400", "TW510", "TW600", "TW901"}
"""Bases, and bugs of the compiler: nothing that a user writes."""
NOT_RUN = {"TW222", "TW223", "TW303", "TW306", "TW307", "TW308", "TW309"}
NOT_RUN |= {"TW511", "TW512", "TW513", "TW514", "TW515", "TW516", "TW517"}
"""Codes that need another installation, as their sections say."""
OWN_PROCESS = {"TW207", "TW220", "TW221", "TW224", "TW409"}
"""Examples that change the environment, the modules, or state of their process."""
FILE = "kernel.py"
PROGRAMS = [code for code in sections() if code not in FAMILIES | NOT_RUN]
PRELUDE = """import numpy as np
import tilewright
import tilewright.language as tl
from tilewright import jit

x = np.arange(1, 17, dtype=np.float32)
"""


def blocks(code: str) -> list[str]:
    """The failing program of a section, its message, and the program without the mistake."""
    return re.findall(r"^```\w+\n(.*?)^```$", sections()[code], flags=re.DOTALL | re.MULTILINE)


def example(code: str) -> str:
    """The failing program of a section."""
    return blocks(code)[0]


def test_every_code_has_a_section_and_every_section_a_code():
    assert list(sections()) == list(error_classes())


@pytest.mark.parametrize("code", sorted(set(sections()) - FAMILIES))
def test_sections_have_a_reason_a_mistake_and_a_remedy(code: str):
    text = sections()[code]
    assert re.match(r"[A-Z`][^\n]+\.\n\n```", text)
    assert "\n\nInstead: " in text
    assert len(blocks(code)) == (1 if code in NOT_RUN else 3)
    assert ("\nNot run: " in text) == (code in NOT_RUN)


@pytest.mark.parametrize("code", PROGRAMS)
def test_the_example_gives_exactly_the_message_of_its_section(code: str, tmp_path: Path):
    if code == "TW302":
        pinned_ptxas()
    source, message, _ = blocks(code)
    found, error = outcome(code, source, tmp_path)
    assert found == code, error
    lines = "\n".join(line.rstrip() for line in error.strip().splitlines())
    assert re.fullmatch(re.escape(message.strip()).replace(r"\.\.\.", "(?s:.*)"), lines), lines


@pytest.mark.parametrize("code", PROGRAMS)
def test_the_example_without_the_mistake_runs(code: str, tmp_path: Path):
    if code == "TW302":
        pinned_ptxas()
    assert outcome(code, blocks(code)[2], tmp_path) == ("", "")


def outcome(code: str, source: str, folder: Path) -> tuple[str, str]:
    """The code and the text of the error that a program ends with, if any."""
    if code in OWN_PROCESS:
        return _outcome_in_a_process(source, folder)
    try:
        run(source)
    except TilewrightError as error:
        return error.code, str(error)
    return "", ""


def _outcome_in_a_process(source: str, folder: Path) -> tuple[str, str]:
    file = folder / FILE
    file.write_text(source, "utf-8")
    start = f"""{PRELUDE}
import linecache, sys
source = open("{FILE}").read()
try:
    exec(compile(source, "{FILE}", "exec"))
except tilewright.TilewrightError as error:
    print(error, file=sys.stderr)
    print(error.code, end="")
else:
    print(end="")
"""
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=folder, env={**os.environ, "PYTHONPATH": _path()},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()[-1] if done.stderr else "", done.stderr


def _path() -> str:
    return os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry)


def run(source: str) -> None:
    """Run the program of a section, with the names that programs of the catalogue have."""
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    names: dict[str, Any] = {"tilewright": tilewright, "jit": tilewright.jit, "tl": tl, "np": np}
    names |= {"x": np.arange(1, 17, dtype=np.float32), "__name__": "kernel"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, FILE, "exec"), names)


def mistake_of(source: str) -> TilewrightError:
    """The error that a program ends with."""
    with pytest.raises(TilewrightError) as caught:
        run(source)
    return caught.value


IN_PYTHON = [f"TW{number}" for number in range(101, 128)]
WITHOUT_A_LINE = {"TW106", "TW116", "TW117", "TW118", "TW126"}
"""Found where a kernel is launched, or in sources that are no Python."""
ONLY_COMPILED = {"TW101", "TW106", "TW107", "TW109", "TW120"}
"""Python runs these, or has them on some paths only."""


@pytest.mark.parametrize("code", IN_PYTHON)
def test_mistakes_in_kernels_point_at_them_in_both_executions(code: str):
    source = example(code)
    texts: list[str] = []
    for interpret in (False, True)[: 1 + (code not in ONLY_COMPILED)]:
        with settings().interpreter.scope(enabled=interpret):
            texts.append(str(mistake_of(source)))
    assert len(set(texts)) == 1
    assert code in WITHOUT_A_LINE or re.search(r"-->.*\n.*\|\n.*\|.*\n.*\| +\^", texts[0])


def shown(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["explain-error", *words]) == 0
    return capsys.readouterr().out


def test_the_command_shows_a_section_and_lists_the_codes(capsys: pytest.CaptureFixture[str]):
    page = shown("tw103", capsys=capsys)
    assert page.startswith("TW103: A name that is neither") and "Instead: write the name" in page
    listed = shown(capsys=capsys)
    assert [line.split()[0] for line in listed.splitlines()] == list(error_classes())


def test_an_unknown_code_gets_a_suggestion(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["explain-error", "TW1033"]) != 0
    assert "did you mean 'TW133' or 'TW103'?" in capsys.readouterr().err
