"""Random programs print the same before and after the target-independent passes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright.transforms
from tests.property.programs import functions
from tilewright.interp import run_function
from tilewright.ir import Function, parse_pipeline, print_function

PIPELINES = [
    "canonicalize",
    "canonicalize,cse,canonicalize,dce",
    str(tilewright.transforms.SHARED),
]


def _printed(function: Function, count: int) -> str:
    lines: list[str] = []
    run_function(function, [np.zeros(8, np.float32), count, 0.75], write=lines.append)
    return "".join(lines)


@pytest.mark.parametrize("passes", PIPELINES)
@settings(max_examples=60)
@given(function=functions(), count=st.integers(0, 3))
def test_passes_keep_the_meaning(passes: str, function: Function, count: int) -> None:
    before = _printed(function, count)
    changed = function.clone()
    parse_pipeline(passes).run(changed)
    assert _printed(changed, count) == before, print_function(changed)


@settings(max_examples=40)
@given(functions())
def test_a_second_canonicalization_finds_nothing(function: Function) -> None:
    canonicalize = parse_pipeline("canonicalize")
    canonicalize.run(function)
    text = print_function(function)
    canonicalize.run(function)
    assert print_function(function) == text
