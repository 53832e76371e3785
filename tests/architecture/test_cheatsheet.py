"""The cheatsheet is right: the columns of NumPy and `tl` compute the same, and all names exist."""

import re
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.architecture.gates import ROOT

PAGE = ROOT / "docs/cheatsheet.md"
VALUES = {
    "x": np.array([3, -1, 4, 1, -5, 9, 2, 6], np.float32) / 4,
    "y": np.array([2, 7, 1, 8, 2, 8, 1, 8], np.float32) / 4,
    "m": np.array([1, 0, 0, 1, 1, 0, 1, 0], bool),
    "i": np.array([3, 1, 7, 0, 2, 6, 5, 5], np.int32),
}


def rows(heading: str, page: str | None = None) -> list[list[str]]:
    """The rows of the table after a heading, without those of its head."""
    text = PAGE.read_text("utf-8") if page is None else page
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def code(cell: str) -> str:
    """The code of a cell."""
    match = re.match(r"`([^`]+)`", cell)
    assert match, f"no code: {cell}"
    return match[1]


EXPRESSIONS = [
    *((code(row[0]), code(row[2]), True) for row in rows("Expressions on tiles")),
    *(
        (code(row[0]), code(row[2]), "3.9" in row[1])
        for row in rows("Expressions that Triton lacks")
    ),
]
"""Code of NumPy, code of tl, and whether that is also Triton's."""


def computed(
    expression: str, folder: Path, expected: np.ndarray, strict_triton: bool = False
) -> np.ndarray:
    """The value of an expression of `tl` in the interpreter."""
    rank, places = expected.ndim, ["out_ptr"]
    for axis, size in enumerate(expected.shape):
        index = ", ".join(":" if other == axis else "None" for other in range(rank))
        places.append(f"tl.arange(0, {size})[{index}] * {np.prod(expected.shape[axis + 1 :]):.0f}")
    source = folder / "expression.py"
    source.write_text(
        "import tilewright\nimport tilewright.language as tl\n\n\n"
        "@tilewright.jit(interpret=True)\ndef kernel(x_ptr, y_ptr, m_ptr, i_ptr, out_ptr):\n"
        "    lanes = tl.arange(0, 8)\n"
        "    x, y, i = tl.load(x_ptr + lanes), tl.load(y_ptr + lanes), tl.load(i_ptr + lanes)\n"
        "    m = tl.load(m_ptr + lanes).to(tl.int1)\n"
        f"    tl.store({' + '.join(places)}, {expression})\n"
    )
    scope: dict[str, object] = {"__file__": str(source)}
    exec(compile(source.read_text(), str(source), "exec"), scope)
    kernel = scope["kernel"]
    assert isinstance(kernel, tilewright.JITFunction)
    out = np.empty(expected.shape, expected.dtype)
    kernel[(1,)](*VALUES.values(), out, strict_triton=strict_triton)
    return out


@pytest.mark.parametrize(("numpy_code", "tl_code", "in_triton"), EXPRESSIONS)
def test_columns_compute_the_same(numpy_code: str, tl_code: str, in_triton: bool, tmp_path: Path):
    value = np.asarray(eval(numpy_code, {"np": np, **VALUES}))
    wide = {"f": np.float32, "i": np.int32, "b": np.int32}[value.dtype.kind]
    expected = value.astype(value.dtype if value.dtype == np.float16 else wide)
    found = computed(tl_code, tmp_path, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    if in_triton:
        computed(tl_code, tmp_path, expected, strict_triton=True)
    else:
        with pytest.raises(tilewright.TilewrightError):
            computed(tl_code, tmp_path, expected, strict_triton=True)


def test_names_of_the_tables_exist():
    text = PAGE.read_text("utf-8")
    for name in set(re.findall(r"\btl\.([a-z_][\w.]*)", text)):
        value: object = tl
        for part in name.split("."):
            value = getattr(value, part)
    for name in set(re.findall(r"tilewright\.(testing\.\w+|[a-z_]\w*)\(", text)):
        value = tilewright
        for part in name.split("."):
            value = getattr(value, part)
        assert callable(value)


def test_every_row_has_a_cell_for_each_column():
    headings = re.findall(r"^## (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(headings) == 4
    for heading in headings:
        assert len(rows(heading)) >= 5
        assert [row for row in rows(heading) if len(row) != 3] == []
    assert len(EXPRESSIONS) > 30


def test_a_wrong_row_is_found(tmp_path: Path):
    found = computed("x * 2", tmp_path, VALUES["x"])
    assert not np.allclose(found, VALUES["x"])
