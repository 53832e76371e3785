"""Definitions of macros: mappings, texts as the shell has them, lists of values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.c import kernel
from tilewright.c.macro_values import definitions
from tilewright.support import errors, settings

ADD = """
__global__ void add(int N, TYPE *a, TYPE *b, TYPE *c) {
    int off[SIZE] = get_program_id(0) * SIZE + (0 ... SIZE);
    *?(off < N) (c + off) = *?(off < N) (a + off) + *?(off < N) (b + off);
}
"""


@pytest.mark.parametrize(
    "defines",
    [
        {"SIZE": [32, 64, 128, 256], "TYPE": "float"},
        {"SIZE": "[32, 64, 128, 256]", "TYPE": "float"},
        "-DSIZE=[32, 64, 128, 256] -DTYPE=float",
        "-D SIZE=[32,64,128,256]\n-DTYPE=float",
        ["SIZE=[32, 64, 128, 256]", "TYPE=float"],
        ["-DSIZE=[32, 64, 128, 256]", "-DTYPE=float"],
        ("-DSIZE=[32, 64, 128, 256] -DTYPE=float",),
    ],
    ids=repr,
)
def test_a_list_of_values_is_tuned_however_it_is_written(defines: Any, tmp_path: Path) -> None:
    with settings().cache.scope(dir=tmp_path):
        add = kernel(ADD, defines, warmup=0, rep=0)
        a, b, c = np.arange(300, dtype=np.float32), np.ones(300, np.float32), np.zeros(300)
        c = c.astype(np.float32)
        add[lambda chosen: (-(-300 // chosen["SIZE"]),)](300, a, b, c)
    sizes = {config.kwargs["SIZE"] for config in add.configs}
    assert sizes == {32, 64, 128, 256}
    np.testing.assert_array_equal(c, a + 1)


@pytest.mark.parametrize(
    ("defines", "expected"),
    [
        (None, {}),
        ("", {}),
        ("CHECKED", {"CHECKED": 1}),
        ("-DA -DB=", {"A": 1, "B": ""}),
        ("-DROWS=:, newaxis -DUSE=^a", {"ROWS": ":, newaxis", "USE": "^a"}),
        ("-DX=a -Dim", {"X": "a", "im": 1}),
        ("-DX=a-Db", {"X": "a-Db"}),
        ({"X": "[:, newaxis]"}, {"X": "[:, newaxis]"}),
        ({"X": "[0] + x[1]"}, {"X": "[0] + x[1]"}),
        ({"X": "[f(1, 2), (3, 4)]"}, {"X": ["f(1, 2)", "(3, 4)"]}),
        ({"X": (1, 2), "Y": None}, {"X": (1, 2), "Y": None}),
    ],
)
def test_definitions(defines: Any, expected: dict[str, object]) -> None:
    assert definitions(defines) == expected


@pytest.mark.parametrize("defines", ["3=4", ["A=1", 2], {"a b": 1}, {3: 1}, "=1", {"A": "[1,,2]"}])
def test_what_is_no_definition(defines: Any) -> None:
    with pytest.raises(errors.InvalidOption):
        definitions(defines)


@pytest.mark.parametrize("defines", ["-DA=[]", {"A": "[ ]"}, {"A": []}])
def test_a_list_needs_values(defines: Any) -> None:
    with pytest.raises(errors.EmptyDefine, match="'A'"):
        kernel("void k(float *p) { *p = A; }", defines)
