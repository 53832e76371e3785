"""Measurement of configurations: each code once, in limited time, storing each result at once."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from tilewright.backends import Backend
from tilewright.runtime.bench import Bar, step_bar
from tilewright.runtime.tuning.timing_store import StoredTimings, Timing
from tilewright.runtime.tuning.timing_table import labels_of
from tilewright.runtime.tuning.trial_launches import Trial
from tilewright.runtime.tuning.tuning_arguments import Bench
from tilewright.runtime.tuning.tuning_config import Config
from tilewright.support import TilewrightWarning
from tilewright.support.data_class import dataclass


@dataclass
class Tuning:
    """One tuning of the kernel `name`.

    bench: measures a launch; stored: timings on disk, or None; seconds: after these, no further
    configuration is measured, 0 for no limit. timings: measured so far; spent: seconds of the
    measurement; done: called after each configuration that was compiled or measured.
    """

    name: str
    trial: Trial
    backend: Backend
    bench: Bench
    stored: StoredTimings | None
    seconds: float
    timings: dict[Config, Timing] = field(default_factory=dict[Config, Timing])
    spent: float = 0.0
    done: Callable[[], object] = list

    def run(self, configs: Sequence[Config]) -> None:
        """Add missing timings; nothing is measured if there is only one choice."""
        groups = self.trial.alike(configs, self.backend)
        left = [group for group in groups if not self._has_timing(group)]
        if left and len(groups) > 1:
            self._add(left, is_whole=not self.timings)

    def add_part(self, groups: Sequence[list[Config]]) -> None:
        """Add missing timings of some groups. If there are any, the first group, with which the
        others are compared, is measured again."""
        left = [group for group in groups if not self._has_timing(group)]
        if left and groups[0] not in left:
            left.insert(0, groups[0])
            for config in groups[0]:
                del self.timings[config]
        if left:
            self._add(left, is_whole=False)

    def _add(self, left: list[list[Config]], is_whole: bool) -> None:
        """Compile and measure. is_whole: nothing is measured if all groups have equal code"""
        start = time.perf_counter()
        end = start + self.seconds if self.seconds else math.inf
        with step_bar(f"tuning {self.name}", len(left)) as bar:
            left = self._by_code(left, bar)
            if len(left) == 1 and is_whole:
                return
            bar.resize(len(left))
            missing = self._measure(left, end, bar)
        self.trial.clean()
        self.spent += time.perf_counter() - start
        if missing:
            self._warn(missing)

    def _has_timing(self, group: list[Config]) -> bool:
        """Whether a configuration of a group was measured before; then the timing is that of
        all."""
        measured = next((self.timings[config] for config in group if config in self.timings), None)
        if measured is not None:
            self.timings.update(dict.fromkeys(group, measured))
        return measured is not None

    def _by_code(self, groups: list[list[Config]], bar: Bar) -> list[list[Config]]:
        """Compile, then merge groups with equal code. Those that could not be compiled in half of
        the time are last."""
        count = len(groups)
        first = {group[0]: group for group in groups}
        bar.show(f"compiling {count} configurations")
        half = self.seconds / 2 or None

        def tell(compiled: int) -> None:
            self.done()
            bar.show(f"compiled {compiled} of {count}")

        self.trial.compile(list(first), half, tell)
        same = self.trial.alike_by_code(first)
        if half is not None:
            same.sort(key=lambda configs: configs[0] not in self.trial.kernels)
        return [[config for one in configs for config in first[one]] for configs in same]

    def _measure(self, groups: list[list[Config]], end: float, bar: Bar) -> int:
        """Measure until the time is over; return the number of configurations left."""
        measured = [*self.timings, *(group[0] for group in groups)]
        labels = labels_of(map(str, measured))
        for number, group in enumerate(groups):
            # continue until there is a configuration that can be launched
            if time.perf_counter() > end and self._best() is not None:
                return sum(map(len, groups[number:]))
            bar(f"{labels[str(group[0])]}{self._best_so_far(labels)}")
            timing = self.trial.time(group[0], self.bench)
            self.timings.update(dict.fromkeys(group, timing))
            if self.stored is not None and group[0] not in self.trial.crashed:
                self.stored.add(group, timing)
            self.done()
        return 0

    def _best(self) -> Config | None:
        """The fastest configuration so far; None if none of those measured can run."""
        can_run = [config for config, timing in self.timings.items() if math.isfinite(timing[0])]
        return min(can_run, key=lambda config: self.timings[config][0], default=None)

    def _best_so_far(self, labels: Mapping[str, str]) -> str:
        best = self._best()
        return "" if best is None else f"\nbest {self.timings[best][0]:.4f} ms: {labels[str(best)]}"

    def _warn(self, left: int) -> None:
        warnings.warn(
            f"tuning of {self.name} ended after {self.seconds:g} s, before {left} of "
            f"{left + len(self.timings)} configurations were measured: the best of the others is "
            "used. TILEWRIGHT_AUTOTUNE_SECONDS, or autotune(seconds=...), allows another time",
            TilewrightWarning,
            stacklevel=2,
        )
