"""Launches in machine code see each change of an autotuner's choices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import Config, autotune, jit

CONFIGS = [Config({"VALUE": 1}), Config({"VALUE": 2})]


def new_tuner() -> Any:
    @autotune(CONFIGS, key=["n"])
    @jit
    def kernel(out, n, VALUE: tl.constexpr):
        tl.store(out, VALUE)

    return kernel


def settled(tuner: Any, n: int) -> int:
    """What launches store, after those that machine code needs to learn them."""
    out = np.zeros(1, np.int32)
    for _ in range(5):
        out[0] = 0
        tuner[(1,)](out, n)
    return int(out[0])


def other(config: Config) -> Config:
    return next(item for item in CONFIGS if item is not config)


CHANGES: dict[str, Callable[[Any, Any, Config], object]] = {
    "an item": lambda tuner, key, config: tuner.cache.__setitem__(key, config),
    "an update": lambda tuner, key, config: tuner.cache.update({key: config}),
    "a union": lambda tuner, key, config: tuner.cache.__ior__({key: config}),
    "a deletion": lambda tuner, key, config: (
        tuner.cache.__delitem__(key),
        tuner.cache.setdefault(key, config),
    ),
    "pop": lambda tuner, key, config: (
        tuner.cache.pop(key),
        tuner.cache.setdefault(key, config),
    ),
    "popitem": lambda tuner, key, config: (
        tuner.cache.popitem(),
        tuner.cache.setdefault(key, config),
    ),
    "another dictionary": lambda tuner, key, config: setattr(tuner, "cache", {key: config}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_choice_is_used(change: str) -> None:
    tuner = new_tuner()
    first = settled(tuner, 5)
    ((key, config),) = tuner.cache.items()
    assert (config.kwargs["VALUE"], tuner.best_config) == (first, config)
    CHANGES[change](tuner, key, other(config))
    assert settled(tuner, 5) == 3 - first
    assert tuner.best_config is other(config)


def test_a_cleared_choice_is_made_again() -> None:
    tuner = new_tuner()
    settled(tuner, 5)
    tuner.cache.clear()
    assert settled(tuner, 5) in (1, 2)
    assert len(tuner.cache) == 1


def test_the_best_configuration_is_that_of_the_latest_launch() -> None:
    tuner = new_tuner()
    for n in (5, 6):
        settled(tuner, n)
    first, second = tuner.cache
    tuner.cache[second] = other(tuner.cache[first])
    for n in (5, 6):
        settled(tuner, n)
    for n, key in ((5, first), (6, second), (5, first)):
        tuner[(1,)](np.zeros(1, np.int32), n)
        assert tuner.best_config is tuner.cache[key]
