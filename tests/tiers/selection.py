"""Tiers of tests, as a function of their ids and markers alone."""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("guard_tier.toml")
GUARD, REST, DEV, BROWSER, TORCH, GPU = "guard", "rest", "dev", "browser", "torch", "gpu"
MARKED = (GPU, TORCH, BROWSER, DEV)
"""Tiers that a marker of the same name selects, wherever what they need is installed."""


@dataclass(frozen=True)
class Case:
    """One test with its parameters.

    device: the value of the parameter `device`, which names a backend, or ""; marks: names of its
    markers
    """

    nodeid: str
    device: str = ""
    marks: frozenset[str] = frozenset()

    @property
    def function(self) -> str:
        """The id without parameters."""
        return self.nodeid.partition("[")[0]


@dataclass(frozen=True)
class Share:
    """A row of the table: the share of the cases whose ids start with `prefix`, from 0 to 1.

    A share of 0 leaves out every case. Any other takes one case of each function and device, and
    the share of the others.
    """

    prefix: str
    share: float
    reason: str


@cache
def read_shares(path: Path = TABLE) -> tuple[Share, ...]:
    """The rows of the table; a row without a reason is a TypeError."""
    rows = tomllib.loads(path.read_text("utf-8"))["share"]
    return tuple(Share(**row) for row in rows)


def share_of(nodeid: str, shares: Sequence[Share]) -> float:
    """The share of the row with the longest prefix of the id; 1 without a row."""
    rows = [row for row in shares if nodeid.startswith(row.prefix)]
    return max(rows, key=lambda row: len(row.prefix)).share if rows else 1.0


def tiers(cases: Iterable[Case], shares: Sequence[Share]) -> dict[str, str]:
    """The tier of each case, by id."""
    found: dict[str, str] = {}
    groups: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        marked = [name for name in MARKED if name in case.marks]
        found[case.nodeid] = marked[0] if marked else REST
        if not marked:
            groups.setdefault((case.function, case.device), []).append(case.nodeid)
    for ids in groups.values():
        found.update(dict.fromkeys(_guards(ids, shares), GUARD))
    return found


def _guards(ids: Sequence[str], shares: Sequence[Share]) -> Iterable[str]:
    share = {nodeid: share_of(nodeid, shares) for nodeid in ids}
    eligible = [nodeid for nodeid in ids if share[nodeid]]
    first = min(eligible, key=_hash, default="")
    return [
        nodeid for nodeid in eligible if nodeid == first or _hash(nodeid) < share[nodeid] * 2**32
    ]


def slice_of(nodeid: str, slices: int) -> int:
    """The slice that holds a test of the rest, from 1 to `slices`.

    Tests of a file with the same parameters are in one slice, since they often share a cached
    computation.
    """
    place, _, parameters = nodeid.partition("[")
    key = f"{place.partition('::')[0]}[{parameters}" if parameters else nodeid
    return _hash(key) % slices + 1


def _hash(nodeid: str) -> int:
    return zlib.crc32(nodeid.encode())
