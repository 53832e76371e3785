"""Long and deep sources: what is legal compiles in linear time, the rest is told within seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.frontend.c.harness import lower
from tilewright.c import CSource, kernel
from tilewright.frontend.semantics import FrontendOptions
from tilewright.ir import verify
from tilewright.support import errors

KERNEL = "void k(float *p, int n) { %s }"


@pytest.mark.parametrize(
    "body",
    [
        "*p = " + " + ".join(["n"] * 10_000) + ";",
        "*p = " + " && ".join(["n"] * 3_000) + ";",
        "*p = " + "(" * 3_000 + "n" + ")" * 3_000 + ";",
        "*p = 0" + " + ONE(n)" * 3_000 + ";",
        "*p = 1;" * 3_000,
        "if (n == 3) *p = 1;" * 1_000,
        "if (n == 3) return;" * 1_000 + "*p = 1;",
        "if (n) {" * 100 + "*p = 1;" + "}" * 100,
        "*p = " + "n == 3 ? 1 : " * 100 + "0;",
    ],
    ids=["sum", "ands", "parentheses", "calls", "statements", "ifs", "returns", "blocks", "choice"],
)
def test_what_is_long_compiles(body: str) -> None:
    assert verify(lower("#define ONE(x) (x)\n" + KERNEL % body).kernel) == []


def test_a_long_sum_is_right() -> None:
    out = np.zeros(1, np.float32)
    kernel(KERNEL % f"*p = {' + '.join(['n'] * 10_000)};", interpret=True)[(1,)](out, 3)
    assert out[0] == 30_000


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("*p = " + "(n + " * 5_000 + "n" + ")" * 5_000 + ";", "expression"),
        ("*p = " + "- " * 5_000 + "n;", "expression"),
        ("*p = " + "n ? 1 : " * 5_000 + "n;", "expression"),
        ("*p = " + "abs(" * 5_000 + "n" + ")" * 5_000 + ";", "expression"),
        ("{" * 5_000 + "}" * 5_000, "statement"),
        ("if (n) " * 5_000 + "*p = 1;", "statement"),
        ("if (n == 3) return;" * 2_000, "control flow"),
    ],
    ids=["right", "minus", "choice", "calls", "blocks", "ifs", "returns"],
)
def test_what_is_deep_is_refused(body: str, what: str) -> None:
    with pytest.raises(errors.NestedTooDeeply, match=what) as caught:
        CSource(KERNEL % body).lower(FrontendOptions())
    assert caught.value.loc is not None and caught.value.loc.line == 1


def chain(count: int) -> str:
    functions = ["float f0(float x) { return x; }"]
    functions += [f"float f{i}(float x) {{ return f{i - 1}(x); }}" for i in range(1, count)]
    return "\n".join(functions) + KERNEL % f"*p = f{count - 1}(n);"


def test_calls_inside_calls() -> None:
    lower(chain(40))
    with pytest.raises(errors.NestedTooDeeply, match="inlined") as caught:
        lower(chain(1_000))
    assert "called from" in str(caught.value)


DOUBLING = "".join(f"#define A{i} A{i - 1} + A{i - 1}\n" for i in range(1, 64))


@pytest.mark.parametrize(
    "before",
    [
        "#define A0 1\n" + DOUBLING,
        "#define F(x) x x\n#define A63 " + "F(" * 40 + "1" + ")" * 40 + "\n",
        "#define F0(x) x + x\n"
        + "".join(f"#define F{i}(x) F{i - 1}(F{i - 1}(x))\n" for i in range(1, 12))
        + "#define A63 F11(1)\n",
    ],
    ids=["plain", "argument", "function"],
)
def test_macros_that_explode_are_stopped(before: str) -> None:
    with pytest.raises(errors.PreprocessorError, match="more than 262,144 tokens") as caught:
        lower(before + KERNEL % "*p = A63;")
    assert caught.value.loc is not None


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("#define A0 1\n" + "".join(f"#define A{i} A{i - 1}\n" for i in range(1, 1000))
         + "int const z = A999;\n", "nests too deeply"),
        ("#define F(x) x\nint const z = " + "F(" * 2000 + "1" + ")" * 2000 + ";", "nests too deep"),
        ("#if " + "(" * 5000 + "1" + ")" * 5000 + "\n#endif", "nests too deeply"),
        ("#if\n#endif", "#if needs a condition"),
        ("#if !\n#endif", "#if needs a condition"),
        ("#if ! defined(\n#endif", "#if needs a condition"),
        ("#if 1 +\n#endif", "expected a condition on integers, found the end of the line"),
        ("#if 1 2\n#endif", "expected a condition on integers, found '2'"),
        ("#if 1 / 0\n#endif", "a division by 0"),
        ("#if 09\n#endif", "an octal number"),
        ("#if defined\n#endif", "'defined' needs a name"),
        ("#if defined(3)\n#endif", "'defined' needs a name"),
        ("#if \"a\" == 1\n#endif", "expected a condition on integers"),
        ("#ifdef 3\n#endif", "#ifdef needs a name"),
        ("#define 3 4", "#define needs a name"),
        ("#pragma", "#pragma needs a word"),
    ],
)  # fmt: skip
def test_directives_that_cannot_be_read(before: str, message: str) -> None:
    with pytest.raises(errors.TilewrightError, match=message.replace("(", r"\(")) as caught:
        lower(before + "\n" + KERNEL % "*p = 1;")
    assert caught.value.loc is not None


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("1 << 99999999999", False), ("1 ? 2 : 1 / 0", True), ("0 && 1 / 0", False),
        ("1 || 1 / 0", True), ("-1 > 0u", True), ("-1 > 0", False), ("0xffffffff == -1", False),
        ("0xffffffffffffffff == -1", True), ("'a' == 97", True), ("true && !unknown", True),
        ("2 + 3 * 4 == 14 && (2 + 3) * 4 == 20", True), ("-7 / 2 == -3 && -7 % 2 == -1", True),
        ("1 - 1 - 1 == -1", True), ("~0 == -1 && - - 3 == 3", True), ("1 ? 0 : 1 ? 1 : 1", False),
        ("defined ONE && defined(ONE) && !defined(TWO)", True), ("ONE + ONE == 2", True),
        ("3 & 5 | 8 ^ 1", True), ("(-1 >> 63) == -1 && (-1 << 64) == 0", True),
    ],
)  # fmt: skip
def test_conditions_have_the_operators_of_c(condition: str, holds: bool) -> None:
    source = f"#define ONE 1\n#if {condition}\n#define VALUE 1\n#else\n#define VALUE 0\n#endif\n"
    out = np.zeros(1, np.float32)
    kernel(source + "void k(float *p) { *p = VALUE; }", interpret=True)[(1,)](out)
    assert out[0] == holds


def test_headers_that_include_themselves(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#include "a.h"\n')
    file = tmp_path / "k.c"
    file.write_text('#include "a.h"\n' + KERNEL % "*p = 1;")
    with pytest.raises(errors.TilewrightError, match="headers include each other|nests too deeply"):
        CSource(file)


LONG = "int const z = 0" + " + 1" * 70_000 + ";\n"
"""141,000 tokens."""


@pytest.mark.parametrize(
    "headers", [[], [LONG], [LONG[: len(LONG) // 2] + ";\n"] * 2], ids=["source", "header", "two"]
)
def test_what_is_longer_than_can_be_read_in_seconds(headers: list[str], tmp_path: Path) -> None:
    for number, text in enumerate(headers):
        (tmp_path / f"{number}.h").write_text(text)
    file = tmp_path / "k.c"
    included = "".join(f'#include "{number}.h"\n' for number in range(len(headers)))
    file.write_text((included or LONG) + KERNEL % "*p = 1;")
    with pytest.raises(errors.PreprocessorError, match="may have 131,072 tokens") as caught:
        CSource(file)
    assert caught.value.loc is not None and caught.value.loc.line == 1


def test_characters_that_cannot_be_shown() -> None:
    with pytest.raises(errors.CSyntaxError, match=r"found '\\x00'"):
        lower(KERNEL % "*p = \0;")
