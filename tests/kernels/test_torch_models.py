"""Models that `torch.compile` trains follow eager ones; in a file, so a process, of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kernels.conftest import Outcomes

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

USUAL, OTHERS = ("decoder", "resnet"), ("denoiser", "encoder")


@pytest.fixture(scope="module")
def models(
    program: Callable[..., Outcomes], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Any]]:
    """What a process says of a model: one of both usual ones, for to import torch takes long."""
    caches = tmp_path_factory.mktemp("models")
    outcomes: Outcomes = {}

    def ask(name: str) -> dict[str, Any]:
        if name not in outcomes:
            names = USUAL if name in USUAL else (name,)
            outcomes.update(program(caches, *names, script="torch_models.py"))
        return outcomes[name]

    return ask


@pytest.mark.parametrize("model", [*USUAL, *OTHERS])
def test_training_a_model_follows_eager(model: str, models: Callable[..., dict[str, Any]]) -> None:
    outcome = models(model)
    assert outcome["error"] < 1e-4
    ours, eager_s = outcome["losses"]
    assert eager_s[-1] < 0.9 * eager_s[0]  # it has learned something
    # a loss of 2e-5 is a difference of logits, which fp32 rounds to 1e-7
    assert ours == pytest.approx(eager_s, rel=1e-3, abs=1e-7)
