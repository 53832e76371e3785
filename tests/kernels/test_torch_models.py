"""Models that `torch.compile` trains follow eager ones; in a file, so a process, of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kernels.conftest import Outcomes

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

MODELS = ("decoder", "resnet", "denoiser", "encoder")


@pytest.fixture(scope="module")
def models(
    program: Callable[..., Outcomes], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Any]]:
    caches = tmp_path_factory.mktemp("models")
    return lambda name: program(caches, name, script="torch_models.py")[name]


@pytest.mark.parametrize(
    "model",
    [pytest.param(m, marks=[pytest.mark.exhaustive] * (m in MODELS[2:])) for m in MODELS],
)
def test_training_a_model_follows_eager(model: str, models: Callable[..., dict[str, Any]]) -> None:
    outcome = models(model)
    assert outcome["error"] < 1e-4
    ours, eager_s = outcome["losses"]
    assert eager_s[-1] < 0.9 * eager_s[0]  # it has learned something
    assert ours == pytest.approx(eager_s, rel=1e-3)
