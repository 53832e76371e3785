"""`torch.compile` makes Triton kernels, which Tilewright compiles: with torch unmodified.

In other processes: torch decides at the first question, and for good, whether there is a Triton.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tilewright.triton_alias import install

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

KINDS = (
    "pointwise", "special functions", "rounding", "number formats", "reductions", "softmax",
    "wide softmax", "layer norm", "batch norm", "group and rms norm", "scans", "maxima so far",
    "long scan", "sort", "gather", "scatter", "index put", "embedding", "images", "losses",
    "bucketize", "shapes", "foreach", "convolution", "block of a transformer",
)  # fmt: skip
BY_WORKERS = ("pointwise", "sort", "layer norm")
Outcomes = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outcomes]:
    """Runs cases where `import triton` is the installed package; caches: of Inductor and ours."""
    packages = tmp_path_factory.mktemp("packages")
    install(packages)
    script = Path(__file__).with_name("torch_compile_cases.py")

    def run(caches: Path, *arguments: str) -> Outcomes:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(packages), *sys.path]),
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "TILEWRIGHT_CACHE_DIR": str(caches / "tilewright"),
        }
        command = [sys.executable, "-W", "ignore", str(script), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        lines = map(json.loads, done.stdout.splitlines())
        return {line["name"]: line for line in lines}

    return run


@pytest.fixture(scope="module")
def in_process(
    program: Callable[..., Outcomes], tmp_path_factory: pytest.TempPathFactory
) -> Outcomes:
    return program(tmp_path_factory.mktemp("in-process"), *KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_results_and_gradients_are_eager_s(kind: str, in_process: Outcomes) -> None:
    outcome = in_process[kind]
    assert outcome["error"] < 1e-5
    ours, eager_s = outcome["exact"]
    assert ours < max(10 * eager_s, 1e-6)
    assert outcome["kernels"] > 0
    assert outcome["in C++"] == 0


@pytest.fixture(scope="module")
def by_workers(
    program: Callable[..., Outcomes], tmp_path_factory: pytest.TempPathFactory
) -> Sequence[Outcomes]:
    """With caches that are empty, then in another process with what the first one has kept."""
    caches = tmp_path_factory.mktemp("by-workers")
    return [program(caches, "--workers", *BY_WORKERS) for _ in range(2)]


@pytest.mark.parametrize("kind", BY_WORKERS)
def test_worker_processes_compile_the_same(kind: str, by_workers: Sequence[Outcomes]) -> None:
    cold, warm = (outcomes[kind] for outcomes in by_workers)
    assert max(cold["error"], warm["error"]) < 1e-5
    assert cold["kernels"] > 0
    assert cold["cache hits"] == 0 < warm["cache hits"]
