"""Launches of users' kernels: arguments that fit each case."""

import pytest

from benchmarks.gpu.user_launches import launch_of
from benchmarks.gpu.users import differs, is_validation
from tests.corpus.users import FAMILIES
from tests.corpus.users.case import Case

CASES = {f"{f}/{case.label}": case for f, cases in FAMILIES.items() for case in cases}


@pytest.mark.parametrize("name", CASES)
def test_arguments_have_the_facts_of_the_case(name: str) -> None:
    case: Case = CASES[name]
    launch, types = launch_of(case), case.types.split()
    assert len(launch.arguments) == len(types)
    assert 0 < len(launch.grid) <= 3 and all(0 < extent < 1 << 20 for extent in launch.grid)
    for argument, text in zip(launch.arguments, types, strict=True):
        assert isinstance(argument, (int, float)) != text.startswith("*")
        if text == "i32/16":
            assert argument % 16 == 0
        elif text == "i32=1":
            assert argument == 1


def test_a_fifth_of_the_cases_is_for_validation() -> None:
    share = sum(map(is_validation, CASES)) / len(CASES)
    assert 0.15 < share < 0.25


def test_other_results_are_noticed() -> None:
    assert not differs([[10.0, 3.0]], [[10.0, 3.1]])
    assert differs([[10.0, 3.0]], [[10.0, 3.5]])
    assert differs([[10.0, 3.0]], [[9.0, 3.0]])
