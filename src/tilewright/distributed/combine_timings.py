"""The choice of a configuration from timings of several ranks.

Timings of different ranks are compared by their ratio to a reference that each rank has measured,
so that a slow rank does not make its configurations look slow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tilewright.support.data_class import dataclass

Ratios = dict[int, list[float]]
"""Time over that of the reference, at each quantile, by the number of the configuration."""


@dataclass(frozen=True, slots=True)
class Part:
    """The timings of one rank. kind: ranks with equal devices have equal ones; reference: the
    number of the first configuration that runs, None if none does."""

    kind: int
    reference: int | None
    timings: Mapping[int, Sequence[float]]

    def ratios(self) -> Ratios:
        """The ratios to the reference; infinite for what cannot run."""
        unit = math.nan if self.reference is None else self.timings[self.reference][0]
        return {
            number: [ms / unit if math.isfinite(ms) and unit > 0 else math.inf for ms in timing]
            for number, timing in self.timings.items()
        }


def ratios_by_kind(parts: Iterable[Part]) -> dict[int, Ratios]:
    """The ratios of each kind of device. A rank whose reference is not that of the first rank of
    its kind is left out."""
    found: dict[int, Ratios] = {}
    references: dict[int, int | None] = {}
    for part in parts:
        if references.setdefault(part.kind, part.reference) == part.reference:
            known = found.setdefault(part.kind, {})
            known.update({n: row for n, row in part.ratios().items() if n not in known})
    return found


def best_number(kinds: Iterable[Ratios]) -> int | None:
    """The configuration with the smallest slowdown on the kind of device where it is slowest,
    compared with the best configuration there; None if no configuration runs everywhere."""
    slowdowns = [_slowdowns(ratios) for ratios in kinds]
    common = [number for number in slowdowns[0] if all(number in other for other in slowdowns[1:])]
    # by number, so that equal timings do not depend on the order of ranks
    return min(sorted(common), key=lambda n: max(some[n] for some in slowdowns), default=None)


def _slowdowns(ratios: Ratios) -> dict[int, float]:
    runs = {number: row[0] for number, row in ratios.items() if math.isfinite(row[0])}
    best = min(runs.values(), default=math.inf)
    return {number: ratio / best for number, ratio in runs.items()}
