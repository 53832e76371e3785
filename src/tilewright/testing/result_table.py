"""The table of a benchmark: its columns, as aligned text and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from tilewright.testing.benchmark import Benchmark, Curve

Columns = dict[str, list[object]]
"""Name -> values, one for each point."""

_DIGITS = 6
"""Digits after the point in a printed table, less those that are 0 in all rows."""


def columns_of(benchmark: Benchmark, curves: Sequence[Curve], diff_col: bool) -> Columns:
    """The x values and the curves; diff_col: of two curves, also the second minus the first."""
    points = benchmark.points()
    columns: Columns = {
        name: [point[index] for point in points] for index, name in enumerate(benchmark.x_names)
    }
    columns |= {curve.name: list(curve.values) for curve in curves}
    if diff_col and len(curves) == 2:
        pairs = zip(*(curve.values for curve in curves), strict=True)
        columns["Diff"] = [second - first for first, second in pairs]
    return columns


def table_text(columns: Columns) -> str:
    """The columns under their names, aligned to the right."""
    texts = [[name, *column_texts(values)] for name, values in columns.items()]
    widths = [max(map(len, column)) for column in texts]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in zip(*texts, strict=True)
    )


def csv_text(columns: Columns, precision: int) -> str:
    """The columns as CSV; precision: digits after the point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    cells = ([_text(value, f".{precision}f", "") for value in v] for v in columns.values())
    writer.writerows(zip(*cells, strict=True))
    return text.getvalue()


def column_texts(values: Sequence[object]) -> list[str]:
    """The cells of a column; its numbers share the digits after the point, at most `_DIGITS`."""
    numbers = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    fractions = [f"{number:.{_DIGITS}f}".partition(".")[2].rstrip("0") for number in numbers]
    digits = max([1, *map(len, fractions)])
    return [_text(value, f".{digits}f", "nan") for value in values]


def _text(value: object, form: str, missing: str) -> str:
    if not isinstance(value, float):
        return str(value)
    return missing if math.isnan(value) else format(value, form)
