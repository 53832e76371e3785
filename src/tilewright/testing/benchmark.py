"""`Benchmark`: the description of a report; `Curve`: one measured line of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import SupportsFloat, cast

LineStyle = Sequence[str]
Range = tuple[float, float]


@dataclass
class Benchmark:
    """The description of a benchmark and its plot; Triton's arguments in Triton's order.

    x_names: arguments of the benchmark function that vary along the x axis; the first one labels
        it.
    x_vals: their values: tuples or lists with one value per name, or single values given to all
        names.
    line_arg, line_vals, line_names: the argument that differs between lines, its values, their
        legend.
    plot_name: name of the files, without suffix; empty for no plot.
    args: the remaining arguments, the same for every point.
    xlabel, ylabel, x_log, y_log: of the plot. styles: a (colour, line style) pair for each line.

    Raises ValueError if the number of values does not match the number of names.
    """

    x_names: Sequence[str]
    x_vals: Iterable[object]
    line_arg: str
    line_vals: Sequence[object]
    line_names: Sequence[str]
    plot_name: str
    args: Mapping[str, object]
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[LineStyle] | None = None

    def __post_init__(self) -> None:
        # Points are read several times, but a generator only once.
        self.x_vals = list(self.x_vals)
        self._require(
            len(self.line_names) == len(self.line_vals),
            f"{len(self.line_names)} line_names for {len(self.line_vals)} line_vals",
        )
        self._require(
            self.styles is None or len(self.styles) >= len(self.line_vals),
            f"{len(self.styles or ())} styles for {len(self.line_vals)} line_vals",
        )
        # Names become columns of one table.
        columns = [*self.x_names, *self.line_names]
        self._require(
            len(set(columns)) == len(columns),
            f"x_names and line_names repeat a name: {', '.join(columns)}",
        )
        for point in self.points():
            self._require(
                len(point) == len(self.x_names),
                f"x_vals holds {point!r}, but there are {len(self.x_names)} x_names",
            )

    def _require(self, holds: bool, problem: str) -> None:
        if not holds:
            raise ValueError(f"Benchmark {self.plot_name!r}: {problem}")

    def points(self) -> list[tuple[object, ...]]:
        """The x values of every point, one per x name."""
        return [
            tuple(cast("Sequence[object]", x))
            if isinstance(x, (list, tuple))
            # A single value is given to all x names, as in Triton.
            else (x,) * len(self.x_names)
            for x in self.x_vals
        ]


@dataclass
class Curve:
    """One line: a value for each point, and a range if the function returned one."""

    name: str
    values: list[float] = field(default_factory=list[float])
    ranges: list[Range | None] = field(default_factory=list["Range | None"])

    def append(self, result: object) -> None:
        """Add what the benchmark function returned: a number, or (value, low, high)."""
        if isinstance(result, (list, tuple)):
            value, low, high = _three_numbers(cast("Sequence[SupportsFloat | None]", result))
            self.values.append(value)
            self.ranges.append(None if low is None or high is None else (low, high))
        else:
            self.values.append(float(cast("SupportsFloat", result)))
            self.ranges.append(None)


def _three_numbers(
    result: Sequence[SupportsFloat | None],
) -> tuple[float, float | None, float | None]:
    # A wrong length ends in the error below, with None as the mark.
    value, low, high = result if len(result) == 3 else (None, None, None)
    if value is None:
        raise ValueError(
            f"a benchmark function returns one number or (value, low, high), not {result!r}"
        )
    return (
        float(value),
        None if low is None else float(low),
        None if high is None else float(high),
    )
