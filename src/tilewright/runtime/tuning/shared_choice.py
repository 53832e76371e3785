"""Choices that several processes make together, each measuring a part of the configurations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from weakref import WeakSet

from tilewright.runtime.tuning.timing_store import Timing, config_text
from tilewright.runtime.tuning.tuning_config import Config
from tilewright.support.data_class import dataclass

Measure = Callable[[Sequence[int], Callable[[], object]], dict[int, Timing]]
"""measure(numbers, done) -> timings by number; `done` is called after each configuration."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class SharedTuning:
    """One tuning that processes divide.

    title: the kernel and the values of its key, for messages; text: everything that must be equal
    in all processes; device: equal for processes whose timings may be compared; numbers: one
    configuration of each group with equal code, by its position in the autotuner's list; the first
    is the default; measure: measures some of them here
    """

    title: str
    text: str
    device: str
    numbers: Sequence[int]
    measure: Measure


@dataclass(frozen=True, slots=True)
class SharedChoice:
    """number: the configuration; timings: all that were measured, in terms of this process's
    timing of the reference; empty for the default after a failure."""

    number: int
    timings: dict[int, Timing]


class Turn(Protocol):
    """One choice, from its start."""

    def choose(self, tuning: SharedTuning) -> SharedChoice:
        """The choice of all processes."""
        ...


class ChoosesTogether(Protocol):
    """The processes that choose together, see `tilewright.distributed.agree`."""

    def turn(self) -> AbstractContextManager[Turn]:
        """A block around one choice. An exception inside is reported to the other processes."""
        ...


class Together:
    """The agreement in force in this process, and the choices that it must not inherit."""

    def __init__(self) -> None:
        self.now: ChoosesTogether | None = None
        self._choices: WeakSet[_Choices] = WeakSet()

    def register(self, choices: _Choices) -> None:
        """Add an autotuner, whose choices are forgotten when an agreement starts or ends."""
        self._choices.add(choices)

    def set(self, agreement: ChoosesTogether | None) -> None:
        """Start or end an agreement. Choices that were made without it may differ by rank."""
        self.now = agreement
        for choices in list(self._choices):
            choices.cache.clear()


class _Choices(Protocol):
    @property
    def cache(self) -> dict[tuple[object, ...], Config]: ...
    def __hash__(self) -> int: ...


together = Together()


def texts_of(configs: Iterable[Config]) -> str:
    """The configurations as text that is equal in all processes that run one program."""
    return "\n".join(_ADDRESS.sub("", config_text(config)) for config in configs)
