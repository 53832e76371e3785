"""Tables of timings that are shipped with a program, and choose configurations without measuring.

    {"format": "tilewright tuning table 1", "rows": [
      {"kernel": "matmul", "target": "NVIDIA H200", "key": "M=4096, float16", "source": "3f2a...",
       "timings": {"BLOCK: 64, num_warps: 4": [0.11, 0.1, 0.12]}}]}

A row is for one kernel, device and key; without "source", for every version of the kernel. There is
no search for a similar key: a launch that no row covers takes the fallback of the settings, and a
warning names it.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewright.runtime.tuning.timing_store import (
    ABOUT,
    KeptTimings,
    Timing,
    as_rows,
    from_rows,
)
from tilewright.support import TilewrightWarning, errors, settings
from tilewright.support.asynchronous_exceptions import synchronous

_FORMAT = "tilewright tuning table 1"
_FIRST = ""
"""A choice that means the first configuration."""

RowKey = tuple[str, ...]
"""The members `ABOUT` of a row."""


class TuningTable:
    """Timings by configuration, for each kernel, device and key."""

    def __init__(self, rows: Mapping[RowKey, Mapping[str, Timing]]) -> None:
        self.rows = {key: dict(timings) for key, timings in rows.items()}

    @classmethod
    def of(cls, kept: Sequence[KeptTimings]) -> TuningTable:
        """The timings on disk as a table."""
        table = cls({})
        for one in kept:
            table |= cls({(one.kernel, one.key, one.target, one.source): one.timings})
        return table

    @classmethod
    def load(cls, file: Path) -> TuningTable:
        """The table in a file. Errors: AutotunerError."""
        try:
            members = json.loads(file.read_text(encoding="utf-8"))
            if members["format"] != _FORMAT:
                raise ValueError(f"its format is {members['format']!r}")
            rows = {
                tuple(str(row.get(name, "")) for name in ABOUT): from_rows(row["timings"])
                for row in members["rows"]
            }
        except synchronous(
            OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError
        ) as problem:
            raise errors.AutotunerError(
                f"{file} is not a table of timings: {problem!r}",
                "write one with `tilewright tuning export FILE.json`",
            ) from None
        return cls(rows)

    def __or__(self, other: TuningTable) -> TuningTable:
        """The union; a timing of `other` replaces one of this table."""
        keys = dict.fromkeys([*self.rows, *other.rows])
        return TuningTable(
            {key: {**self.rows.get(key, {}), **other.rows.get(key, {})} for key in keys}
        )

    def text(self) -> str:
        """The table as JSON, in order, so that equal tables are equal files."""
        rows = [
            {**dict(zip(ABOUT, key, strict=True)), "timings": as_rows(dict(sorted(row.items())))}
            for key, row in sorted(self.rows.items())
        ]
        return json.dumps({"format": _FORMAT, "rows": rows}, indent=1) + "\n"

    def find(self, about: Mapping[str, str]) -> dict[str, Timing]:
        """The timings of a launch's configurations, those of its version of the kernel first."""
        kernel, key, target, source = (about[name] for name in ABOUT)
        found = self.rows.get((kernel, key, target, source))
        return found or self.rows.get((kernel, key, target, ""), {})


@lru_cache(maxsize=8)
def _loaded(files: tuple[Path, ...], changed: tuple[int, ...]) -> TuningTable:
    table = TuningTable({})
    for file in files:
        table |= TuningTable.load(file)
    return table


def _tables() -> TuningTable:
    files = settings().autotuning.tables
    # a file that is not there has its error in `load`
    changed = tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)
    return _loaded(files, changed)


def choose(about: Mapping[str, str], texts: Sequence[str]) -> str | None:
    """The fastest of a launch's configurations, named by their texts; "" means the first one, and
    None means to measure. about: kernel, key, target and source of the launch

    Errors: AutotunerError, for a file that is no table, and by the fallback "error".
    """
    timings = _tables().find(about)
    known: dict[str, Timing] = {text: timings[text] for text in texts if text in timings}
    best = min(known, key=lambda text: known[text][0], default=None)
    if best is not None and math.isfinite(known[best][0]):
        return best
    return _fallback(about)


def _fallback(about: Mapping[str, Any]) -> str | None:
    chosen = settings().autotuning.fallback
    miss = f"no row of the tuning tables is for {about['kernel']}, {about['key']}, on "
    miss += f"{about['target']} (version {about['source']} of the kernel)"
    if chosen == "error":
        raise errors.AutotunerError(
            miss, "add it to a table, or set TILEWRIGHT_TUNING_FALLBACK to measure or first"
        )
    then = "it is measured" if chosen == "measure" else "its first configuration is used"
    warnings.warn(f"{miss}; {then}", TilewrightWarning, stacklevel=2)
    return None if chosen == "measure" else _FIRST
