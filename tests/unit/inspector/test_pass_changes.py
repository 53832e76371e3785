"""Edits of passes: the page builds the same texts from them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tilewright.inspector.pass_changes import LineTable, pass_changes
from tilewright.inspector.recorded_compilation import RecordedPass


def texts_of(changes: list[dict[str, Any]], table: LineTable) -> list[str]:
    """The text after each pass, as `applyEdits` of inspector.js builds it."""
    lines, current, made = list(table.numbers), list[int](), list[str]()
    for change in changes:
        current = change.get("start", current)
        after, at = list[int](), 0
        for kind, value in change["edits"] or [["=", len(current)]]:
            if kind == "=":
                after += current[at : at + value]
                at += value
            elif kind == "-":
                at += value
            else:
                after += value
                at += len(value) if kind == "~" else 0
        current = after
        made.append("\n".join(lines[number] for number in after))
    return made


TEXT = st.lists(st.sampled_from(["%0 = a", "%1 = a", "%x = b %0", "c", "}"]), max_size=12)


@given(st.lists(TEXT, min_size=2, max_size=5))
def test_edits_lead_from_each_text_to_the_next(texts: list[list[str]]):
    table = LineTable()
    whole = ["\n".join(lines) for lines in texts]
    pairs = zip(whole, whole[1:], strict=False)
    passes = [RecordedPass("p", 0.0, before, after, {}) for before, after in pairs]
    assert texts_of(pass_changes(passes, table), table) == whole[1:]


def test_lines_that_only_number_values_differently_are_no_change():
    table = LineTable()
    one = RecordedPass("p", 0.001, "%0 = a\n%1 = b", "%1 = b", {"rule": 2})
    (change,) = pass_changes([one], table)
    assert change["edits"] == [["-", 1], ["=", 1]]
    renumbered = RecordedPass("p", 0.001, "%0 = a\n%1 = b", "%0 = b", {})
    (change,) = pass_changes([renumbered], table)
    assert [kind for kind, _ in change["edits"]] == ["-", "~"]
    assert (change["name"], change["ms"]) == ("p", 1.0)
