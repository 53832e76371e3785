"""Launches of users' kernels: arguments that fit each case."""

import pytest

from benchmarks.gpu.user_launches import is_uniform, launch_of
from benchmarks.gpu.users import differs, is_validation, table_of, uniform_cases
from tests.corpus.figures import source_of
from tests.corpus.users import FAMILIES
from tests.corpus.users.case import Case
from tests.corpus.variants import Variant
from tilewright.frontend.semantics import FrontendOptions
from tilewright.ops import ProgramIdOp

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


def has_program_number(case: Case) -> bool:
    variant = Variant(90, case.label, case.kernel, case.types, case.words)
    module = source_of(variant).lower(FrontendOptions(backend="cuda"))
    return any(isinstance(op, ProgramIdOp) for op in module.kernel.walk())


def test_programs_of_uniform_cases_have_no_number() -> None:
    assert [name for name, c in CASES.items() if is_uniform(c) == has_program_number(c)] == []
    kernels = {CASES[name].kernel.fn.__name__ for name in uniform_cases()}
    assert {"one_dot", "chained", "backward", "low_rank_gates"} <= kernels
    assert not {"softmax", "tutorial_matmul", "attention"} & kernels


def test_uniform_cases_are_marked_and_left_out_of_the_mean() -> None:
    rows = [
        {"name": name, "validation": False, "speed": speed, "low95": speed, "high95": speed,
         "ms": {"tilewright": 1.0, "triton": speed}, "differs": False}
        for name, speed in (("a", 0.5), ("b", 1.0))
    ]  # fmt: skip
    table = table_of(rows, {"a"})
    assert [*table.columns[-1].cells] == ["one tile", ""]
    assert str(table.caption).startswith("tuned for: 1 rows, geometric mean 1.000")


def test_a_fifth_of_the_cases_is_for_validation() -> None:
    share = sum(map(is_validation, CASES)) / len(CASES)
    assert 0.15 < share < 0.25


def test_other_results_are_noticed() -> None:
    assert not differs([[10.0, 3.0]], [[10.0, 3.1]])
    assert differs([[10.0, 3.0]], [[10.0, 3.5]])
    assert differs([[10.0, 3.0]], [[9.0, 3.0]])
