"""`torch.compile` makes Triton kernels, which Tilewright compiles: with torch unmodified.

In other processes: torch decides at the first question, and for good, whether there is a Triton.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.conftest import Outcomes
from tilewright.support import usable_cpus

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

KINDS = (
    "block of a transformer", "images", "losses", "dynamic shapes", "shapes", "templates", "sort",
    "convolution", "special functions", "scans", "group and rms norm", "reductions", "scatter",
    "pointwise", "foreach", "gather", "bucketize", "layer norm", "embedding", "wide softmax",
    "batch norm", "maxima so far", "rounding", "softmax", "index put", "long scan",
    "number formats",
)  # fmt: skip
"""From the longest to the shortest."""
BY_WORKERS = ("pointwise", "sort", "layer norm")


GROUPS = min(8, len(usable_cpus()))
"""Processes that run the kinds side by side: each imports torch, which takes as long as a kind."""


@pytest.fixture(scope="session")
def in_process(program: Callable[..., Outcomes], once: Callable[..., Any]) -> Outcomes:
    """All kinds, some of the long and some of the short ones in each group."""

    def compute(folder: Path) -> Outcomes:
        groups = [(folder / str(number), *KINDS[number::GROUPS]) for number in range(GROUPS)]
        with ThreadPoolExecutor(GROUPS) as side_by_side:
            return dict(ChainMap(*side_by_side.map(lambda group: program(*group), groups)))

    return once("in-process", compute)


@pytest.mark.parametrize("kind", KINDS)
def test_results_and_gradients_are_eager_s(kind: str, in_process: Outcomes) -> None:
    outcome = in_process[kind]
    assert outcome["error"] < 1e-5
    ours, eager_s = outcome["exact"]
    assert ours < max(10 * eager_s, 1e-6)
    assert outcome["kernels"] > 0
    assert outcome["in C++"] == 0


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_results_and_gradients_on_a_gpu(kind: str, in_process: Outcomes) -> None:
    outcome = in_process[kind]
    assert outcome["device"] == "cuda"
    assert outcome["error"] < 1e-5
    assert outcome["kernels"] > 0


@pytest.mark.gpu
def test_cuda_graphs_launch_kernels(program: Callable[..., Outcomes], tmp_path: Path) -> None:
    for outcome in program(tmp_path, "--cuda-graphs", "layer norm", "softmax").values():
        assert outcome["error"] < 1e-5
        assert outcome["skips"] == 0 < outcome["graph launches"]
        assert outcome["static launchers"] > 0


def test_templates_multiply_in_kernels(in_process: Outcomes) -> None:
    assert in_process["templates"]["products"] >= 3  # forwards, and for two gradients


def test_changing_sizes_compile_once(in_process: Outcomes) -> None:
    assert in_process["dynamic shapes"]["graphs"] == 1


@pytest.fixture(scope="session")
def by_workers(program: Callable[..., Outcomes], once: Callable[..., Any]) -> Sequence[Outcomes]:
    """With caches that are empty, then in another process with what the first one has kept."""

    def compute(caches: Path) -> Sequence[Outcomes]:
        return [program(caches, "--workers", *BY_WORKERS) for _ in range(2)]

    return once("by-workers", compute)


@pytest.mark.parametrize("kind", BY_WORKERS)
def test_worker_processes_compile_the_same(kind: str, by_workers: Sequence[Outcomes]) -> None:
    cold, warm = (outcomes[kind] for outcomes in by_workers)
    assert max(cold["error"], warm["error"]) < 1e-5
    assert cold["kernels"] > 0
    assert cold["cache hits"] == 0 < warm["cache hits"]
