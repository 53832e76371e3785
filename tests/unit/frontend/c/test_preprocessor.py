"""Macros, conditions and headers; macros that hold lists of tokens."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.unit.frontend.c.harness import run, text
from tilewright.c import CSource
from tilewright.frontend.semantics import FrontendOptions
from tilewright.ir import print_module
from tilewright.support import TilewrightWarning


def test_macros_with_and_without_arguments() -> None:
    before = """
        #define TWICE(x) ((x) + (x))
        #define FIRST(a, ...) a
        #define GLUE(a, b) a ## b
        #define NUMBER 20
    """
    out = np.zeros(1, np.int32)
    run("int GLUE(va, lue) = TWICE(NUMBER + 1); *a = value + FIRST(5, 6, 7);", out, before=before)
    assert out[0] == 47


def test_conditions() -> None:
    before = """
        #if defined(TM) && TM >= 64
        #define R 1
        #elif defined(OTHER)
        #define R 2
        #else
        #define R 3
        #endif
    """
    for defines, expected in (({"TM": 64}, 1), ({"TM": 32, "OTHER": 1}, 2), ({}, 3)):
        out = np.zeros(1, np.int32)
        run("*a = R;", out, before=before, defines=defines)
        assert out[0] == expected


def test_token_lists_as_shapes_subscripts_and_operands() -> None:
    source = """
        void k(float *p) {
            float x[SHAPE] = *(p + (0 ... 8)[ROWS] * 16 + (0 ... 16)[COLUMNS]);
            *(p + (0 ... 16)[ROWS] * 8 + (0 ... 8)[COLUMNS]) = USE;
        }
    """
    lowered = text(source, SHAPE="8,16", ROWS=":,newaxis", COLUMNS="newaxis,:", USE="^x")
    assert "tile.transpose" in lowered
    assert lowered == text(
        source, SHAPE=(8, 16), ROWS=": , newaxis", COLUMNS="newaxis, :", USE="^ x"
    )


def test_headers_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#pragma once\n#define SIZE 16\n")
    (tmp_path / "math.h").write_text('#include "sizes.h"\nint twice(int x) { return x + x; }\n')
    file = tmp_path / "kernel.c"
    file.write_text(
        '#include "math.h"\n#include "sizes.h"\n__global__ void k(int *p) { *p = twice(SIZE); }\n'
    )
    source = CSource(file)
    before = source.key()
    assert "value = 16" in print_module(source.lower(FrontendOptions()))
    (tmp_path / "sizes.h").write_text("#pragma once\n#define SIZE 32\n")
    assert CSource(file).key() != before


def test_comments_strings_and_continued_lines() -> None:
    out = np.zeros(1, np.int32)
    run("*a = 4 /* one \n more */ + \\\n 5; // the rest\n", out)
    assert out[0] == 9


def test_a_define_that_replaces_a_passed_value_warns() -> None:
    source = "#define BLOCK 256\nvoid k(int *p) { *p = BLOCK; }"
    with pytest.warns(TilewrightWarning, match="replaces the value of BLOCK") as caught:
        lowered = text(source, BLOCK=128)
    assert "value = 256" in lowered
    (shown,) = [str(one.message) for one in caught]
    assert "'256', not '128'" in shown
    assert "#ifndef BLOCK" in shown


@pytest.mark.parametrize(
    "source",
    [
        "#define BLOCK 128",
        "#ifndef BLOCK\n#define BLOCK 256\n#endif",
        "#undef BLOCK",
        "#define OTHER BLOCK",
    ],
)
def test_defaults_and_equal_values_warn_of_nothing(source: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text(source + "\nvoid k(int *p) { *p = 1; }", BLOCK=128)
    assert caught == []
