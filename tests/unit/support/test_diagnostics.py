"""Carets stand under what they mark, whatever the line is made of."""

import linecache
from pathlib import Path

import pytest

from tilewright.support import Diagnostic, Severity, SourceLoc, render
from tilewright.support.diagnostics import render_frames, source_line


def frames(line: str, col: int, end_col: int) -> list[str]:
    loc = SourceLoc("k.py", 1, col, end_col)
    return render_frames(loc, {"k.py": [line]})


def test_marks_the_range() -> None:
    assert frames("y = x + b", 4, 9) == [
        "  --> k.py:1:5",
        "  |",
        "1 | y = x + b",
        "  |     ^^^^^",
    ]


def test_range_past_the_line_is_marked_to_its_end() -> None:
    assert frames("f(a,   ", 0, -1)[-1] == "  | ^^^^"


def test_empty_range_gets_one_caret() -> None:
    assert frames("f(a", 3, 3)[-1] == "  |    ^"


def test_unknown_column_gets_no_caret() -> None:
    assert frames("f(a)", -1, -1) == ["  --> k.py:1", "  |", "1 | f(a)"]


def test_columns_are_utf8_bytes_and_wide_characters_take_two_cells() -> None:
    line = "名 = x"
    start = len("名 = ".encode())
    assert frames(line, start, start + 1)[-1] == "  |      ^"
    assert frames(line, 0, len("名".encode()))[-1] == "  | ^^"


def test_combining_characters_take_no_cell() -> None:
    line = "e\u0301 = x"
    start = len(line.encode()) - 1
    assert frames(line, start, start + 1)[-1] == "  |     ^"


def test_tabs_are_expanded_in_line_and_caret_alike() -> None:
    assert frames("\tx = 1\ty", 7, 8)[-2:] == ["1 |     x = 1   y", "  |             ^"]


def test_tab_after_a_wide_character_stops_where_the_terminal_stops() -> None:
    assert frames("名\tx", 4, 5)[-2:] == ["1 | 名  x", "  |     ^"]


def test_one_frame_for_each_inlined_call_innermost_first() -> None:
    kernel = SourceLoc("k.py", 12, 0, 4, "kernel")
    inner = SourceLoc("k.py", 2, 4, 5, "helper", kernel)
    lines = ["", "    x", *[""] * 9, "f(x)"]
    assert render_frames(inner, {"k.py": lines}) == [
        "  --> k.py:2:5 in helper",
        "   |",
        " 2 |     x",
        "   |     ^",
        "  called from k.py:12:1 in kernel",
        "   |",
        "12 | f(x)",
        "   | ^^^^",
    ]


def test_inlined_at_appends_at_the_outer_end() -> None:
    outer = SourceLoc("k.py", 30)
    middle = SourceLoc("k.py", 20)
    loc = SourceLoc("k.py", 10).inlined_at(middle).inlined_at(outer)
    assert [frame.line for frame in loc.frames()] == [10, 20, 30]
    assert loc.inlined_at(None) is loc


def test_reads_files_and_tolerates_missing_ones(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("a = 1\nb = 2\n", "utf-8")
    linecache.checkcache()
    assert source_line(SourceLoc(str(path), 2)) == "b = 2"
    assert render_frames(SourceLoc("<nowhere>", 3, 1, 2)) == ["  --> <nowhere>:3:2"]
    assert source_line(SourceLoc("k.py", 9), {"k.py": ["only one"]}) is None


def test_whole_diagnostic() -> None:
    diagnostic = Diagnostic(
        Severity.WARNING,
        "slow load",
        SourceLoc("k.py", 1, 0, 1, "k"),
        notes=("first\nsecond",),
        hint="use a block pointer",
        code="TW999",
    )
    assert render(diagnostic, {"k.py": ["p"]}) == "\n".join(
        [
            "warning[TW999]: slow load",
            "  --> k.py:1:1 in k",
            "  |",
            "1 | p",
            "  | ^",
            "  note: first",
            "        second",
            "  hint: use a block pointer",
        ]
    )


@pytest.mark.parametrize("col", [0, 99, 150, 4_000, 8_990])
def test_of_long_lines_the_part_around_the_mark_is_shown(col: int) -> None:
    text = ("é" + "x" * 8) * 900
    raw = text.encode()
    col += raw[col] & 0xC0 == 0x80
    loc = SourceLoc("file", 1, col, col + 5)
    _, line, marks = render_frames(loc, {"file": [text]})[1:]
    assert len(line) < 220
    start = marks.index("^")
    assert line[start : start + marks.count("^")].encode()[:4] == raw[col : col + 4]


def test_a_mark_may_go_on_past_what_is_shown_of_a_long_line() -> None:
    for end in (-1, 99_999):
        _, line, marks = render_frames(SourceLoc("file", 1, 50, end), {"file": ["y" * 9_999]})[1:]
        assert line.endswith(" ...") and marks.count("^") == 150
