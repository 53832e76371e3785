"""The catalogue of mistakes: each code has a section, and its example makes that mistake."""

import contextlib
import io
import linecache
import re
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support import TilewrightError, settings
from tilewright.tools import cli
from tilewright.tools.explain_error_command import error_classes, sections

FAMILIES = {"TW000", "TW100", "TW200", "TW300", "TW400", "TW901"}
"""Bases, and bugs of the compiler: nothing that a user writes."""


def example(code: str) -> str | None:
    """The example of a section that can be run here."""
    found = re.search(r"```python\n(.*?)```", sections()[code], flags=re.DOTALL)
    return None if found is None else found[1]


def test_every_code_has_a_section_and_every_section_a_code():
    assert list(sections()) == list(error_classes())


@pytest.mark.parametrize("code", sorted(set(sections()) - FAMILIES))
def test_sections_show_the_mistake_and_what_to_do_instead(code: str):
    text = sections()[code]
    assert "```" in text and "\nInstead: " in text


@pytest.mark.parametrize("code", [code for code in sections() if example(code) is not None])
def test_examples_make_the_mistake(code: str):
    error = mistake_of(code, example(code) or "")
    assert error.code == code, str(error)


def mistake_of(code: str, source: str) -> TilewrightError:
    """The error that an example ends with."""
    file = f"<example of {code}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"tilewright": tilewright, "jit": tilewright.jit, "tl": tl, "np": np}
    names |= {"x": np.arange(1, 17, dtype=np.float32), "__name__": f"example_{code}"}
    with pytest.raises(TilewrightError) as caught, contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, file, "exec"), names)
    return caught.value


IN_PYTHON = [f"TW{number}" for number in range(101, 128)]
WITHOUT_A_LINE = {"TW106", "TW116", "TW117", "TW118", "TW126"}
"""Found where a kernel is launched, or in sources that are no Python."""
ONLY_COMPILED = {"TW101", "TW106", "TW107", "TW109", "TW120"}
"""Python runs these, or has them on some paths only."""


@pytest.mark.parametrize("code", IN_PYTHON)
def test_mistakes_in_kernels_point_at_them_in_both_executions(code: str):
    source = example(code) or ""
    texts: list[str] = []
    for interpret in (False, True)[: 1 + (code not in ONLY_COMPILED)]:
        with settings().interpreter.scope(enabled=interpret):
            texts.append(str(mistake_of(code, source)))
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
