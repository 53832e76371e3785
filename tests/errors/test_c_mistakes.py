"""Mistakes in Triton-C: each has a place, a caret, the macros that it comes from, and a hint."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.errors.c_mistakes import shown, without_gutters
from tilewright.c import kernel
from tilewright.support import errors
from tilewright.tools.cli import main

CATALOGUE = Path(__file__).with_name("c_mistakes.txt")
"""Sections of "=== name {macros}", a source, "---", and the error without places."""

MISTAKES = {
    head.split()[0]: (json.loads(head.partition(" ")[2] or "{}"), *rest.split("\n---\n"))
    for section in CATALOGUE.read_text("utf-8").split("=== ")[1:]
    for head, rest in [section.rstrip().split("\n", 1)]
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    defines, source, error = MISTAKES[name]
    assert shown(source, defines) == error


KERNEL = "__global__ void k(float *p, int n __multipleof(8)) { *(p + 0 ... N) = n; }"


def test_a_kernel_that_does_not_exist() -> None:
    with pytest.raises(errors.KernelNotFound) as caught:
        kernel(KERNEL, {"N": 16}, name="kk")
    assert without_gutters(str(caught.value)) == (
        "there is no kernel 'kk' in <triton-c> [TW143]\n  hint: did you mean 'k'?"
    )


def test_a_file_that_does_not_exist() -> None:
    with pytest.raises(errors.SourceNotAvailable, match="No such file"):
        kernel("missing_kernel.c")


def test_arguments_that_do_not_fit_the_declaration() -> None:
    k = kernel(KERNEL, {"N": 16})
    array = np.zeros(16, np.float32)
    k[(1,)](array, 8)
    assert (array == 8).all()
    with pytest.raises(errors.UnsupportedArgument, match="'n' is a value 9, declared to be a mult"):
        k[(1,)](array, 9)
    with pytest.raises(errors.UnsupportedArgument, match=r"'p' is a double array"):
        k[(1,)](array.astype(np.float64), 8)
    with pytest.raises(errors.UnsupportedArgument, match="too large for int"):
        k[(1,)](array, 1 << 40)
    with pytest.raises(errors.UnsupportedArgument, match="'p' is a float"):
        k[(1,)](3.5, 8)
    with pytest.raises(errors.UnsupportedArgument, match="'n' is a value 8.5"):
        k[(1,)](array, 8.5)
    with pytest.raises(errors.MissingArgument, match="'n'"):
        k[(1,)](array)


def test_macros_that_change_the_parameters_cannot_be_tuned() -> None:
    source = "__global__ void k(TYPE *p) { *p = 1; }"
    k = kernel(source, {"TYPE": ["float", "half"]})
    with pytest.raises(errors.InvalidOption, match="another type for 'p'"):
        k.base_fn.warmup(np.zeros(1, np.float32), TYPE="half", grid=(1,))


def test_values_that_are_no_definitions() -> None:
    with pytest.raises(errors.InvalidOption, match="a number, a string, a dtype"):
        kernel(KERNEL, {"N": {}})
    with pytest.raises(errors.InvalidOption, match="names of macros"):
        kernel(KERNEL, {"N M": 3})
    with pytest.raises(errors.InvalidOption, match="num_warps"):
        kernel(KERNEL, {"N": 16}, num_warps=[])


def test_mistakes_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kernel.c"
    file.write_text(KERNEL)
    for words, expected in (
        ([], "'N' is neither declared nor defined"),
        (["-DN=16", "--kernel", "q"], "there is no kernel 'q'"),
        (["-D1=2"], "-D takes NAME or NAME=TEXT"),
        (["-DN=16", "--emit", "nothing"], "--emit takes one of"),
        (["-DN=16", "--multiple", "m=16"], "has no parameter 'm'"),
        (["-DN=16", "--multiple", "n=x"], "a positive number"),
    ):
        assert main(["cc", str(file), *words]) == 1
        printed = capsys.readouterr().err
        assert expected in printed and "Traceback" not in printed
    assert main(["cc", str(file), "-DN=16", "--multiple", "n=16", "--emit", "llir"]) == 0
    assert "define" in capsys.readouterr().out
