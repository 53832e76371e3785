"""Every script of `examples/distributed/` is right on several ranks of this CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kernels.test_examples import EXAMPLES, run

SCRIPTS = {"all_reduce.py": 2e-6, "gathered_matmul.py": 3e-5, "ring_attention.py": 2e-6}


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("script", SCRIPTS)
def test_all_ranks_are_right(script: str, ranks: int) -> None:
    lines = sorted(run(f"distributed/{script}", str(ranks)).splitlines())
    found = [re.fullmatch(r"rank (\d): largest difference (\S+)", line) for line in lines]
    assert [int(line[1]) for line in found if line] == list(range(ranks))
    assert all(float(line[2]) < SCRIPTS[script] for line in found if line)


def test_every_example_of_ranks_is_tested() -> None:
    scripts = {path.name for path in Path(EXAMPLES, "distributed").glob("*.py")}
    assert scripts == {*SCRIPTS, "ranks.py"}
