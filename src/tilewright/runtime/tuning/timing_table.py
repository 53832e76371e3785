"""Short names of configurations; their timings as a table, for PRINT_AUTOTUNING and `tilewright
tuning`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from tilewright.support.data_class import dataclass

_BETWEEN = re.compile(r", (?=[A-Za-z_]\w*: )")
"""The separator of `name: value` pairs; values may have commas."""


@dataclass(frozen=True, slots=True)
class TimingRow:
    """Configurations of one timing. label: the parts in which they differ from others; count: how
    many share it, since their code is equal; ms: infinite if they cannot run; ratio: to the best.
    """

    label: str
    count: int
    ms: float
    ratio: float


def labels_of(texts: Iterable[str]) -> dict[str, str]:
    """Short names for texts of configurations: the parts in which they differ from others."""
    parts = {text: _BETWEEN.split(text) for text in texts}
    common = set[str].intersection(*map(set, parts.values())) if len(parts) > 1 else set[str]()
    return {
        text: ", ".join(part for part in found if part not in common) or text
        for text, found in parts.items()
    }


def timing_rows(timings: Mapping[str, Sequence[float]]) -> list[TimingRow]:
    """The rows for texts of configurations, the fastest first."""
    labels = labels_of(timings)
    groups: dict[tuple[float, ...], list[str]] = {}
    for text, timing in timings.items():
        groups.setdefault(tuple(timing), []).append(text)
    ranked = sorted(groups.items(), key=lambda group: group[0][0])
    best = ranked[0][0][0] if ranked else math.inf
    return [
        TimingRow(
            labels[texts[0]],
            len(texts),
            timing[0],
            timing[0] / best if math.isfinite(best) else math.inf,
        )
        for timing, texts in ranked
    ]


def timing_lines(timings: Mapping[str, Sequence[float]]) -> list[str]:
    """`timing_rows` as aligned lines."""
    return [
        f"{_milliseconds(row)}  {row.label}"
        + (f" (and {row.count - 1} with equal code)" if row.count > 1 else "")
        for row in timing_rows(timings)
    ]


def _milliseconds(row: TimingRow) -> str:
    if not math.isfinite(row.ms):
        return f"{'cannot run':>20}"
    return f"{row.ms:10.4f} ms {row.ratio:5.2f}x"
