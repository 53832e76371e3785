"""The text of a table of figures: written, compared, and rewritten by `pytest --bless`."""

import difflib
from collections.abc import Mapping
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any


def text_of(figures: Mapping[tuple[str, str], Any], tool: str) -> str:
    """A line for each target and label, with the fields of a dataclass as columns.

    tool: what made the figures, named in the first line
    """
    columns = (field.name for field in fields(next(iter(figures.values()))))
    rows = [("row", "variant", *columns)]
    for names, found in figures.items():
        rows.append((*names, *map(str, astuple(found))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([f"# {tool}", *lines]) + "\n"


def rows(text: str) -> set[str]:
    """The lines of a table whatever the widths of its columns, the head among them."""
    return {" ".join(line.split()) for line in text.splitlines()[1:]}


def check(path: Path, actual: str, *, bless: bool = False) -> str | None:
    """What differs from the table at `path`, as a report; None if nothing does."""
    expected = path.read_text() if path.exists() else ""
    if actual == expected:
        return None
    if bless:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual)
        return None
    before, after = expected.splitlines(), actual.splitlines()
    changes = [
        line
        for line in difflib.unified_diff(before, after, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    where = f"{path.parent.name}/{path.name}"
    return "\n".join(
        [
            f"{where}: the code of the corpus changed (- expected, + now)",
            f" {after[1]}",
            *changes,
            f"if it is meant: pytest --bless tests/corpus -k {path.stem}",
        ]
    )
