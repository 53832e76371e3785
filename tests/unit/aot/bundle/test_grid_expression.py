"""Grids in C compute what Python does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.aot.bundle.c_programs import any_compiler, run_checked
from tilewright import aot, cdiv
from tilewright.aot.bundle.grid_expression import grid_in_c
from tilewright.support import errors

HEADER = Path(aot.__file__ or "").with_name("bundle") / "grid_arithmetic.h"
EXPRESSIONS = [
    "cdiv(n, BLOCK)", "-n // 7", "n % BLOCK", "n % -BLOCK", "(n + 1) * m - BLOCK", "min(n, m, 3)",
    "max(n, -m)", "n // m", "n % m", "triton.cdiv(n, 3)", "cdiv(n, m) * cdiv(m, BLOCK)",
    "n * n * n * n", "n + 4611686018427387903 + 4611686018427387903",
]  # fmt: skip
VALUES = [(0, 1), (5, 3), (-5, 3), (5, -3), (-6, -3), (2**31 - 1, 2**31 - 1), (7, 0)]
INVALID = -(2**63)


def python_value(text: str, n: int, m: int) -> int:
    names = {"cdiv": cdiv, "min": min, "max": max, "n": n, "m": m, "BLOCK": 64, "triton": aot}
    try:
        value = int(eval(text.replace("triton.", ""), names))
    except ZeroDivisionError:
        return INVALID
    return value if abs(value) < 2**63 else INVALID


def test_c_and_python_agree(tmp_path: Path) -> None:
    lines = ["#include <stdbool.h>", "#include <stdint.h>", "#include <stdio.h>"]
    lines += [HEADER.read_text(), "static void all(int32_t n, int32_t m) {"]
    for text in EXPRESSIONS:
        (size, *_) = grid_in_c(text, "k", {"n": "n", "m": "m"}, {"BLOCK": 64, "ACTIVATION": "relu"})
        lines.append(f'    printf("%lld\\n", (long long){size});')
    lines += [
        "}",
        "int main(void) {",
        *(f"    all({n}, {m});" for n, m in VALUES),
        "return 0;",
        "}",
    ]
    (tmp_path / "grid.c").write_text("\n".join(lines))
    run_checked([*any_compiler(), str(tmp_path / "grid.c"), "-o", str(tmp_path / "grid")])
    found = subprocess.run([tmp_path / "grid"], capture_output=True, text=True, check=True).stdout
    expected = [python_value(text, n, m) for n, m in VALUES for text in EXPRESSIONS]
    assert [*map(int, found.split())] == expected


@pytest.mark.parametrize(
    "text", ["n / 2", "f(n)", "x", "n if n else 1", "(1, 2, 3, 4)", "cdiv(n)", "n +", "1.5", "()"]
)
def test_what_has_no_meaning_in_c(text: str) -> None:
    with pytest.raises(errors.InvalidOption, match="grid of k"):
        grid_in_c(text, "k", {"n": "n"}, {})
