"""Rows that compare two sides, and a file of them that a later run continues."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import spread_of, write_record

Row = dict[str, Any]


class RowsFile:
    """The rows of a table, with those that an earlier run left in a file.

    path: of the file, which is rewritten with each new row; None for rows of this run only.
    """

    def __init__(self, path: Path | None, title: str) -> None:
        self._path, self._title = path, title
        self._rows: list[Row] = []
        if path is not None and path.exists():
            self._rows = json.loads(path.read_text(encoding="utf-8"))["rows"]

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows, and write the file."""
        self._rows += rows
        if self._path is not None:
            write_record(self._path, self._title, rows=self._rows)

    def missing(self, names: Sequence[str]) -> list[str]:
        """The names that have no row, in their order."""
        done = {row["name"] for row in self._rows}
        return [name for name in names if name not in done]

    def of(self, names: Sequence[str]) -> list[Row]:
        """The rows of some names."""
        return [row for row in self._rows if row["name"] in names]


def failures(answers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The reason of each side that could not prepare a case."""
    return {side: answer["failed"] for side, answer in answers.items() if "failed" in answer}


def comparison(sides: Sequence[str], samples: Mapping[str, Sequence[float]]) -> Row:
    """The part of a row that compares our samples, the first side's, with the other side's.

    The speed is the median of the rounds' ratios, above 1 where ours is faster.
    """
    ours, theirs = (samples[side] for side in sides)
    spread = spread_of([b / a for a, b in zip(ours, theirs, strict=True)])
    return {
        "sides": [*sides], "speed": spread.median, "low95": spread.low, "high95": spread.high,
        "ms": {side: statistics.median(times) for side, times in samples.items()},
        "samples_ms": samples,
    }  # fmt: skip


def summary(speeds: Sequence[float], goal: float) -> str:
    """The number of rows, their geometric mean, the least, and how many miss the goal."""
    mean, missed = statistics.geometric_mean(speeds), sum(speed < goal for speed in speeds)
    return (
        f"{len(speeds)} rows, geometric mean {mean:.3f}, least {min(speeds):.3f}, "
        f"{missed} below {goal}"
    )
