"""Kernels that nobody wrote compute on every device what the model of the language says.

The programs with loops of products, whose loads GPUs run ahead, run in the emulator, and an eighth
of them on the CPU; of the others three fifths run on the CPU and two fifths in the
emulator. Every third program runs in the interpreter too. The guard tier runs every fifth chunk,
which together have every feature; `python -m tests.fuzz` runs any number of programs on all
devices.
"""

from __future__ import annotations

import re

import pytest

import tilewright
from tests.fuzz import (
    Failure,
    Program,
    Undefined,
    fails_alike,
    failure_of,
    program,
    reduced,
    written_test,
)
from tests.fuzz.fuzz_workers import NO_CACHE
from tests.fuzz.program_source import source
from tests.fuzz.run_program import collecting_later

PROGRAMS = 2000
CHUNK = 50
SAMPLED = range(CHUNK, PROGRAMS, 5 * CHUNK)
"""The chunks of the guard tier; together they have every feature and function of the language."""
SECONDS_TO_REDUCE = 30.0


def devices_of(made: Program) -> tuple[str, ...]:
    first = ("interpreter",) if made.seed % 3 == 0 else ()
    if "products" in made.features:
        return (*first, "emulated", *(("cpu",) if made.seed % 8 == 0 else ()))
    return (*first, "cpu" if made.seed % 5 < 3 else "emulated")


def explained(made: Program, failure: Failure) -> str:
    """The failure, and a small program that fails alike, as a test."""

    def still_fails(candidate: Program) -> bool:
        return fails_alike(candidate, failure, lambda p: failure_of(p, (failure.device,)))

    small = reduced(made, still_fails, SECONDS_TO_REDUCE)
    return f"{failure}\n\n{written_test(small, failure)}"


def assert_devices_agree(seeds: range, devices: tuple[str, ...] = ()) -> None:
    settings = tilewright.settings()
    undefined: list[int] = []
    caches = settings.cache.scope(dir=NO_CACHE)
    with settings.cpu.scope(threads=1), caches, collecting_later():
        for seed in seeds:
            made = program(seed)
            try:
                failure = failure_of(made, devices or devices_of(made))
            except Undefined:
                undefined.append(seed)
                continue
            if failure is not None:
                pytest.fail(explained(made, failure), pytrace=False)
    assert len(undefined) <= 1, f"without a single meaning: {undefined}"


@pytest.mark.parametrize("first", SAMPLED)
def test_devices_agree_with_the_model(first: int) -> None:
    assert_devices_agree(range(first, first + CHUNK))


@pytest.mark.parametrize("first", sorted({*range(0, PROGRAMS, CHUNK)} - {*SAMPLED}))
def test_devices_agree_with_the_model_on_the_other_programs(first: int) -> None:
    assert_devices_agree(range(first, first + CHUNK))


def words(made: Program) -> set[str]:
    """The features, the functions of the language and the dtypes that a program has."""
    return made.features | set(
        re.findall(r"\btl\.[\w.]+|\b(?:b?float|u?int)\d+\b|\bbool\b", source(made))
    )


def test_the_sampled_programs_have_whatever_the_others_have() -> None:
    sampled = (seed for first in SAMPLED for seed in range(first, first + CHUNK))
    found = set[str]().union(*(words(program(seed)) for seed in sampled))
    assert found == set[str]().union(*(words(program(seed)) for seed in range(PROGRAMS)))


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, PROGRAMS, 10 * CHUNK))
def test_a_gpu_agrees_with_the_model(first: int) -> None:
    assert_devices_agree(range(first, first + CHUNK), ("nvidia",))


def test_a_seed_gives_the_same_program_each_time() -> None:
    for seed in range(30):
        assert source(program(seed)) == source(program(seed))
