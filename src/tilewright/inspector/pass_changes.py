"""The changes of passes as edits of lines, from which the page builds the text before and after.

    [["=", 4], ["-", 1], ["+", [17, 18]], ["~", [19]], ["=", 30]]

Lines are numbers in one table. A line that only numbers its values differently (`~`) counts as
equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from tilewright.inspector.recorded_compilation import RecordedPass
from tilewright.support.data_class import dataclass

__all__ = ["LineTable", "pass_changes"]

_NUMBER = re.compile(r"%\d+\b")
"""Values without a name, which the printer numbers."""


@dataclass(slots=True)
class LineTable:
    """Distinct lines, in the order of their first use."""

    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, lines: Iterable[str]) -> list[int]:
        """The numbers of lines."""
        return [self.numbers.setdefault(line, len(self.numbers)) for line in lines]


def pass_changes(passes: Iterable[RecordedPass], table: LineTable) -> list[dict[str, Any]]:
    """Each pass with its edits. `start`: the text before, where it is not the one after the pass
    before"""
    made: list[dict[str, Any]] = []
    previous = None
    for each in passes:
        before, after = each.before.splitlines(), each.after.splitlines()
        entry: dict[str, Any] = {
            "name": each.name, "ms": round(each.seconds * 1e3, 3), "rules": each.rules,
            "edits": _edits(before, after, table) if before != after else [],
        }  # fmt: skip
        if before != previous:
            entry["start"] = table.add(before)
        made.append(entry)
        previous = after
    return made


def _edits(before: list[str], after: list[str], table: LineTable) -> list[list[Any]]:
    """The edits that lead from one text to the other."""
    made: list[list[Any]] = []
    old, new = ([_NUMBER.sub("%", line) for line in lines] for lines in (before, after))
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            made += _equal_runs(zip(before[i:j], after[k:m], strict=True), table)
            continue
        if j > i:
            made.append(["-", j - i])
        if m > k:
            made.append(["+", table.add(after[k:m])])
    return made


def _equal_runs(pairs: Iterable[tuple[str, str]], table: LineTable) -> Iterator[list[Any]]:
    """Runs of unchanged lines, and of those that are numbered differently."""
    for is_same, run in groupby(pairs, lambda pair: pair[0] == pair[1]):
        lines = [line for _, line in run]
        yield ["=", len(lines)] if is_same else ["~", table.add(lines)]
